/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes on one machine: their measuring passes run side by side, always the one whose next record is the
 * earliest, and after each record the sum over all may be a maximum. Memory is that of their replays together.
 */
#include <analyzer/run_parts.h>
#include <errno.h>
#include <stdlib.h>

/*
 * Reads the next record of a process. Its time is that of the last event: what the recorder notes beside is dated when
 * it got to it. Clocks of threads may be a little apart; time never goes back here.
 */
static int party_fetch(struct party *party)
{
	int more = reader_order_next(&party->build->order, &party->next);

	if (more <= 0)
		party->next = NULL;
	else if (kind_is_event(party->next->kind))
		party->time = bytes_max(party->time, party->next->time);
	return more < 0 ? more : 0;
}

static int party_open(struct party *party, struct run_part *part, const struct model_options *options,
                      uint64_t first)
{
	size_t files;
	int error = reader_open(part->card->path, &part->reader);

	party->part = part;
	party->late = part->card->start > first;
	if (!error)
		error = build_open(part->reader, options, &party->build);
	if (error)
		return error;
	party->build->joint = true;
	files = party->build->catalog.file_count;
	party->looked = calloc(2 * files + 1, sizeof(*party->looked));
	if (!party->looked)
		return -ENOMEM;
	party->looked_then = party->looked + files;
	return party_fetch(party);
}

static struct party *joint_next(struct joint *joint)
{
	struct party *first = NULL;

	for (size_t i = 0; i < joint->count; i++) {
		struct party *party = &joint->parties[i];

		if (party->next && (!first || party->time < first->time))
			first = party;
	}
	return first;
}

/* What all of them do together: the one that has most still to come decides. */
static enum phase joint_phase(const struct joint *joint, const struct party *moving, enum phase its_phase)
{
	static const enum phase order[] = {PHASE_LOAD, PHASE_STEPS, PHASE_SETTLE, PHASE_START};

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (size_t i = 0; i < joint->count; i++) {
			const struct party *party = &joint->parties[i];
			enum phase phase = party == moving ? its_phase : party->build->phase;

			if ((party == moving || party_lives(party)) && phase == order[k])
				return phase;
		}
	return PHASE_END;
}

/* --- before and after a record -------------------------------------------------------------------- */

/* Did the program die at the end of its trace, and not by a refused request? Then that is the moment. */
static bool dies_at(const struct party *party, bool last)
{
	const struct request *fatal = requests_fatal(&party->build->requests);

	if (party->dead_at.valid)
		return false;
	return fatal ? fatal->index == party->build->index + 1 : last && party->build->badly;
}

/*
 * Imports are no part of a load. The process that moves the first weight byte is mostly sampled for the first time just
 * after it, and so are all the others by its look: then that is what all had when the load began.
 */
static void first_weight(struct joint *joint, struct party *party, const struct moment *now)
{
	struct peak_look look = joint_look(joint);

	joint->model->moments[MOMENT_FIRST_WEIGHT] = *now;
	if (party->samples)
		return;
	joint->beginner = party;
	joint->exact_first = look.exact[QUANTITY_DEMAND];
}

static void first_sampled(struct joint *joint)
{
	struct peak_look look = joint_look(joint);
	struct range demand = range_move(joint->exact_first, look.sampled[QUANTITY_DEMAND]);

	joint->model->moments[MOMENT_FIRST_WEIGHT].demand =
		(struct range){bytes_min(demand.lo, demand.hi), bytes_max(demand.lo, demand.hi)};
	joint->beginner = NULL;
}

static void moments_before(struct joint *joint, struct party *party, enum phase phase)
{
	struct moment *moments = joint->model->moments, now;
	bool first = party->build->phases.first_weight == party->build->index + 1;
	bool leaves = joint->phase == PHASE_SETTLE && phase != PHASE_SETTLE;
	bool dies = dies_at(party, false);

	if (phase == PHASE_LOAD && joint->phase != PHASE_LOAD)
		joint->settled = false;
	if (!dies && !leaves && (!first || moments[MOMENT_FIRST_WEIGHT].valid))
		return;
	now = joint_moment(joint, party);
	if (first && !moments[MOMENT_FIRST_WEIGHT].valid)
		first_weight(joint, party, &now);
	if (dies)
		party->dead_at = now;
	if (dies && !moments[MOMENT_FAILURE].valid)
		moments[MOMENT_FAILURE] = now;
	if (leaves && !joint->settled) {
		moments[MOMENT_SETTLED] = now;
		joint->settled = true;
	}
}

static void cached_note(struct party *party, const struct st_ev_cached *record)
{
	uint32_t file = catalog_weight(&party->build->catalog, record->file);

	if (file == CATALOG_NONE)
		return;
	party->looked[file] = record->r.time;
	party->looked_news = true;
}

static void sample_note(struct joint *joint, struct party *party)
{
	party->samples++;
	joint->newest = party;
	others_look(joint, party);
	joint_kernel(joint);
	if (joint->beginner == party)
		first_sampled(joint);
}

static void device_note(struct joint *joint, const struct party *party)
{
	struct model *model = joint->model;
	uint64_t device = 0, pinned = 0, staging = 0, mapped = 0;

	for (size_t i = 0; i < joint->count; i++) {
		const struct residency *residency = &joint->parties[i].build->residency;

		if (!party_lives(&joint->parties[i]))
			continue;
		device += residency->replay.device;
		pinned += replay_pinned(&residency->replay);
		staging += residency->total.now.staging;
		mapped += residency->replay.weights_mapped;
	}
	if (device > model->device_peak) {
		model->device_peak = device;
		model->device_peak_time = party->time;
	}
	model->pinned_peak = bytes_max(model->pinned_peak, pinned);
	model->staging_peak = bytes_max(model->staging_peak, staging);
	model->mapped_peak = bytes_max(model->mapped_peak, mapped);
}

/* The most that each had, for comparison with what all had together. */
static void part_note(struct party *party, bool sampled)
{
	const struct residency *residency = &party->build->residency;
	struct run_part *part = party->part;
	uint64_t held = residency->replay.device + replay_pinned(&residency->replay) +
	                residency->total.now.anon + residency->total.now.anon_possible +
	                residency->total.now.staging;
	uint64_t demand;

	if (!sampled && held <= party->held)
		return;
	party->held = sampled ? held : bytes_max(held, party->held);
	demand = party_demand(party).hi;
	if (demand <= part->most)
		return;
	part->most = demand;
	part->most_at = party->time;
}

/* The process is dead, and what it had is gone; or its trace is over, and no more can be said of it. */
static void party_leave(struct joint *joint, struct party *party)
{
	struct peak_look before = joint_look(joint);

	if (dies_at(party, true))
		party->dead_at = joint_moment(joint, party);
	joint_close(joint, &before, &before, UINT64_MAX);
	party->gone = true;
	others_update(joint);
}

static int party_step(struct joint *joint, struct party *party)
{
	const struct st_record *record = party->next;
	struct peak_look before = joint_look(joint), after;
	enum phase phase =
		joint_phase(joint, party, phases_at(&party->build->phases, party->build->index + 1));
	bool first = !joint->newest;
	int error;

	moments_before(joint, party, phase);
	error = build_measure_record(party->build, record);
	if (error)
		return error;
	party->begun |= kind_is_event(record->kind);
	joint->phase = phase;
	joint->index++;
	if (record->kind == ST_KIND_cached)
		cached_note(party, (const void *)record);
	if (record->kind == ST_KIND_sample) {
		sample_note(joint, party);
		after = joint_look(joint);
		joint_close(joint, first ? &after : &before, &after,
		            ((const struct st_ev_sample *)record)->rss_anon == ST_UNKNOWN ? UINT64_MAX
		                                                                          : before.left);
		if (first)
			joint->model->moments[MOMENT_START] = joint_moment(joint, party);
	}
	device_note(joint, party);
	joint_load_peaks(joint);
	if (party_lives(party))
		part_note(party, record->kind == ST_KIND_sample);
	if (joint_worth_a_look(joint, record))
		joint_show(joint, party, record);
	return 0;
}

static int joint_run(struct joint *joint)
{
	struct party *party;
	int error = 0;

	while (!error && (party = joint_next(joint))) {
		bool ends = party->next->kind == ST_KIND_exit;

		error = party_step(joint, party);
		if (!error)
			error = party_fetch(party);
		if (!error && !party->gone && (ends || !party->next))
			party_leave(joint, party);
		if (!error && !party->next)
			build_measure_finish(party->build);
	}
	return error;
}

/* --- all of it ------------------------------------------------------------------------------------ */

static int joint_open(struct joint *joint, struct run_total *total, const struct model_options *options,
                      const char **ret_bad)
{
	for (size_t i = 0; i < total->part_count; i++) {
		int error = party_open(&joint->parties[i], &total->parts[i], options, joint->first);

		if (error) {
			*ret_bad = total->parts[i].card->path;
			return error;
		}
	}
	return 0;
}

static int joint_finish(struct joint *joint, struct run_total *total)
{
	struct peak_look last = joint_look(joint);
	int error = 0;

	joint_close(joint, &last, &last, UINT64_MAX);
	peaks_date(joint->peaks, joint->model->moments);
	for (size_t i = 0; !error && i < joint->count; i++) {
		error = build_complete(joint->parties[i].build);
		total->parts[i].model = joint->parties[i].build->model;
	}
	if (error)
		return error;
	error = joint_model(joint);
	return error ? error : joint_files(joint, total);
}

/* Models stay with the total, which frees them. */
static void joint_release(struct joint *joint, struct run_total *total)
{
	for (size_t i = 0; i < joint->count; i++) {
		struct party *party = &joint->parties[i];

		if (party->build)
			total->parts[i].model = build_close(party->build);
		free(party->looked);
	}
	free(joint->parties);
}

static int card_compare(const void *left, const void *right)
{
	const struct run_card *a = ((const struct run_part *)left)->card,
			      *b = ((const struct run_part *)right)->card;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static struct run_total *total_new(struct run_card *const *cards, size_t count)
{
	struct run_total *total = calloc(1, sizeof(*total));

	if (!total)
		return NULL;
	total->parts = calloc(count, sizeof(*total->parts));
	total->model = calloc(1, sizeof(*total->model));
	if (!total->parts || !total->model) {
		run_total_free(total);
		return NULL;
	}
	total->part_count = count;
	for (size_t i = 0; i < count; i++)
		total->parts[i].card = cards[i];
	qsort(total->parts, count, sizeof(*total->parts), card_compare);
	return total;
}

int run_total_build(struct run_card *const *cards, size_t count, const struct model_options *options,
                    struct run_total **ret_total, const char **ret_bad)
{
	struct run_total *total = total_new(cards, count);
	struct joint joint = {.first = run_first_sample(cards, count), .count = count};
	int error = -ENOMEM;

	*ret_bad = NULL;
	joint.parties = calloc(count, sizeof(*joint.parties));
	if (total && joint.parties) {
		joint.model = total->model;
		error = joint_open(&joint, total, options, ret_bad);
		if (!error)
			error = joint_run(&joint);
		if (!error)
			error = joint_finish(&joint, total);
		joint_release(&joint, total);
	} else {
		free(joint.parties);
	}
	if (error)
		run_total_free(total);
	else
		*ret_total = total;
	return error;
}

void run_total_free(struct run_total *total)
{
	if (!total)
		return;
	for (size_t i = 0; i < total->part_count; i++) {
		model_free(total->parts[i].model);
		reader_free(total->parts[i].reader);
	}
	free(total->parts);
	free(total->files);
	model_free(total->model);
	free(total);
}
