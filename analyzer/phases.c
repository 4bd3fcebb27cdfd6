/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/event.h>
#include <analyzer/phases.h>
#include <string.h>

#define LATE_NS          UINT64_C(60000000000) /* weights that move after so long a pause are another matter */
#define CLONE_NS         UINT64_C(1000000000)
#define GROWTH           (UINT64_C(1) << 20)
#define GRANTS_OF_A_LOAD 8  /* a loader allocates that often without copying anything, at most */
#define COMPLETE_PERCENT 98 /* tied and skipped tensors leave a complete load a little short */

/*
 * Records are in the order of their sequence numbers. Of two threads the one that took its number first may have looked at
 * the clock last, by some ns.
 */
static uint64_t time_since(uint64_t time, uint64_t before)
{
	return time > before ? time - before : 0;
}

static void weight_moved(struct phases *phases, uint64_t index, uint64_t time)
{
	uint64_t pause = time_since(time, phases->last_time);
	uint64_t length = phases->last_time - phases->first_time;

	if (phases->closed)
		return;
	if (phases->last_weight && pause > (length > LATE_NS ? length : LATE_NS)) {
		phases->closed = true;
		return;
	}
	phases->last_weight = index;
	phases->last_time += pause;
	phases->settled = phases->grants = phases->teardown = 0;
}

/*
 * Weights that are used where they are mapped, or cloned on the host, move without any call. As long as
 * nothing went to a device, a sample that shows the program or its cached weights grown is a sign of it. No phase may
 * depend on when samples were taken, though: they do not undo what calls have decided.
 */
static void growth_seen(struct phases *phases, const struct st_ev_sample *sample, uint64_t index,
                        const struct residency *residency)
{
	uint64_t own = sample->rss_anon == ST_UNKNOWN ? 0 : sample->rss_anon;
	uint64_t size = own + residency->total.now.cached;

	if (size <= phases->grown + GROWTH)
		return;
	phases->grown = size;
	if (phases->first_weight && !phases->to_device && !phases->settled &&
	    residency->replay.weights_mapped)
		weight_moved(phases, index, sample->r.time);
}

static void asked_note(struct phases *phases, const struct st_record *record)
{
	const struct st_ev_device_alloc *alloc = (const void *)record;
	const struct st_ev_handle_map *map = (const void *)record;

	if (record->kind == ST_KIND_device_alloc) {
		phases->asked_lo = alloc->addr;
		phases->asked_hi = bytes_add(alloc->addr, alloc->size);
	} else if (record->kind == ST_KIND_handle_map) {
		phases->asked_lo = map->addr;
		phases->asked_hi = bytes_add(map->addr, map->size);
	}
}

/*
 * A load goes on with copies of its weights into memory that it asked for just now, no later than it took until then.
 * Copies into older memory are what steps do, and bring nothing.
 */
static bool clone_is_load(const struct phases *phases, const struct st_ev_copy *record)
{
	uint64_t length = phases->last_time - phases->first_time;

	return phases->last_weight && phases->grants && phases->grants <= GRANTS_OF_A_LOAD &&
	       record->dst >= phases->asked_lo && record->dst < phases->asked_hi &&
	       time_since(record->r.time, phases->last_time) <= (length > CLONE_NS ? length : CLONE_NS);
}

static bool mark_is_step(const struct st_record *record)
{
	const char *text;
	size_t length = record_text(record, &text);

	return length >= 4 && !memcmp(text, "step", 4);
}

static void steps_begin(struct phases *phases, uint64_t index, uint64_t time)
{
	if (phases->settled)
		return;
	phases->settled = index;
	phases->settled_time = time;
}

static bool record_releases(const struct st_record *record)
{
	return record->kind == ST_KIND_device_free || record->kind == ST_KIND_handle_release ||
	       record->kind == ST_KIND_handle_unmap ||
	       (record->kind == ST_KIND_context && !((const struct st_ev_context *)record)->alive);
}

/* A sample that finds no program any more where there was one, or says so. */
static bool sample_ends(struct phases *phases, const struct st_ev_sample *sample)
{
	bool seen = phases->host_seen;

	phases->host_seen |= sample->rss_anon != ST_UNKNOWN;
	return sample->reason == ST_MOMENT_EXIT || sample->reason == ST_MOMENT_AFTERMATH ||
	       (seen && sample->rss_anon == ST_UNKNOWN);
}

/* The program is at its end: its destructor has run, or it is gone. */
static bool record_ends(struct phases *phases, const struct st_record *record)
{
	if (record->kind == ST_KIND_moment)
		return ((const struct st_ev_moment *)record)->what == ST_MOMENT_EXIT;
	if (record->kind == ST_KIND_sample)
		return sample_ends(phases, (const void *)record);
	return record->kind == ST_KIND_exit;
}

void phases_record(struct phases *phases, const struct st_record *record, uint64_t index,
                   const struct residency *residency, bool granted)
{
	if (record->seq && record->time > phases->now)
		phases->now = record->time;
	if (!phases->first_weight && residency->signs) {
		phases->first_weight = index;
		phases->first_time = phases->last_time = record->time;
		phases->settled = phases->grants = 0;
	}
	phases->to_device |= (residency->signs & SIGN_DEVICE) != 0;
	phases->moved |= (residency->signs & (SIGN_DEVICE | SIGN_TENSOR)) != 0;
	if ((residency->signs & SIGN_BYTES) ||
	    ((residency->signs & SIGN_CLONED) && clone_is_load(phases, (const void *)record)))
		weight_moved(phases, index, record->time);
	else if (record->kind == ST_KIND_sample)
		growth_seen(phases, (const struct st_ev_sample *)record, index, residency);
	if (granted) {
		phases->grants++;
		asked_note(phases, record);
		/*
		 * A program without weights has no load: it steps from its first allocation on. Where only samples told
		 * of weights that moved (converted on the host, say), it is chance whether one fell between them and
		 * this allocation, which may well be for them: that is no end of a load.
		 */
		if (phases->moved || !phases->first_weight)
			steps_begin(phases, index, record->time);
	}
	if (record->kind == ST_KIND_mark && phases->first_weight && mark_is_step(record)) {
		phases->closed = true;
		steps_begin(phases, index, record->time);
	}
	if (phases->moved && phases->last_weight && !phases->teardown && record_releases(record))
		phases->teardown = index;
	if (record_ends(phases, record) && !phases->end)
		phases->end = index;
}

void phases_finish(struct phases *phases)
{
	if (phases->settled || phases->unfinished || !phases->last_weight)
		return;
	if (phases->teardown && (!phases->end || phases->teardown < phases->end))
		phases->end = phases->teardown;
}

void phases_set_unfinished(struct phases *phases)
{
	phases->unfinished = true;
	phases->settled = 0;
}

bool phases_died_loading(const struct phases *phases, uint64_t remaining, uint64_t total)
{
	if (!phases->first_weight || phases->closed || phases->grants > GRANTS_OF_A_LOAD)
		return false;
	if (phases->now > phases->last_time && phases->now - phases->last_time > LATE_NS)
		return false;
	return remaining > total / 100 * (100 - COMPLETE_PERCENT);
}

enum phase phases_at(const struct phases *phases, uint64_t index)
{
	if (phases->end && index >= phases->end)
		return PHASE_END;
	if (!phases->first_weight)
		return phases->settled && index >= phases->settled ? PHASE_STEPS : PHASE_START;
	if (index < phases->first_weight)
		return PHASE_START;
	if (phases->unfinished || index <= phases->last_weight)
		return PHASE_LOAD;
	if (phases->settled && index >= phases->settled)
		return PHASE_STEPS;
	/* Weights that are used where they are mapped may be touched at any time, until a mark says that steps begin. */
	return phases->last_weight ? PHASE_SETTLE : PHASE_LOAD;
}
