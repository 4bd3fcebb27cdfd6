/* SPDX-License-Identifier: Apache-2.0 */
#include "ladder.h"

#include "ladder_rungs.h"

#include <math.h>

#define MATTERS (UINT64_C(64) << 20)

const char *const rung_titles[RUNG_COUNT] = {
	"flush the page cache",    "repair the load path",       "pack shorter, then batch less",
	"one tier of method down", "smaller model, more Sparks",
};

const char *const rung_state_names[] = {"applies", "does not apply", "cannot tell"};

static rung_function *const functions[RUNG_COUNT] = {
	rung_flush, rung_load, rung_pack, rung_method, rung_sparks,
};

static bool was_tried(const struct options *options, enum rung rung)
{
	return options->tried >> rung & 1;
}

/* Device bytes at the steps' peak, a refused request of the steps included, beyond those after the load. */
static struct range growth_of(const struct model *m)
{
	const struct moment *steps = &m->moments[MOMENT_STEPS_PEAK], *failure = &m->moments[MOMENT_FAILURE];
	const struct moment *settled = &m->moments[MOMENT_SETTLED];
	uint64_t peak = steps->valid ? steps->layers.device : 0;

	if (m->needed.died_in != PHASE_COUNT && m->needed.died_in != PHASE_LOAD && failure->valid)
		peak = bytes_max(peak, bytes_add(failure->layers.device, m->needed.request));
	if (!m->load.present)
		peak = bytes_max(peak, m->device_peak);
	return range_of(bytes_sub(peak, settled->valid ? settled->layers.device : 0));
}

static bool peak_in_load(const struct model *m)
{
	const struct moment *peak = &m->moments[MOMENT_DEMAND_PEAK];

	if (!m->load.present)
		return false;
	if (m->needed.died_in != PHASE_COUNT)
		return m->needed.died_in == PHASE_LOAD;
	/* Until something else is allocated, what is there is the load's: its copies go after the last weight byte. */
	return peak->valid && (peak->phase == PHASE_LOAD || peak->phase == PHASE_SETTLE);
}

static struct situation assess(const struct model *model, const struct options *options,
                               const struct budget *budget)
{
	bool flushed = !was_tried(options, RUNG_FLUSH);

	return (struct situation){
		.model = model,
		.options = options,
		.budget = budget,
		.need = model->needed.demand,
		.died = model->needed.died_in != PHASE_COUNT,
		.in_load = peak_in_load(model),
		/* A flush that was tried is in MemFree already, or did not last: it buys nothing more. */
		.room = flushed ? budget->flush : budget->now,
		.band = flushed ? budget->band_flush : budget->band_now,
		.growth = growth_of(model),
		.optimizer = options->optimizer_bytes != ST_UNKNOWN ? range_of(options->optimizer_bytes)
	                                                            : model->optimizer,
	};
}

/* The budget once the cache has been flushed. */
static struct budget flushed_budget(const struct budget *budget)
{
	struct budget flushed = *budget;

	flushed.now = budget->flush;
	flushed.band_now = budget->band_flush;
	return flushed;
}

static void finish_rung(const struct situation *s, struct rung_result *r)
{
	struct budget budget = r->rung == RUNG_FLUSH ? flushed_budget(s->budget) : *s->budget;

	if (r->state == RUNG_NOT) {
		r->relief = range_of(0);
		r->needed = s->need;
	} else if (r->state == RUNG_UNKNOWN) {
		r->needed.lo = r->rung == RUNG_FLUSH ? s->need.lo : bytes_sub(s->need.lo, r->relief.hi);
		r->needed.hi = bytes_max(s->need.hi, r->needed.hi);
	}
	r->judgement = budget_verdict(&budget, s->model, r->needed);
	if (r->rung == RUNG_LOAD && r->relief.hi && budget_limit_binds(s->budget, s->model))
		r->judgement = (struct judgement){VERDICT_CANNOT_TELL, "the host memory that remains"};
	if (r->judgement.verdict == VERDICT_CANNOT_TELL && r->missing)
		r->judgement.missing = r->missing;
}

/* Can its relief matter at all? What cannot be told is not zero. */
static bool rung_matters(const struct situation *s, const struct rung_result *r)
{
	return r->state != RUNG_NOT && !r->tried && r->relief.hi >= bytes_max(MATTERS, s->need.lo / 100);
}

/* The verdict on the phase that made the need, with all rungs of `set` taken at their upper ends. */
static enum verdict verdict_with(const struct situation *s, const struct ladder *ladder, unsigned set)
{
	struct budget budget = set >> RUNG_FLUSH & 1 ? flushed_budget(s->budget) : *s->budget;
	uint64_t relief = 0;

	for (unsigned rung = RUNG_FLUSH + 1; rung < RUNG_COUNT; rung++)
		if (set >> rung & 1)
			relief = bytes_add(relief, ladder->rungs[rung].relief.hi);
	return budget_judge(&budget, (struct range){bytes_sub(s->need.lo, relief),
	                                            range_is_open(s->need) ? UINT64_MAX
	                                                                   : bytes_sub(s->need.hi, relief)})
	        .verdict;
}

/* All rungs in the smallest sets out of `choice` that better the verdict; 0: none does. */
static unsigned smallest_sets(const struct situation *s, const struct ladder *ladder, unsigned choice)
{
	enum verdict verdict = verdict_with(s, ladder, 0);
	unsigned found = 0;

	for (int size = 1; size < RUNG_COUNT && !found; size++)
		for (unsigned set = 1; set <= choice; set++)
			if (!(set & ~choice) && __builtin_popcount(set) == size &&
			    verdict_with(s, ladder, set) < verdict)
				found |= set;
	return found;
}

/*
 * A rung that only fits after a flush makes the flush part of the combination, provided that the flush is
 * a real part of the gap: a few hundred MiB of cache, which every machine has, are not.
 */
static bool flush_belongs(const struct situation *s, const struct ladder *ladder, unsigned choice,
                          enum rung rung)
{
	uint64_t gap = bytes_sub(s->need.hi, bytes_sub(s->budget->now, s->budget->band_now));

	return choice >> RUNG_FLUSH & 1 &&
	       budget_judge(s->budget, ladder->rungs[rung].needed).verdict == VERDICT_AFTER_FLUSH &&
	       ladder->rungs[RUNG_FLUSH].relief.hi >= gap / 10;
}

static bool completed_well(const struct model *m)
{
	for (size_t i = 0; i < m->failure_count; i++)
		if (m->failures[i].outcome != FAILURE_RETRIED)
			return false;
	return m->needed.died_in == PHASE_COUNT;
}

static void choose_rung(struct ladder *ladder, unsigned rung, const char *reason)
{
	ladder->next_kind = NEXT_RUNG;
	ladder->next = (enum rung)rung;
	ladder->next_reason = reason;
}

/* Rungs 1 to 3 cannot do it, not even together: 4 may, and nothing else is left on the ladder. */
static void choose_last(const struct situation *s, struct ladder *ladder)
{
	const struct rung_result *last = &ladder->rungs[RUNG_SPARKS];

	ladder->next_kind = NEXT_OUTSIDE;
	if (verdict_with(s, ladder, 0) == VERDICT_FITS)
		ladder->next_reason = "what was seen fits the budget: no rung gives what was missing";
	else if (rung_matters(s, last) && smallest_sets(s, ladder, 1u << RUNG_SPARKS))
		choose_rung(ladder, RUNG_SPARKS, "rungs 1 to 3 were tried or cannot make it fit");
	else
		ladder->next_reason = "no rung that is left changes the verdict";
}

/* Device memory is in no cgroup: only what makes host memory smaller helps, or a larger limit. */
static void choose_for_limit(struct ladder *ladder, unsigned choice)
{
	ladder->next_kind = NEXT_OUTSIDE;
	ladder->next_reason = "the cgroup limit is below the host memory that it needs: raise the limit";
	if (choice >> RUNG_LOAD & 1)
		choose_rung(ladder, RUNG_LOAD, "copies of the weights count against the cgroup limit");
}

static void choose_next(const struct situation *s, struct ladder *ladder)
{
	unsigned choice = 0, found;

	for (unsigned rung = 0; rung < RUNG_SPARKS; rung++)
		if (rung_matters(s, &ladder->rungs[rung]))
			choice |= 1u << rung;
	if (budget_limit_binds(s->budget, s->model)) {
		choose_for_limit(ladder, choice);
		return;
	}
	if (!s->budget->missing && completed_well(s->model) && !s->budget->blind &&
	    s->need.hi <= s->budget->flush) {
		ladder->next_kind = NEXT_NONE;
		ladder->next_reason = s->model->exited ? "the run completed and fits"
		                                       : "nothing was refused, and what was seen fits";
		return;
	}
	if (s->budget->missing || range_is_open(s->need)) {
		/* No verdict to better: the lowest rung that may matter stays next and says what is missing.
		 */
		found = choice;
	} else {
		found = smallest_sets(s, ladder, choice);
	}
	if (!found) {
		choose_last(s, ladder);
		return;
	}
	found = (unsigned)__builtin_ctz(found);
	if (found != RUNG_FLUSH && flush_belongs(s, ladder, choice, (enum rung)found))
		choose_rung(ladder, RUNG_FLUSH, "the lowest rung of the smallest combination that fits");
	else
		choose_rung(ladder, found, "the lowest rung that can change the verdict");
}

void ladder_climb(const struct model *model, const struct options *options, const struct budget *budget,
                  struct ladder *ret_ladder)
{
	struct situation s = assess(model, options, budget);
	struct ladder ladder = {
		.pack = {.factor_lo = NAN, .factor_hi = NAN, .pack = ST_UNKNOWN, .batch = ST_UNKNOWN},
		.method = {.half_step = ST_UNKNOWN},
		.sparks = {.model_share = NAN},
	};

	repairs_find(model, &ladder.repairs);
	for (unsigned rung = 0; rung < RUNG_COUNT; rung++) {
		struct rung_result *r = &ladder.rungs[rung];

		*r = (struct rung_result){
			.rung = (enum rung)rung,
			.tried = was_tried(options, (enum rung)rung),
			.needed = s.need,
		};
		functions[rung](&s, &ladder, r);
		finish_rung(&s, r);
	}
	choose_next(&s, &ladder);
	*ret_ladder = ladder;
}
