/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/model_parts.h>

#define COPY_ON_WRITE                                                                              \
	(1u << EFFECT_READONLY | 1u << EFFECT_SLOTS | 1u << EFFECT_TENSOR | 1u << EFFECT_RELEASE | \
	 1u << EFFECT_READONLY_DROP)
#define READS  (1u << EFFECT_MAPPED | 1u << EFFECT_STREAM)
#define ALWAYS (1u << EFFECT_BOUNCE | 1u << EFFECT_DROP | 1u << EFFECT_DIRECT)
#define CACHE_IS_LESS \
	(1u << EFFECT_BOUNCE | 1u << EFFECT_DROP | 1u << EFFECT_DIRECT | 1u << EFFECT_READONLY_DROP)

void whatif_survey(struct build *build)
{
	const struct residency *residency = &build->residency;
	struct whatif *whatif = &build->whatif;

	whatif->cow_seen = residency->from[COPY_PRIVATE_WRITABLE] &&
	                   (build->model->pool != ST_POOL_DISCRETE || build->options.uma);
	for (uint32_t i = 0; i < residency->weight_room; i++)
		whatif->reads_seen |= residency->weights[i].read_bytes != 0;
}

void whatif_begin(struct build *build)
{
	struct whatif *whatif = &build->whatif;

	if (!build->phases.first_weight || !build->phases.to_device)
		return;
	for (size_t i = 0; i < build->catalog.tensor_count; i++)
		whatif->largest_tensor = bytes_max(whatif->largest_tensor, build->catalog.tensors[i].size);
	whatif->active = ALWAYS;
	whatif->active |= whatif->cow_seen ? COPY_ON_WRITE : 0;
	whatif->active |= whatif->reads_seen ? READS : 0;
	whatif->active |= build->thread_count > 1 ? 1u << EFFECT_ONE_THREAD : 0;
}

static struct range range_ordered(struct range range)
{
	return (struct range){bytes_min(range.lo, range.hi), bytes_max(range.lo, range.hi)};
}

static bool phase_is_load(enum phase phase)
{
	return phase == PHASE_LOAD || phase == PHASE_SETTLE;
}

/* V and what the way of loading puts beside it. */
static struct range exact_modelled(const struct build *build, const struct imagined *is)
{
	struct range sum = range_add(range_of(build->residency.replay.device), is->pinned);

	return range_add(range_add(sum, is->anon), is->staging);
}

/* As ledger_exact(): of staging only what came since the last sample, which has the rest in H. */
static struct range exact_demand(const struct build *build, const struct imagined *is, struct range modelled)
{
	const struct ledger *ledger = &build->ledger;
	uint64_t staging = ledger_staging(ledger), new = bytes_sub(staging, ledger->staging_then);

	if (!ledger->host_seen || is->other_staging)
		return modelled;
	return (struct range){modelled.lo - staging + new, modelled.hi - staging + new};
}

/* Sums of damaged values end at the largest. */
static int64_t signed_of(uint64_t bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static int64_t signed_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

/* What the last sample adds to the demand. */
static struct change sampled_demand(const struct ledger *ledger, enum effect effect,
                                    const struct imagined *is)
{
	struct change change =
		effect_rows[effect].no_copies ? ledger_sampled_without_anon(ledger) : ledger_sampled(ledger);
	struct range gone = is->heap;

	if (!ledger->host_seen || !is->other_staging)
		return change;
	gone = range_max(gone, range_of(ledger->staging_then));
	return (struct change){signed_add(change.lo, -signed_of(gone.hi)),
	                       signed_add(change.hi, -signed_of(gone.lo))};
}

static void crest_note(struct crest *crest, struct range exact, uint64_t fresh)
{
	crest->most = bytes_max(crest->is_open ? crest->most : 0, bytes_add(exact.hi, fresh));
	crest->open = crest->is_open ? range_max(crest->open, exact) : exact;
	crest->is_open = true;
}

static void crest_sampled(struct crest *crest, struct range exact, struct change sampled)
{
	crest->largest = range_max(crest->largest, range_ordered(range_move(exact, sampled)));
}

static void crest_close(struct crest *crest, struct change before, struct change after, uint64_t left)
{
	struct change between = {before.lo < after.lo ? before.lo : after.lo,
	                         before.hi > after.hi ? before.hi : after.hi};

	if (crest->is_open) {
		uint64_t unseen = peak_unseen(crest->open, crest->most, before, after, left);

		crest_sampled(crest, crest->open, between);
		crest->largest.hi = bytes_max(crest->largest.hi, unseen);
	}
	crest->is_open = false;
}

/* R: the pool's page cache is that of the last sample. */
static struct range exact_resident(const struct build *build, const struct imagined *is, struct range demand)
{
	struct range cached =
		range_add(range_of(ledger_cache(&build->ledger)), ledger_resident_extra(&build->ledger));
	uint64_t others = bytes_sub(cached.hi, whatif_cached(build).hi);

	cached.lo = bytes_sub(cached.lo, is->uncached.hi);
	cached.hi = bytes_min(bytes_sub(cached.hi, is->uncached.lo), bytes_add(others, is->cache_left));
	cached.lo = bytes_min(cached.lo, cached.hi);
	return range_add(demand, cached);
}

static void effect_look(struct build *build, enum effect effect, bool sampled)
{
	struct crest *crests = build->whatif.crests[effect];
	struct imagined is = effect_rows[effect].imagine(build);
	struct range modelled = exact_modelled(build, &is), demand = exact_demand(build, &is, modelled);
	struct change change = sampled ? sampled_demand(&build->ledger, effect, &is) : (struct change){0, 0};
	/* Where weights would not go through the heap, blocks for them would not come. */
	uint64_t fresh = is.other_staging ? 0 : ledger_fresh(&build->ledger);

	crest_note(&crests[CREST_DEMAND], demand, fresh);
	if (sampled)
		crest_sampled(&crests[CREST_DEMAND], demand, change);
	if (!phase_is_load(build->phase))
		return;
	crest_note(&crests[CREST_MODELLED], modelled, 0);
	if (build->whatif.stale && 1u << effect & CACHE_IS_LESS)
		return;
	demand = exact_resident(build, &is, demand);
	crest_note(&crests[CREST_RESIDENT], demand, fresh);
	if (sampled)
		crest_sampled(&crests[CREST_RESIDENT], demand, change);
}

void whatif_look(struct build *build)
{
	uint16_t kind = build->record->kind;

	build->model->load.pinned_sources =
		bytes_max(build->model->load.pinned_sources, build->residency.held.pinned_sources);
	build->whatif.stale = kind == ST_KIND_sample || kind == ST_KIND_cached;
	for (unsigned effect = 0; effect < EFFECT_COUNT && build->phase != PHASE_END; effect++)
		if (build->whatif.active >> effect & 1)
			effect_look(build, (enum effect)effect, kind == ST_KIND_sample);
}

void whatif_settle(struct build *build)
{
	build->whatif.stale = false;
	for (unsigned effect = 0; effect < EFFECT_COUNT && phase_is_load(build->phase); effect++)
		if (build->whatif.active & CACHE_IS_LESS & 1u << effect)
			effect_look(build, (enum effect)effect, false);
}

void whatif_close(struct build *build, const struct ledger *before, uint64_t left)
{
	struct whatif *whatif = &build->whatif;
	uint64_t cache = ledger_cache(&build->ledger);
	int64_t rise = signed_of(bytes_sub(cache, whatif->cache_then));
	struct range heap = whatif_heap(build), then = whatif->heap_then;

	for (unsigned effect = 0; effect < EFFECT_COUNT; effect++) {
		struct crest *crests = whatif->crests[effect];
		struct imagined is;
		struct change was, now;

		if (!(whatif->active >> effect & 1))
			continue;
		whatif->heap_then = then;
		is = effect_rows[effect].imagine(build);
		was = sampled_demand(before, (enum effect)effect, &is);
		whatif->heap_then = heap;
		is = effect_rows[effect].imagine(build);
		now = sampled_demand(&build->ledger, (enum effect)effect, &is);
		crest_close(&crests[CREST_DEMAND], was, now, left);
		crest_close(&crests[CREST_MODELLED], (struct change){0, 0}, (struct change){0, 0}, 0);
		now.hi = signed_add(now.hi, rise);
		crest_close(&crests[CREST_RESIDENT], was, now, left);
	}
	whatif->heap_then = heap;
	whatif->cache_then = cache;
}

void whatif_death(struct build *build)
{
	for (unsigned effect = 0; effect < EFFECT_COUNT; effect++) {
		struct range *at = build->whatif.at_death[effect];
		struct imagined is;

		if (!(build->whatif.active >> effect & 1))
			continue;
		is = effect_rows[effect].imagine(build);
		at[CREST_MODELLED] = exact_modelled(build, &is);
		at[CREST_DEMAND] =
			range_ordered(range_move(exact_demand(build, &is, at[CREST_MODELLED]),
		                                 sampled_demand(&build->ledger, (enum effect)effect, &is)));
	}
}

/* With the rest of a load that died: anonymous copies are carried on only where the effect keeps them. */
static struct range with_rest(const struct build *build, enum effect effect, enum crest_name crest)
{
	const struct model *model = build->model;
	struct range at = build->whatif.at_death[effect][crest], rest = build->whatif.rest;
	struct range largest = build->whatif.crests[effect][crest].largest;

	if (model->needed.died_in == PHASE_COUNT)
		return largest;
	if (!effect_rows[effect].no_copies && effect != EFFECT_RELEASE)
		rest = range_add(rest, build->whatif.rest_anon);
	rest = range_max(rest, range_of(model->needed.request));
	return range_max(largest, range_add(at, rest));
}

static bool effect_acts(const struct build *build, enum effect effect)
{
	if (effect == EFFECT_BOUNCE && !build->model->load.pinned_sources)
		return false;
	return build->whatif.active >> effect & 1;
}

void whatif_finish(struct build *build)
{
	for (unsigned i = 0; i < EFFECT_COUNT; i++) {
		enum effect effect = (enum effect)i;

		if (!effect_acts(build, effect))
			continue;
		build->model->load.outcomes[i] = (struct outcome){
			.valid = true,
			.demand = with_rest(build, effect, CREST_DEMAND),
			.modelled = with_rest(build, effect, CREST_MODELLED),
			.resident = build->whatif.crests[i][CREST_RESIDENT].largest,
		};
	}
}
