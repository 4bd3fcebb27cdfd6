/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/stages.h>

#include <string.h>
#include <sys/mman.h>

#define MAP_FLAG_FILLS 0x8000 /* MAP_POPULATE as Linux has it on all machines of ours */

void stages_init(struct stages *stages, struct stack_stages *of_stack, const struct residency *residency)
{
	memset(stages, 0, sizeof(*stages));
	stages->of_stack = of_stack;
	stages->residency = residency;
}

/* --- time ------------------------------------------------------------------------------------ */

/* The older half is only a sum from now on. */
static void wall_fold(struct stage_wall *wall)
{
	for (size_t i = 0; i < STAGES_SPANS / 2; i++)
		wall->over += wall->spans[i].hi - wall->spans[i].lo;
	wall->over_until = wall->spans[STAGES_SPANS / 2 - 1].hi;
	wall->count -= STAGES_SPANS / 2;
	memmove(wall->spans, wall->spans + STAGES_SPANS / 2, wall->count * sizeof(wall->spans[0]));
}

/*
 * Stretches come mostly in the order of their ends: one that begins earlier takes those in that it reaches back over. What
 * lies before the sum's end is in the sum, or in one of its gaps: it is left out, so that nothing counts twice.
 */
static void wall_add(struct stage_wall *wall, uint64_t lo, uint64_t hi)
{
	wall->cut |= lo < wall->over_until;
	lo = bytes_max(lo, wall->over_until);
	while (wall->count && wall->spans[wall->count - 1].hi >= lo) {
		lo = bytes_min(lo, wall->spans[wall->count - 1].lo);
		hi = bytes_max(hi, wall->spans[wall->count - 1].hi);
		wall->count--;
	}
	if (lo >= hi)
		return;
	if (wall->count == STAGES_SPANS)
		wall_fold(wall);
	wall->spans[wall->count].lo = lo;
	wall->spans[wall->count++].hi = hi;
}

static uint64_t wall_sum(const struct stage_wall *wall)
{
	uint64_t sum = wall->over;

	for (size_t i = 0; i < wall->count; i++)
		sum += wall->spans[i].hi - wall->spans[i].lo;
	return sum;
}

/* After the load only what belongs to it still counts: what is done to the weights, and their release. */
static bool stage_counts(const struct stages *stages, enum stage stage)
{
	return stages->loading || stage >= STAGE_QUANTISE;
}

static void stage_spend(struct stages *stages, enum stage stage, uint64_t lo, uint64_t hi)
{
	if (stage == STAGE_COUNT || lo >= hi || !stage_counts(stages, stage))
		return;
	stages->recent[stage] += hi - lo;
	stages->figures[stage].thread_time += hi - lo;
	wall_add(&stages->walls[stage], lo, hi);
}

static void stage_move(struct stages *stages, enum stage stage, uint64_t bytes)
{
	if (!stage_counts(stages, stage))
		return;
	stages->figures[stage].calls++;
	stages->moved[stage] = bytes_add(stages->moved[stage], bytes);
	stages->figures[stage].bytes = bytes_add(stages->figures[stage].bytes, bytes);
}

static struct stage_thread *thread_of(struct stages *stages, const struct st_record *record)
{
	for (uint32_t i = 0; i < stages->thread_count; i++)
		if (stages->threads[i].thread == record->thread)
			return &stages->threads[i];
	if (stages->thread_count == STAGES_THREADS) {
		stages->threads_more = true;
		return NULL;
	}
	stages->threads[stages->thread_count] = (struct stage_thread){record->thread, 0, STAGE_COUNT, false};
	return &stages->threads[stages->thread_count++];
}

/* --- what an event tells --------------------------------------------------------------------- */

/* Its own stage, how long it was in it, bytes that it moved there; the stages of the time before it and after it. */
struct stage_event {
	enum stage own, before, after;
	uint64_t took, bytes;
	bool counts;
};

static void event_map(struct stages *stages, const struct st_ev_map *map, struct stage_event *e)
{
	if (catalog_weight(stages->residency->replay.catalog, map->file) == CATALOG_NONE) {
		e->after = stack_stage(stages->of_stack, map->stack);
		return;
	}
	*e = (struct stage_event){STAGE_MAP, STAGE_HEADER, STAGE_HEADER, 0, map->size, true};
	if (map->flags & MAP_FLAG_FILLS)
		e->before = STAGE_MAP; /* which ended with the call */
}

/*
 * The release was noted before the call: its time is that after it, but where it ended nobody knows unless another one
 * follows. Replay has taken the mapping out already.
 */
static void event_unmap(struct stages *stages, const struct stage_thread *thread, struct stage_event *e)
{
	uint64_t bytes = bytes_sub(stages->weights_mapped, stages->residency->replay.weights_mapped);

	if (bytes)
		*e = (struct stage_event){STAGE_RELEASE, STAGE_COUNT, STAGE_RELEASE, 0, bytes, true};
	/* One after the other: from the last one on the thread did nothing else that it told of. */
	if (bytes && thread->after == STAGE_RELEASE)
		e->before = STAGE_RELEASE;
}

/* The header lies before the first tensor. */
static bool read_is_header(const struct stages *stages, const struct st_ev_read *read, uint32_t weight)
{
	const struct catalog *catalog = stages->residency->replay.catalog;
	const struct catalog_file *file = &catalog->files[weight];

	return file->tensor_count &&
	       bytes_add(read->offset, read->size) <= catalog->tensors[file->tensor_first].offset;
}

static void event_read(struct stages *stages, const struct st_ev_read *read, struct stage_event *e)
{
	uint32_t weight = catalog_weight(stages->residency->replay.catalog, read->file);
	enum stage stage = STAGE_READ;

	if (weight == CATALOG_NONE)
		return;
	if (read_is_header(stages, read, weight))
		stage = STAGE_HEADER;
	*e = (struct stage_event){stage, STAGE_COUNT, STAGE_COUNT, read->took, read->size, true};
	if (stage == STAGE_HEADER)
		e->before = e->after = STAGE_HEADER;
	else if (!read->took)
		e->before = STAGE_READ;
}

/* What is copied out of a buffer that no read has filled was put there by the program itself. */
static bool source_is_filled(const struct stages *stages, const struct st_ev_copy *copy)
{
	struct span span;
	enum region region = replay_region(&stages->residency->replay, copy->src, &span);

	if (region != REGION_PINNED && region != REGION_HOST)
		return false;
	return !livemap_find(&stages->residency->content, copy->src, &span);
}

static void event_copy(struct stages *stages, const struct st_ev_copy *copy, struct stage_event *e)
{
	if (copy->result || copy->how == ST_COPY_D2H || copy->how == ST_COPY_D2D)
		return;
	*e = (struct stage_event){STAGE_DEVICE_COPY, STAGE_COUNT, STAGE_COUNT, copy->took, copy->size, true};
	if (!source_is_filled(stages, copy))
		return;
	e->before = STAGE_HOST_COPY;
	stage_move(stages, STAGE_HOST_COPY, copy->size);
}

static void event_sync(const struct st_ev_sync *sync, const struct stage_thread *thread,
                       struct stage_event *e)
{
	if (thread->copying && sync->how != ST_SYNC_WAIT)
		*e = (struct stage_event){STAGE_DEVICE_COPY, STAGE_COUNT, STAGE_COUNT, sync->took, 0, false};
}

/* Memory that a conversion, a quantiser, a re-packing asks for: what follows is done into it. */
static void event_asked(struct stages *stages, uint64_t stack, uint64_t size, bool device,
                        struct stage_event *e)
{
	enum stage stage = stack_stage(stages->of_stack, stack);

	/* A copy to the device allocates there under the same functions as a conversion. */
	if (stage == STAGE_COUNT || (device && stage < STAGE_QUANTISE))
		return;
	e->before = e->after = stage;
	stage_move(stages, stage, size);
}

static struct stage_event event_of(struct stages *stages, const struct st_record *record,
                                   const struct stage_thread *thread)
{
	struct stage_event e = {STAGE_COUNT, STAGE_COUNT, STAGE_COUNT, 0, 0, false};

	switch (record->kind) {
	case ST_KIND_open:
		e.after = STAGE_HEADER;
		break;
	case ST_KIND_fadvise:
		e.before = e.after = thread->after == STAGE_HEADER ? STAGE_HEADER : STAGE_COUNT;
		break;
	case ST_KIND_map:
		event_map(stages, (const void *)record, &e);
		break;
	case ST_KIND_unmap:
		event_unmap(stages, thread, &e);
		break;
	case ST_KIND_read:
		event_read(stages, (const void *)record, &e);
		break;
	case ST_KIND_copy:
		event_copy(stages, (const void *)record, &e);
		break;
	case ST_KIND_sync:
		event_sync((const void *)record, thread, &e);
		break;
	case ST_KIND_alloc:
		event_asked(stages, ((const struct st_ev_alloc *)record)->stack,
		            ((const struct st_ev_alloc *)record)->size, false, &e);
		break;
	case ST_KIND_device_alloc:
		event_asked(stages, ((const struct st_ev_device_alloc *)record)->stack,
		            ((const struct st_ev_device_alloc *)record)->size, true, &e);
		break;
	default:
		break;
	}
	return e;
}

/* --- samples --------------------------------------------------------------------------------- */

static uint64_t rise(uint64_t before, uint64_t now)
{
	return before == ST_UNKNOWN || now == ST_UNKNOWN ? ST_UNKNOWN : bytes_sub(now, before);
}

/* By time, but to none more than it moved since then: what is over is the others', or was read ahead. */
static void storage_share(struct stages *stages, uint64_t storage)
{
	uint64_t given[STAGE_COUNT] = {0};

	for (int round = 0; round < 2; round++) {
		uint64_t time = 0, left = storage;

		for (int i = 0; i < STAGE_COUNT; i++)
			time += given[i] < stages->moved[i] ? stages->recent[i] : 0;
		for (int i = 0; i < STAGE_COUNT && time; i++) {
			double share = (double)stages->recent[i] / (double)time;
			uint64_t part = bytes_min((uint64_t)((double)storage * share),
			                          bytes_sub(stages->moved[i], given[i]));

			given[i] += part;
			left = bytes_sub(left, part);
		}
		storage = left;
	}
	for (int i = 0; i < STAGE_COUNT; i++)
		stages->figures[i].storage += given[i];
}

/* What the program had of storage since the last sample. */
static void sample_share(struct stages *stages, const struct st_ev_sample *sample, uint64_t all)
{
	uint64_t storage = rise(stages->last.io_read, sample->io_read);
	uint64_t faults = rise(stages->last.major_faults, sample->major_faults);

	if (storage == ST_UNKNOWN)
		return;
	storage_share(stages, storage);
	for (int i = 0; i < STAGE_COUNT; i++) {
		double share = (double)stages->recent[i] / (double)all;

		stages->figures[i].sampled += stages->recent[i];
		if (faults != ST_UNKNOWN)
			stages->figures[i].faults += (uint64_t)((double)faults * share);
	}
}

static void sample_seen(struct stages *stages, const struct st_ev_sample *sample)
{
	uint64_t all = 0;

	for (int i = 0; i < STAGE_COUNT; i++)
		all += stages->recent[i];
	/* A call that goes on tells of its time when it is over: what it had read until now is shared out then. */
	if (!all && stages->loading)
		return;
	if (all && stages->last.r.time)
		sample_share(stages, sample, all);
	memset(stages->recent, 0, sizeof(stages->recent));
	memset(stages->moved, 0, sizeof(stages->moved));
	stages->last = *sample;
}

/* --- all of it ------------------------------------------------------------------------------- */

static bool stage_works(enum stage stage)
{
	return stage == STAGE_CONVERSION || stage == STAGE_QUANTISE || stage == STAGE_REPACK ||
	       stage == STAGE_HOST_COPY;
}

static void time_pass(struct stages *stages, struct stage_thread *thread, const struct st_record *record,
                      const struct stage_event *e)
{
	uint64_t called = bytes_sub(record->time, e->took), entered = bytes_max(thread->since, called);
	enum stage gap = e->before;

	/* Work on memory that was asked for goes on until here, whatever is done with it now. */
	if (stage_works(thread->after) || (gap == STAGE_COUNT && thread->after == STAGE_HEADER))
		gap = thread->after;
	if (thread->since && gap != STAGE_COUNT && entered > thread->since)
		stages->figures[gap].upper = true;
	if (thread->since)
		stage_spend(stages, gap, thread->since, entered);
	stage_spend(stages, e->own, entered, record->time);
	thread->since = bytes_max(thread->since, record->time);
	thread->after = e->after;
}

void stages_record(struct stages *stages, const struct st_record *record, enum phase phase)
{
	struct stage_thread *thread;
	struct stage_event e;

	stages->loading = phase == PHASE_LOAD;
	if (record->kind == ST_KIND_sample)
		sample_seen(stages, (const void *)record);
	if (!record->seq || (phase != PHASE_LOAD && phase != PHASE_SETTLE))
		return;
	thread = thread_of(stages, record);
	if (!thread)
		return;
	e = event_of(stages, record, thread);
	stages->weights_mapped = stages->residency->replay.weights_mapped;
	if (e.counts)
		stage_move(stages, e.own, e.bytes);
	time_pass(stages, thread, record, &e);
	if (record->kind == ST_KIND_copy && e.own == STAGE_DEVICE_COPY)
		thread->copying = true;
	else if (record->kind == ST_KIND_sync && e.own == STAGE_DEVICE_COPY)
		thread->copying = false;
}

/* Half of the bytes from storage is storage; else the kind of work tells. */
static enum bound find_bound(enum stage stage, const struct load_stage *s)
{
	static const enum bound own[STAGE_COUNT] = {
		[STAGE_HEADER] = BOUND_PROGRAM,     [STAGE_MAP] = BOUND_PROGRAM,
		[STAGE_READ] = BOUND_MEMORY,        [STAGE_HOST_COPY] = BOUND_MEMORY,
		[STAGE_DEVICE_COPY] = BOUND_DRIVER, [STAGE_CONVERSION] = BOUND_MEMORY,
		[STAGE_QUANTISE] = BOUND_PROGRAM,   [STAGE_REPACK] = BOUND_PROGRAM,
		[STAGE_RELEASE] = BOUND_PROGRAM,
	};

	double moved; /* in the time that the samples cover */

	if (s->sampled < s->thread_time / 2 || !s->thread_time)
		return BOUND_UNKNOWN;
	moved = (double)s->bytes * (double)s->sampled / (double)s->thread_time;
	return s->bytes && (double)s->storage >= moved / 2 ? BOUND_STORAGE : own[stage];
}

void stages_finish(struct stages *stages, uint64_t cpus, struct load_stage *ret_figures)
{
	for (int i = 0; i < STAGE_COUNT; i++) {
		struct load_stage *s = &stages->figures[i];

		s->wall = wall_sum(&stages->walls[i]);
		s->lower = stages->threads_more || stages->walls[i].cut;
		s->bound = find_bound((enum stage)i, s);
		s->one_thread = !s->lower && s->bound != BOUND_UNKNOWN && s->bound != BOUND_STORAGE &&
		                cpus > 1 && s->thread_time < s->wall + s->wall / 4;
	}
	memcpy(ret_figures, stages->figures, sizeof(stages->figures));
}
