/* SPDX-License-Identifier: Apache-2.0 */
#include "budget.h"

#include "commands.h"

#define RESERVE  (UINT64_C(4) << 30)
#define BAND_MAX (UINT64_C(2) << 30)

const char *const verdict_names[VERDICT_COUNT] = {
	"fits", "fits after flush", "tight", "cannot tell", "does not fit",
};

static uint64_t find_band(const struct options *options, uint64_t budget)
{
	return options->band != ST_UNKNOWN ? options->band : bytes_min(BAND_MAX, budget / 20);
}

/* What is parked in the per-CPU lists is free too, but in neither of the kernel's two figures. */
static uint64_t add_parked(uint64_t bytes, const struct pool_state *pool)
{
	return bytes_add(bytes, pool->percpu == ST_UNKNOWN ? 0 : pool->percpu);
}

static void measure_budget(const struct model *model, struct budget *budget)
{
	const struct pool_state *pool = &model->first;
	uint64_t kept = budget->reserve;

	if (budget->watermark != ST_UNKNOWN)
		kept = bytes_max(kept, budget->watermark);
	if (!model->samples || pool->free == ST_UNKNOWN || pool->available == ST_UNKNOWN) {
		budget->missing =
			"MemFree and MemAvailable at the start: the trace has no sample (give --budget)";
		return;
	}
	budget->now = bytes_sub(add_parked(pool->free, pool), kept);
	/* On an idle machine MemFree can exceed MemAvailable; a flush never takes memory away. */
	budget->flush = bytes_max(budget->now, bytes_sub(add_parked(pool->available, pool), budget->reserve));
}

void budget_find(const struct model *model, const struct options *options, struct budget *ret_budget)
{
	struct budget budget = {
		.now = ST_UNKNOWN,
		.flush = ST_UNKNOWN,
		.reserve = options->reserve != ST_UNKNOWN ? options->reserve : RESERVE,
		.watermark = model->samples ? model->first.watermark : ST_UNKNOWN,
		.host_limit = model->samples ? model->first.cgroup_limit : ST_UNKNOWN,
		.blind = model->lost_events ? "the events that found no room in the ring" : NULL,
	};

	if (options->budget != ST_UNKNOWN) {
		budget.source = BUDGET_GIVEN;
		budget.now = budget.flush = options->budget;
	} else if (model->pool == ST_POOL_DISCRETE && !options->uma) {
		budget.missing =
			"a machine with one pool: this one has a discrete GPU (give --pool SIZE --uma)";
	} else if (options->pool != ST_UNKNOWN) {
		budget.source = BUDGET_PROJECTED;
		budget.now = budget.flush = bytes_sub(options->pool, budget.reserve);
	} else {
		measure_budget(model, &budget);
	}
	budget.band_now = find_band(options, budget.now);
	budget.band_flush = find_band(options, budget.flush);
	*ret_budget = budget;
}

/* Is there room for `need` with the band kept free? */
static bool has_room(uint64_t need, uint64_t budget, uint64_t band)
{
	return budget >= band && need <= budget - band;
}

struct judgement budget_judge(const struct budget *budget, struct range need)
{
	if (budget->missing)
		return (struct judgement){VERDICT_CANNOT_TELL, budget->missing};
	if (need.lo > budget->flush)
		return (struct judgement){VERDICT_DOES_NOT_FIT, NULL};
	if (range_is_open(need))
		return (struct judgement){VERDICT_CANNOT_TELL, "an upper bound of the needed peak"};
	if (has_room(need.hi, budget->now, budget->band_now))
		return (struct judgement){VERDICT_FITS, NULL};
	if (has_room(need.hi, budget->flush, budget->band_flush))
		return (struct judgement){VERDICT_AFTER_FLUSH, NULL};
	if (need.hi <= budget->flush)
		return (struct judgement){VERDICT_TIGHT, NULL};
	return (struct judgement){VERDICT_CANNOT_TELL,
	                          "the needed peak more exactly: the budget lies inside its interval"};
}

/* The host memory that the run certainly needed, without what the machine had before. */
uint64_t budget_host_need(const struct model *model)
{
	const struct layers *layers = &model->moments[MOMENT_DEMAND_PEAK].layers;
	uint64_t host = 0;

	if (model->host_seen && change_is_known(layers->host) && layers->host.lo > 0)
		host = (uint64_t)layers->host.lo;
	return bytes_add(host, bytes_max(layers->anon.lo, model->needed.anon.lo));
}

static bool limit_exceeded(const struct budget *budget, const struct model *model)
{
	return budget->host_limit != ST_UNKNOWN && budget->source == BUDGET_MEASURED &&
	       budget_host_need(model) > budget->host_limit;
}

bool budget_limit_binds(const struct budget *budget, const struct model *model)
{
	return limit_exceeded(budget, model) &&
	       budget_judge(budget, model->needed.demand).verdict != VERDICT_DOES_NOT_FIT;
}

/*
 * A load that died tells nothing of the steps. A request refused in the steps, or in a program that loads no
 * weights, is itself the need.
 */
static bool later_needs_unknown(const struct model *model)
{
	const struct needed *needed = &model->needed;
	bool told = needed->request && !needed->at_least &&
	            (needed->died_in >= PHASE_STEPS || !model->load.present);

	return needed->lower_bound && !told;
}

struct judgement budget_verdict(const struct budget *budget, const struct model *model, struct range need)
{
	struct judgement judgement = budget_judge(budget, need);

	if (limit_exceeded(budget, model))
		return (struct judgement){VERDICT_DOES_NOT_FIT, NULL};
	if (judgement.verdict >= VERDICT_CANNOT_TELL)
		return judgement;
	if (budget->blind)
		return (struct judgement){VERDICT_CANNOT_TELL, budget->blind};
	if (later_needs_unknown(model))
		return (struct judgement){VERDICT_CANNOT_TELL,
		                          model->needed.at_least ? "the whole of the request that was refused"
		                                                 : "the need of what was never reached"};
	return judgement;
}

int verdict_status(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_FITS:
	case VERDICT_AFTER_FLUSH:
	case VERDICT_TIGHT:
		return COMMAND_OK;
	case VERDICT_DOES_NOT_FIT:
		return COMMAND_OVER;
	case VERDICT_CANNOT_TELL:
	case VERDICT_COUNT:
		break;
	}
	return COMMAND_CANNOT_TELL;
}
