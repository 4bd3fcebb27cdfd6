/* SPDX-License-Identifier: Apache-2.0 */
/* The third pass, peaks: which states are maxima of what. */
#include <analyzer/model_parts.h>

const struct peak_row peak_rows[PEAK_COUNT] = {
	[PEAK_DEMAND] = {QUANTITY_DEMAND, STRETCH_RUN, MOMENT_DEMAND_PEAK},
	[PEAK_RESIDENT] = {QUANTITY_RESIDENT, STRETCH_RUN, MOMENT_RESIDENT_PEAK},
	[PEAK_MODELLED] = {QUANTITY_MODELLED, STRETCH_RUN, MOMENT_COUNT},
	[PEAK_REPAIRED] = {QUANTITY_REPAIRED, STRETCH_RUN, MOMENT_COUNT},
	[PEAK_STEPS] = {QUANTITY_DEMAND, STRETCH_STEPS, MOMENT_STEPS_PEAK},
	[PEAK_LOAD_DEMAND] = {QUANTITY_DEMAND, STRETCH_LOAD, MOMENT_LOAD_DEMAND_PEAK},
	[PEAK_LOAD_MODELLED] = {QUANTITY_MODELLED, STRETCH_LOAD, MOMENT_LOAD_MODELLED_PEAK},
	[PEAK_LOAD_RESIDENT] = {QUANTITY_RESIDENT, STRETCH_LOAD, MOMENT_LOAD_RESIDENT_PEAK},
};

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

bool stretch_has(enum stretch stretch, enum phase phase)
{
	if (stretch == STRETCH_LOAD)
		return phase_is_load(phase);
	if (stretch == STRETCH_STEPS)
		return phase == PHASE_STEPS;
	/* What others do while the program ends, or has ended, is no need of it. */
	return phase != PHASE_END;
}

static void sampled_look(const struct ledger *ledger, struct change sampled[QUANTITY_COUNT])
{
	struct change change = ledger_sampled(ledger);
	int64_t cache = (int64_t)ledger_cache(ledger);

	sampled[QUANTITY_DEMAND] = change;
	sampled[QUANTITY_RESIDENT] = (struct change){change.lo + cache, change.hi + cache};
	sampled[QUANTITY_MODELLED] = (struct change){0, 0};
	sampled[QUANTITY_REPAIRED] = ledger_sampled_without_anon(ledger);
}

struct peak_look peaks_state(const struct build *build)
{
	struct peak_look look;
	struct range demand = ledger_exact(&build->ledger);

	sampled_look(&build->ledger, look.sampled);
	look.exact[QUANTITY_DEMAND] = demand;
	look.exact[QUANTITY_MODELLED] = ledger_modelled(&build->ledger);
	look.exact[QUANTITY_REPAIRED] = repaired_exact(build, demand);
	look.exact[QUANTITY_RESIDENT] = range_add(demand, ledger_resident_extra(&build->ledger));
	look.fresh = ledger_fresh(&build->ledger);
	look.left = build->residency.replay.host_left;
	return look;
}

/* Maxima of the load that are no moment of their own. */
static void load_note(struct build *build)
{
	const struct amounts *total = &build->residency.total.now;
	struct load *load = &build->model->load;
	struct layers layers = ledger_layers(&build->ledger);

	load->reclaimable = range_max(load->reclaimable, residency_reclaimable(&build->residency));
	load->anon = range_max(load->anon, layers.anon);
	load->duplicated = range_max(load->duplicated, range_add(layers.anon, range_of(total->staging)));
	load->staging = bytes_max(load->staging, layers.staging);
	load->staging_all = bytes_max(load->staging_all, total->staging);
	load->pinned = bytes_max(load->pinned, layers.pinned);
	load->device = bytes_max(load->device, layers.device);
	load->mapped = bytes_max(load->mapped, build->residency.replay.weights_mapped);
	if (change_is_known(layers.host)) {
		int64_t lo = layers.host.lo - build->host_first_hi,
			hi = layers.host.hi - build->host_first_lo;
		struct range rise = {lo > 0 ? (uint64_t)lo : 0, hi > 0 ? (uint64_t)hi : 0};

		load->host = range_max(load->host, rise);
	}
}

/* Is there anything that a peak might not have seen yet? Most records of a long run change nothing. */
bool peaks_worth_a_look(struct build *build)
{
	const struct residency *residency = &build->residency;
	uint64_t blocks = residency->replay.device + replay_pinned(&residency->replay);
	uint64_t host =
		residency->total.now.anon + residency->total.now.anon_possible + residency->total.now.staging;
	uint16_t kind = build->record->kind;
	bool worth = kind == ST_KIND_sample || kind == ST_KIND_cached || kind == ST_KIND_anon;

	worth |= phase_is_load(build->phase) && (kind == ST_KIND_copy || kind == ST_KIND_read ||
	                                         kind == ST_KIND_map || kind == ST_KIND_remap);
	worth |= blocks > build->seen_blocks || host != build->seen_host;
	worth |= residency_fresh(residency) > build->seen_fresh;
	if (worth) {
		build->seen_fresh = residency_fresh(residency);
		build->seen_blocks = kind == ST_KIND_sample || host != build->seen_host
		                             ? blocks
		                             : bytes_max(blocks, build->seen_blocks);
		build->seen_host = host;
	}
	return worth;
}

/*
 * Device memory is often allocated long before it is filled: the peak of a load is a plateau, and what matters of
 * weights and their copies is how they stand at its end. Page cache is looked at after the sample that it
 * belongs to.
 */
static bool plateau_is_seen(const struct build *build)
{
	return phase_is_load(build->phase) || build->record->kind == ST_KIND_cached;
}

unsigned peaks_show(struct peak peaks[PEAK_COUNT], const struct peak_look *look,
                    const struct instant *instant, const struct peak_sight *sight)
{
	unsigned risen = 0;

	for (unsigned i = 0; i < PEAK_COUNT; i++) {
		struct range exact = look->exact[peak_rows[i].quantity];
		struct change change = look->sampled[peak_rows[i].quantity];

		if (!stretch_has(peak_rows[i].stretch, sight->phase))
			continue;
		bool sampled = peak_rows[i].quantity != QUANTITY_MODELLED;

		if (peak_note(&peaks[i], exact, change, sampled ? look->fresh : 0, instant) ||
		    (sight->plateau && peak_is_at(&peaks[i], exact, change)))
			risen |= 1u << i;
		if (sight->sampled)
			peak_sampled(&peaks[i], exact, change);
	}
	return risen;
}

void peaks_look(struct build *build)
{
	struct peak_look look = peaks_state(build);
	struct instant instant = build_instant(build);
	struct peak_sight sight = {build->phase, plateau_is_seen(build),
	                           build->record->kind == ST_KIND_sample};
	unsigned risen = peaks_show(build->peaks, &look, &instant, &sight);
	const struct peak *modelled = &build->peaks[PEAK_LOAD_MODELLED];
	struct moment moment;

	if (build->whatif.active)
		whatif_look(build);
	if (phase_is_load(build->phase)) {
		if (look.exact[QUANTITY_MODELLED].hi + PEAK_NEAR >= modelled->value)
			residency_keep(&build->residency, POINT_LOAD_PEAK);
		load_note(build);
	}
	if (!risen)
		return;
	if (risen & 1u << PEAK_DEMAND)
		residency_keep(&build->residency, POINT_DEMAND_PEAK);
	moment = build_moment(build);
	for (unsigned i = 0; i < PEAK_COUNT; i++)
		if (risen & 1u << i && peak_rows[i].moment != MOMENT_COUNT)
			build->model->moments[peak_rows[i].moment] = moment;
}

void peaks_close(struct build *build, const struct ledger *before, uint64_t left)
{
	struct change was[QUANTITY_COUNT], is[QUANTITY_COUNT];

	sampled_look(before, was);
	sampled_look(&build->ledger, is);
	for (unsigned i = 0; i < PEAK_COUNT; i++)
		peak_close(&build->peaks[i], was[peak_rows[i].quantity], is[peak_rows[i].quantity], left);
	if (build->whatif.active)
		whatif_close(build, before, left);
}

/* The range that a moment of this peak shows as its own. */
static struct range *moment_range(struct moment *moment, enum quantity quantity)
{
	if (quantity == QUANTITY_RESIDENT)
		return &moment->resident;
	return quantity == QUANTITY_MODELLED ? &moment->modelled : &moment->demand;
}

void peaks_date(const struct peak peaks[PEAK_COUNT], struct moment moments[MOMENT_COUNT])
{
	for (unsigned i = 0; i < PEAK_COUNT; i++) {
		const struct peak *peak = &peaks[i];
		struct moment *moment;

		if (!peak->any || peak_rows[i].moment == MOMENT_COUNT)
			continue;
		moment = &moments[peak_rows[i].moment];
		moment_date(moment, peak_instant(peak));
		*moment_range(moment, peak_rows[i].quantity) = peak_range(peak);
	}
}

void peaks_finish(struct build *build)
{
	peaks_close(build, &build->ledger, UINT64_MAX);
	peaks_date(build->peaks, build->model->moments);
}
