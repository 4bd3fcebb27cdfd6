/* SPDX-License-Identifier: Apache-2.0 */
/* The third pass: peaks and moments, now that phases and scans are known. */
#include <analyzer/model_parts.h>

static void device_note(struct build *build)
{
	struct model *model = build->model;
	const struct residency *residency = &build->residency;

	if (residency->replay.device > model->device_peak) {
		model->device_peak = residency->replay.device;
		model->device_peak_time = build->record->time;
	}
	model->pinned_peak = bytes_max(model->pinned_peak, replay_pinned(&residency->replay));
	model->mapped_peak = bytes_max(model->mapped_peak, residency->replay.weights_mapped);
	model->staging_peak = bytes_max(model->staging_peak, residency->total.now.staging);
	model->context_bytes = bytes_max(model->context_bytes, residency->replay.context_bytes);
}

static void looked(struct build *build)
{
	residency_looked(&build->residency);
	build->seen_fresh = 0;
}

/*
 * H at the first weight byte is that of the last sample, or where there was none that of the next one: blocks that went
 * and came in between make the load's demand less or more than the difference. Blocks that came since the last sample
 * are the load's: it asks for its buffers before it reads.
 */
static void first_doubt(struct build *build, uint64_t less, uint64_t more)
{
	build->first_doubt = (struct range){less, more};
}

static void sample_take(struct build *build)
{
	const struct st_ev_sample *sample = (const void *)build->record;
	bool host = sample->rss_anon != ST_UNKNOWN;
	struct ledger before = build->ledger;

	ledger_sample(&build->ledger, sample);
	/* Before the first sample nothing is known to differ from it. */
	peaks_close(build, before.samples ? &before : &build->ledger,
	            host ? build->residency.replay.host_left : UINT64_MAX);
	if (!before.samples && build->model->moments[MOMENT_FIRST_WEIGHT].valid)
		first_doubt(build, build->residency.replay.host_left_old, residency_fresh(&build->residency));
	if (host)
		looked(build);
	if (!before.samples)
		build->model->moments[MOMENT_START] = build_moment(build);
}

static void told_note(struct build *build, const struct st_ev_get_info *record)
{
	struct model *model = build->model;
	const struct ledger *ledger = &build->ledger;
	bool sampled = ledger->samples != 0;

	if (record->result)
		return;
	model->told_last = (struct told){true,
	                                 record->r.time,
	                                 record->free,
	                                 record->total,
	                                 sampled ? ledger->last.free : ST_UNKNOWN,
	                                 sampled ? ledger->last.available : ST_UNKNOWN,
	                                 sampled ? ledger->last.time : ST_UNKNOWN};
	if (!model->told_first.valid)
		model->told_first = model->told_last;
}

static void settled_take(struct build *build)
{
	struct moment *settled = &build->model->moments[MOMENT_SETTLED];

	if (settled->valid)
		return;
	*settled = build_moment(build);
	settled->before = build->record != &build->final;
	settled->valid = !build->phases.unfinished;
	settled->phase = PHASE_SETTLE;
	residency_keep(&build->residency, POINT_SETTLED);
	build->settled_kept = true;
}

/* Moments that show the state before their record. */
static void moments_before(struct build *build)
{
	struct model *model = build->model;

	if (build->index == build->phases.first_weight) {
		struct moment *first = &model->moments[MOMENT_FIRST_WEIGHT];

		build->residency.replay.loading = true;
		*first = build_moment(build);
		first->before = true;
		if (change_is_known(first->layers.host)) {
			build->host_first_lo = first->layers.host.lo;
			build->host_first_hi = first->layers.host.hi;
		}
		if (build->ledger.samples)
			first_doubt(build, 0, build->residency.replay.host_left_old);
		else
			looked(build);
	}
	/* A load without steps has settled when the program begins to end. */
	if (build->index == (build->phases.settled ? build->phases.settled : build->phases.end))
		settled_take(build);
	if (build->next_failure < build->requests.count &&
	    build->index == build->requests.kept[build->next_failure].index) {
		if (&build->requests.kept[build->next_failure] == requests_fatal(&build->requests))
			whatif_death(build);
		build->requests.kept[build->next_failure].failure.at = build_moment(build);
		build->requests.kept[build->next_failure++].failure.at.before = true;
		model->told_failed = model->told_failed.valid ? model->told_failed : model->told_last;
	}
}

static void moments_after(struct build *build)
{
	if (build->index != build->phases.last_weight)
		return;
	build->model->moments[MOMENT_LAST_WEIGHT] = build_moment(build);
}

int build_measure_record(struct build *build, const struct st_record *record)
{
	enum phase before = build->phase;
	int error;

	if (build->whatif.stale && record->kind != ST_KIND_cached)
		whatif_settle(build);
	build->record = record;
	build->final = *record;
	build->index++;
	build->phase = phases_at(&build->phases, build->index);
	build->residency.loading = build->phase == PHASE_LOAD;
	moments_before(build);
	error = residency_record(&build->residency, record);
	if (!error)
		error = transients_record(&build->transients, record, build->phase, &build->residency.replay);
	if (error)
		return error;
	stages_record(&build->stages, record, build->phase);
	ledger_follow(&build->ledger);
	if (record->kind == ST_KIND_sample)
		sample_take(build);
	else if (record->kind == ST_KIND_get_info)
		told_note(build, (const void *)record);
	device_note(build);
	load_peaks_look(build);
	if (peaks_worth_a_look(build) || build->phase != before)
		peaks_look(build);
	moments_after(build);
	return 0;
}

void build_measure_finish(struct build *build)
{
	residency_finish(&build->residency);
	stages_finish(&build->stages, build->model->cpus, build->model->load.stages);
	/* The record itself is gone with the reader's last call; its head without fields stands for it. */
	build->final.kind = 0;
	if (build->record) {
		build->record = &build->final;
		device_note(build);
		load_peaks_look(build);
		peaks_look(build);
		if (build->badly && !requests_fatal(&build->requests))
			whatif_death(build);
		build->model->moments[MOMENT_END] = build_moment(build);
	}
	/* Of a trace that is no more than its head there is no moment at all. */
	if (!build->settled_kept && build->record)
		settled_take(build);
	peaks_finish(build);
}

void build_state_begin(struct build *build)
{
	reader_order_init(&build->order, build->reader);
	residency_init(&build->residency, &build->catalog, NULL);
	ledger_init(&build->ledger, &build->residency);
	build->residency.replay.revoked = build->revoked;
	build->residency.replay.revoked_count = build->revoked_count;
	build->residency.caps = build->caps;
	build->residency.cap_count = build->cap_count;
	build->residency.caps_known = true;
	build->caps = NULL;
	build->residency.converts = build_converts;
	build->residency.converts_context = build->model->stack_stages;
	build->residency.host_only = !build->phases.to_device;
	build->residency.projected = build->options.uma && build->model->pool == ST_POOL_DISCRETE;
	build->residency.judged = &build->judged;
	build->residency.known_fills = &build->fills;
	build->residency.is_arena = build_is_arena;
	build->residency.arena_context = build;
	build->residency.source_stacks = &build->source_stacks;
	build->residency.done_times = build->done_times;
	build->residency.done_count = build->done_count;
	build->index = 0;
}

void build_measure_begin(struct build *build)
{
	build_state_begin(build);
	stages_init(&build->stages, build->model->stack_stages, &build->residency);
	whatif_begin(build);
}
