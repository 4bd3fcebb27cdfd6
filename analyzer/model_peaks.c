/* SPDX-License-Identifier: Apache-2.0 */
/* The third pass, peaks: which states are maxima of what. */
#include <analyzer/model_parts.h>

/* M without what rung 1b would save: anonymous copies and staging beyond U. */
static struct range repaired_exact(const struct build *build, struct range exact)
{
	struct range held = range_add(ledger_anon(&build->ledger), range_of(ledger_staging(&build->ledger)));

	return (struct range){bytes_sub(exact.lo, bytes_sub(held.lo, build->spare)),
			      bytes_sub(exact.hi, bytes_sub(held.hi, build->spare))};
}

static bool phase_is_load(enum phase phase)
{
	return phase == PHASE_LOAD || phase == PHASE_SETTLE;
}

struct look {
	struct range exact, modelled, repaired, resident;
	struct change sampled, with_cache;
};

static struct look look_now(const struct build *build)
{
	struct look look = {.exact = ledger_exact(&build->ledger), .modelled = ledger_modelled(&build->ledger),
			    .sampled = ledger_sampled(&build->ledger)};
	int64_t cache = (int64_t)ledger_cache(&build->ledger);

	look.with_cache = (struct change){look.sampled.lo + cache, look.sampled.hi + cache};
	look.repaired = repaired_exact(build, look.exact);
	look.resident = range_add(look.exact, ledger_resident_extra(&build->ledger));
	return look;
}

/* Shows one peak what it is a maximum of. */
typedef bool look_use(struct peak *peak, struct range exact, struct change sampled, const struct instant *instant);

static unsigned peaks_show(struct build *build, const struct look *look, look_use *use, const struct instant *instant)
{
	const struct change none = {0, 0};
	struct peak *peaks = build->peaks;
	unsigned risen = 0;

	risen |= (unsigned)use(&peaks[PEAK_DEMAND], look->exact, look->sampled, instant) << PEAK_DEMAND;
	risen |= (unsigned)use(&peaks[PEAK_RESIDENT], look->resident, look->with_cache, instant) << PEAK_RESIDENT;
	risen |= (unsigned)use(&peaks[PEAK_MODELLED], look->modelled, none, instant) << PEAK_MODELLED;
	risen |= (unsigned)use(&peaks[PEAK_REPAIRED], look->repaired, look->sampled, instant) << PEAK_REPAIRED;
	if (build->phase == PHASE_STEPS)
		risen |= (unsigned)use(&peaks[PEAK_STEPS], look->exact, look->sampled, instant) << PEAK_STEPS;
	if (!phase_is_load(build->phase))
		return risen;
	risen |= (unsigned)use(&peaks[PEAK_LOAD_DEMAND], look->exact, look->sampled, instant) << PEAK_LOAD_DEMAND;
	risen |= (unsigned)use(&peaks[PEAK_LOAD_MODELLED], look->modelled, none, instant) << PEAK_LOAD_MODELLED;
	risen |= (unsigned)use(&peaks[PEAK_LOAD_RESIDENT], look->resident, look->with_cache, instant)
		 << PEAK_LOAD_RESIDENT;
	return risen;
}

static bool use_sampled(struct peak *peak, struct range exact, struct change sampled, const struct instant *instant)
{
	(void)instant;
	peak_sampled(peak, exact, sampled);
	return false;
}

static const struct {
	enum peak_name peak;
	enum moment_name moment;
} peak_moments[] = {
	{PEAK_DEMAND, MOMENT_DEMAND_PEAK},	     {PEAK_RESIDENT, MOMENT_RESIDENT_PEAK},
	{PEAK_STEPS, MOMENT_STEPS_PEAK},	     {PEAK_LOAD_DEMAND, MOMENT_LOAD_DEMAND_PEAK},
	{PEAK_LOAD_MODELLED, MOMENT_LOAD_MODELLED_PEAK}, {PEAK_LOAD_RESIDENT, MOMENT_LOAD_RESIDENT_PEAK},
};

#define PEAK_MOMENTS (sizeof(peak_moments) / sizeof(*peak_moments))

/* Maxima of the load that are no moment of their own. */
static void load_note(struct build *build)
{
	const struct amounts *total = &build->residency.total.now;
	struct load *load = &build->model->load;
	struct layers layers = ledger_layers(&build->ledger);
	struct range vague = {total->reclaimable_lo, bytes_add(total->reclaimable_hi, total->vague)};

	load->reclaimable = range_max(load->reclaimable, vague);
	load->anon = range_max(load->anon, layers.anon);
	load->duplicated = range_max(load->duplicated, range_add(layers.anon, range_of(total->staging)));
	load->staging = bytes_max(load->staging, layers.staging);
	load->staging_all = bytes_max(load->staging_all, total->staging);
	load->pinned = bytes_max(load->pinned, layers.pinned);
	load->device = bytes_max(load->device, layers.device);
	load->mapped = bytes_max(load->mapped, build->residency.replay.weights_mapped);
	if (change_is_known(layers.host)) {
		int64_t lo = layers.host.lo - build->host_first_hi, hi = layers.host.hi - build->host_first_lo;
		struct range rise = {lo > 0 ? (uint64_t)lo : 0, hi > 0 ? (uint64_t)hi : 0};

		load->host = range_max(load->host, rise);
	}
}

/* Is there anything that a peak might not have seen yet? Most records of a long run change nothing. */
bool peaks_worth_a_look(struct build *build)
{
	const struct residency *residency = &build->residency;
	uint64_t blocks = residency->replay.device + replay_pinned(&residency->replay);
	uint64_t host = residency->total.now.anon + residency->total.now.anon_possible + residency->total.now.staging;
	uint16_t kind = build->record->kind;
	bool worth = kind == ST_KIND_sample || kind == ST_KIND_cached || kind == ST_KIND_anon;

	worth |= phase_is_load(build->phase) &&
		 (kind == ST_KIND_copy || kind == ST_KIND_read || kind == ST_KIND_map || kind == ST_KIND_remap);
	worth |= blocks > build->seen_blocks || host != build->seen_host;
	if (worth) {
		build->seen_blocks = kind == ST_KIND_sample || host != build->seen_host
					     ? blocks : bytes_max(blocks, build->seen_blocks);
		build->seen_host = host;
	}
	return worth;
}

void peaks_look(struct build *build)
{
	struct look look = look_now(build);
	struct instant instant = build_instant(build);
	unsigned risen = peaks_show(build, &look, peak_note, &instant);

	if (build->record->kind == ST_KIND_sample)
		peaks_show(build, &look, use_sampled, &instant);
	if (risen & 1u << PEAK_LOAD_MODELLED)
		residency_keep(&build->residency, POINT_LOAD_PEAK);
	if (risen & 1u << PEAK_DEMAND)
		residency_keep(&build->residency, POINT_DEMAND_PEAK);
	for (size_t i = 0; i < PEAK_MOMENTS; i++)
		if (risen & 1u << peak_moments[i].peak)
			build->model->moments[peak_moments[i].moment] = build_moment(build);
	if (phase_is_load(build->phase))
		load_note(build);
}

void peaks_close(struct build *build, struct change before, uint64_t cache_before)
{
	const struct change none = {0, 0};
	struct change after = ledger_sampled(&build->ledger);
	int64_t was = (int64_t)cache_before, is = (int64_t)ledger_cache(&build->ledger);
	struct change cached_before = {before.lo + was, before.hi + was}, cached_after = {after.lo + is, after.hi + is};

	for (int i = 0; i < PEAK_COUNT; i++) {
		bool cached = i == PEAK_RESIDENT || i == PEAK_LOAD_RESIDENT;
		bool modelled = i == PEAK_MODELLED || i == PEAK_LOAD_MODELLED;

		if (modelled)
			peak_close(&build->peaks[i], none, none);
		else
			peak_close(&build->peaks[i], cached ? cached_before : before, cached ? cached_after : after);
	}
}

void peaks_finish(struct build *build)
{
	struct model *model = build->model;

	peaks_close(build, ledger_sampled(&build->ledger), ledger_cache(&build->ledger));
	for (size_t i = 0; i < PEAK_MOMENTS; i++) {
		const struct peak *peak = &build->peaks[peak_moments[i].peak];
		struct moment *moment = &model->moments[peak_moments[i].moment];

		if (!peak->any)
			continue;
		moment_date(moment, peak_instant(peak));
		if (peak_moments[i].peak == PEAK_RESIDENT || peak_moments[i].peak == PEAK_LOAD_RESIDENT)
			moment->resident = peak_range(peak);
		else if (peak_moments[i].peak == PEAK_LOAD_MODELLED)
			moment->modelled = peak_range(peak);
		else
			moment->demand = peak_range(peak);
	}
}
