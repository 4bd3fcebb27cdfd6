/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool at one moment, when somebody asks for it: a fourth pass, which ends there, over what the others know. A moment
 * that the measuring pass has kept comes with its own figures; what only the state of that instant tells (whose
 * blocks, which files, which mappings) is added to it.
 */
#include <analyzer/event.h>
#include <analyzer/model_parts.h>
#include <analyzer/model_snapshot.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DAY (UINT64_C(86400) * 1000000000)

static const enum moment_name moments[WHEN_WORD_COUNT] = {
	[WHEN_START] = MOMENT_START,
	[WHEN_FIRST_WEIGHT] = MOMENT_FIRST_WEIGHT,
	[WHEN_LOAD_PEAK] = MOMENT_LOAD_MODELLED_PEAK,
	[WHEN_LAST_WEIGHT] = MOMENT_LAST_WEIGHT,
	[WHEN_SETTLED] = MOMENT_SETTLED,
	[WHEN_STEPS_PEAK] = MOMENT_STEPS_PEAK,
	[WHEN_PEAK] = MOMENT_DEMAND_PEAK,
	[WHEN_RESIDENT_PEAK] = MOMENT_RESIDENT_PEAK,
	[WHEN_FAILURE] = MOMENT_FAILURE,
	[WHEN_END] = MOMENT_END,
};

/*
 * Where the pass ends: before or after a record. Or what it takes: all up to a time; the recorder's own records and those
 * of several threads are not in the order of their times.
 */
struct stop {
	uint64_t index; /* 0: told by the time */
	bool before;
	uint64_t time;
};

/* The time of day at the program's start, in the time zone of its machine. */
static uint64_t clock_at_begin(const struct model *model)
{
	uint64_t zone = (uint64_t)(model->utc_offset % 86400 + 86400) * 1000000000;

	return (model->realtime - model->monotonic + model->begin + zone) % DAY;
}

/*
 * A clock time is the first such one since the program's start: a run may go on over midnight. One that the run did not
 * come to is the one before its start where that is nearer.
 */
static enum snapshot_state stop_at_time(const struct model *model, const struct when *when,
                                        struct stop *ret_stop)
{
	uint64_t since = when->value;

	if (when->kind == WHEN_CLOCK)
		since = (when->value + DAY - clock_at_begin(model)) % DAY;
	ret_stop->time = bytes_add(model->begin, since);
	if (ret_stop->time <= model->end)
		return SNAPSHOT_SHOWN;
	return when->kind == WHEN_CLOCK && since > DAY / 2 ? SNAPSHOT_BEFORE : SNAPSHOT_AFTER;
}

static enum snapshot_state stop_find(const struct model *model, const struct when *when,
                                     struct stop *ret_stop)
{
	const struct moment *moment;

	*ret_stop = (struct stop){0};
	if (when->kind != WHEN_WORD) {
		if (when->kind == WHEN_CLOCK && !model->realtime)
			return SNAPSHOT_NO_CLOCK;
		return stop_at_time(model, when, ret_stop);
	}
	moment = &model->moments[moments[when->value]];
	ret_stop->time = moment->time;
	ret_stop->index = moment->index;
	ret_stop->before = moment->before;
	return moment->valid && moment->index ? SNAPSHOT_SHOWN : SNAPSHOT_NEVER;
}

/* --- what was there -------------------------------------------------------------------------- */

static int sum_compare(const void *left, const void *right)
{
	const struct snapshot_block *a = left, *b = right;

	if (a->region != b->region)
		return a->region < b->region ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static int block_compare(const void *left, const void *right)
{
	const struct snapshot_block *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return sum_compare(left, right);
}

struct gathering {
	struct snapshot_block *blocks;
	size_t count;
	enum snapshot_region region;
};

static void gather(void *context, const struct span *piece)
{
	struct gathering *gathering = context;

	gathering->blocks[gathering->count++] =
		(struct snapshot_block){gathering->region, (uint32_t)piece->a, 1, piece->hi - piece->lo};
}

/* Blocks of one stack become one row. */
static size_t blocks_join(struct snapshot_block *blocks, size_t count)
{
	size_t kept = 0;

	qsort(blocks, count, sizeof(*blocks), sum_compare);
	for (size_t i = 0; i < count; i++) {
		if (kept && !sum_compare(&blocks[kept - 1], &blocks[i])) {
			blocks[kept - 1].bytes += blocks[i].bytes;
			blocks[kept - 1].count += blocks[i].count;
		} else {
			blocks[kept++] = blocks[i];
		}
	}
	qsort(blocks, kept, sizeof(*blocks), block_compare);
	return kept;
}

static int blocks_fill(const struct residency *residency, struct snapshot *snapshot)
{
	const struct replay *replay = &residency->replay;
	struct gathering gathering = {.region = SNAPSHOT_PINNED};
	size_t room = residency->holding_room + replay->pinned.count + replay->host.count;

	gathering.blocks = calloc(room + 1, sizeof(*gathering.blocks));
	if (!gathering.blocks)
		return -ENOMEM;
	livemap_each(&replay->pinned, 0, UINT64_MAX, gather, &gathering);
	gathering.region = SNAPSHOT_HOST;
	livemap_each(&replay->host, 0, UINT64_MAX, gather, &gathering);
	for (size_t i = 0; i < residency->holding_room; i++) {
		const struct holding *holding = &residency->holdings[i];

		if (holding->kept.epoch[0] != UINT32_MAX && holding->kept.now.device)
			gathering.blocks[gathering.count++] = (struct snapshot_block){
				SNAPSHOT_DEVICE, holding->stack, 0, holding->kept.now.device};
	}
	snapshot->blocks = gathering.blocks;
	snapshot->block_count = blocks_join(gathering.blocks, gathering.count);
	return 0;
}

static int files_fill(const struct build *build, struct snapshot *snapshot)
{
	const struct residency *residency = &build->residency;
	size_t count = build->catalog.file_count, groups = 0;

	snapshot->files = calloc(count + 1, sizeof(*snapshot->files));
	if (!snapshot->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && i < residency->weight_room; i++) {
		snapshot->files[i].at = file_at(build, i, POINT_COUNT);
		snapshot->files[i].mapped = residency->weights[i].mapped;
		snapshot->files[i].touched = residency->weights[i].first_touch != 0;
		groups += residency->weights[i].group_count;
	}
	snapshot->mappings = calloc(groups + 1, sizeof(*snapshot->mappings));
	if (!snapshot->mappings)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && i < residency->weight_room; i++)
		for (uint32_t k = 0; k < residency->weights[i].group_count; k++) {
			const struct map_group *group = &residency->weights[i].groups[k];

			if (group->live)
				snapshot->mappings[snapshot->mapping_count++] = (struct snapshot_mapping){
					i, group->prot, group->flags, group->stack, group->live};
		}
	return 0;
}

static int snapshot_fill(struct build *build, const struct stop *stop, struct snapshot *snapshot)
{
	const struct when *when = &build->options.at;
	int error;

	if (when->kind == WHEN_WORD) {
		snapshot->moment = build->model->moments[moments[when->value]];
	} else {
		snapshot->moment = build_moment(build);
		snapshot->moment.time = stop->time;
		snapshot->moment.thread = snapshot->thread;
		snapshot->moment.stack = snapshot->stack;
	}
	error = files_fill(build, snapshot);
	return error ? error : blocks_fill(&build->residency, snapshot);
}

/* --- the pass -------------------------------------------------------------------------------- */

/* What the program did; all else is what was noted beside it. */
static void event_note(struct snapshot *snapshot, const struct st_record *record)
{
	bool did = record->kind >= ST_KIND_map && record->kind < ST_KIND_sample;
	const struct event_kind *kind = did ? event_kind_find(record->kind) : NULL;

	if (!kind)
		return;
	snapshot->event = kind->name;
	snapshot->event_time = record->time;
	snapshot->thread = record->thread;
	snapshot->stack = record_stack(record);
}

static int at_record(struct build *build, const struct st_record *record, struct snapshot *snapshot)
{
	int error;

	build->phase = phases_at(&build->phases, build->index);
	build->residency.loading = build->phase == PHASE_LOAD;
	error = residency_record(&build->residency, record);
	if (error)
		return error;
	ledger_follow(&build->ledger);
	if (record->kind == ST_KIND_sample)
		ledger_sample(&build->ledger, (const void *)record);
	event_note(snapshot, record);
	build->final = *record;
	build->final.kind = 0;
	return 0;
}

/* 1: the pass goes on; 0: it is over; -ENOMEM. */
static int at_step(struct build *build, const struct stop *stop, const struct st_record *record,
                   struct snapshot *snapshot)
{
	bool here = ++build->index == stop->index;
	int error;

	if (!stop->index && record->time > stop->time)
		return 1;
	if (here && stop->before) {
		event_note(snapshot, record);
		return 0;
	}
	error = at_record(build, record, snapshot);
	return error ? error : !here;
}

static int at_pass(struct build *build, const struct stop *stop, struct snapshot *snapshot)
{
	const struct st_record *record;
	int rc, more = 1;

	while (more > 0 && (rc = reader_order_next(&build->order, &record)) > 0)
		more = at_step(build, stop, record, snapshot);
	if (more < 0)
		return more;
	if (more > 0 && rc < 0)
		return rc;
	if (more > 0)
		residency_finish(&build->residency);
	return snapshot_fill(build, stop, snapshot);
}

int build_at(struct build *build)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	struct stop stop;

	if (!snapshot)
		return -ENOMEM;
	build->model->at = snapshot;
	snapshot->state = stop_find(build->model, &build->options.at, &stop);
	snapshot->moment.time = stop.time;
	if (snapshot->state != SNAPSHOT_SHOWN)
		return 0;
	/* What the survey found of anonymous copies serves this pass as it served the one before. */
	build->caps = build->residency.caps;
	build->residency.caps = NULL;
	residency_release(&build->residency);
	reader_order_release(&build->order);
	build_state_begin(build);
	build->final = (struct st_record){0};
	build->record = &build->final;
	return at_pass(build, &stop, snapshot);
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->files);
	free(snapshot->mappings);
	free(snapshot->blocks);
	free(snapshot);
}
