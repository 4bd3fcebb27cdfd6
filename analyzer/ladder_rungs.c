/* SPDX-License-Identifier: Apache-2.0 */
/* Rungs 1, 1b and 2. */
#include "ladder_rungs.h"

#include <math.h>

#define PACK_STEP 128 /* packing lengths are multiples of this many tokens */

void rung_flush(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	const struct budget *budget = s->budget;

	(void)ladder;
	if (budget->missing) {
		rung_doubt(r, UINT64_MAX, "what a flush would give back", budget->missing);
		return;
	}
	r->relief = range_of(budget->flush - budget->now);
	r->reason = "page cache that a flush turns into free memory; nothing changes in the job";
	if (budget->source == BUDGET_GIVEN)
		rung_refuse(r, "the budget was given as final");
	else if (budget->source == BUDGET_PROJECTED)
		rung_refuse(r, "the machine projected to is taken as flushed");
	else if (!r->relief.lo)
		rung_refuse(r, "there was no page cache to give back at the start");
}

/*
 * Between its two ends the relief moves with A, and so does the need: the new need has their difference,
 * end by end, which is narrower than an interval of unrelated things.
 */
static void apply_repair(const struct situation *s, struct range relief, struct rung_result *r)
{
	/* What was allocated ahead is for weights, although it holds none yet. */
	uint64_t other = bytes_sub(s->model->load.device_other, s->model->load.ahead);

	r->relief = (struct range){bytes_min(relief.lo, relief.hi), bytes_add(relief.hi, other)};
	r->needed.lo = bytes_sub(bytes_sub(s->need.lo, relief.lo), other);
	r->needed.hi = range_is_open(s->need) ? UINT64_MAX : bytes_sub(s->need.hi, relief.hi);
	r->needed.hi = bytes_max(r->needed.lo, r->needed.hi);
}

/* What is less at either end. */
static struct range ends_of(struct range now, struct range then)
{
	return (struct range){bytes_sub(now.lo, then.lo), bytes_sub(now.hi, then.hi)};
}

/* A + S - U when it died, with the slopes carried on; else what the replay without A and S said. */
static struct range repair_relief(const struct situation *s)
{
	const struct model *m = s->model;
	struct range copies = range_add(m->needed.anon, m->needed.staging);

	if (s->died)
		return (struct range){bytes_sub(copies.lo, m->load.spare),
		                      bytes_sub(copies.hi, m->load.spare)};
	return ends_of(s->need, m->load.repaired);
}

void rung_load(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	const struct repair *best = repairs_best(&ladder->repairs);

	if (!s->model->load.present) {
		rung_refuse(r, "no weights were loaded");
		return;
	}
	if (!s->in_load) {
		rung_refuse(r, "the load did not make the peak");
		return;
	}
	if (best) {
		apply_repair(s, ends_of(s->need, best->predicted.demand), r);
		r->reason = best->row->change;
		return;
	}
	apply_repair(s, repair_relief(s), r);
	r->reason = "anonymous copies and staging of the weights that another way of loading does not make";
	if (!s->model->load.slots && r->relief.hi)
		r->missing = "the sizes of the tensors: staging that remains is taken as 0";
	if (!r->relief.hi)
		rung_refuse(r, s->model->needed.anon.hi || s->model->needed.staging.hi
		                       ? "another way of loading takes as much for staging"
		                       : "the load kept no copies, no staging");
}

/* (room - (need - act)) / act, from the needs and activations at one end. */
static double pack_factor(const struct situation *s, uint64_t need, uint64_t act)
{
	if (!act)
		return -INFINITY;
	return ((double)s->room - (double)s->band - ((double)need - (double)act)) / (double)act;
}

/* floor(old x f) without the rounding of f itself: the division comes last. */
static uint64_t scale_down(const struct situation *s, uint64_t old, uint64_t act)
{
	uint64_t kept = bytes_sub(bytes_sub(s->room, s->band), bytes_sub(s->need.hi, act));

	if (!kept || !act)
		return 0;
	if (old > UINT64_MAX / kept)
		return (uint64_t)((double)old * ((double)kept / (double)act));
	return old * kept / act;
}

/* Activations shrink with the length; a peak of the load stays, whatever the steps do. */
static void apply_pack(const struct situation *s, uint64_t length, uint64_t old, const struct pack_plan *plan,
                       struct rung_result *r)
{
	const struct moment *load = &s->model->moments[MOMENT_LOAD_DEMAND_PEAK];
	struct range act = plan->activations;
	double gone = 1 - (double)length / (double)old;

	r->relief = (struct range){(uint64_t)((double)act.lo * gone), (uint64_t)((double)act.hi * gone)};
	r->needed = (struct range){bytes_sub(s->need.lo, r->relief.hi), bytes_sub(s->need.hi, r->relief.lo)};
	if (load->valid) {
		r->needed = range_max(r->needed, load->demand);
		r->relief.hi = bytes_min(r->relief.hi, bytes_sub(s->need.hi, r->needed.lo));
		r->relief.lo = bytes_min(r->relief.lo, r->relief.hi);
	}
}

/* Without the old length, f alone: what must go, and that it goes down to the edge of the band. */
static void apply_factor(const struct situation *s, struct rung_result *r, const char *missing)
{
	r->needed = range_of(bytes_sub(s->room, s->band));
	r->relief = range_of(bytes_sub(s->need.hi, r->needed.hi));
	r->missing = missing;
}

static void plan_pack(const struct situation *s, struct pack_plan *plan, struct rung_result *r)
{
	const struct options *o = s->options;
	uint64_t act = plan->activations.lo;

	r->reason = "activations shrink with the packing length; the first step that changes the run";
	if (o->pack == ST_UNKNOWN && !o->fixed_pack) {
		apply_factor(s, r, "the packing length (--pack), to turn f into a new one");
	} else if (o->pack > 1 && !o->fixed_pack) {
		plan->pack = scale_down(s, o->pack, act) / PACK_STEP * PACK_STEP;
		apply_pack(s, plan->pack, o->pack, plan, r);
		if (!plan->pack)
			rung_refuse(r, "the packing length would fall below 128 tokens");
	} else if (o->batch == ST_UNKNOWN) {
		apply_factor(s, r, "the batch size (--batch), to turn f into a new one");
	} else {
		plan->batch = scale_down(s, o->batch, act);
		r->reason = "the packing cannot change: activations shrink with the batch";
		if (plan->batch)
			apply_pack(s, plan->batch, o->batch, plan, r);
		else
			rung_refuse(r, "less than one sequence would fit");
	}
}

static struct range activations_of(const struct situation *s)
{
	return range_is_open(s->optimizer) ? (struct range){0, s->growth.hi}
	                                   : range_sub(s->growth, s->optimizer);
}

/* The reason why activations cannot be what is too much, or NULL. */
static const char *pack_obstacle(const struct situation *s, const struct pack_plan *plan)
{
	if (s->in_load)
		return "the peak is in the load: no activations";
	if (!s->growth.hi)
		return "device memory did not grow after the load";
	if (!plan->activations.hi)
		return "all growth after the load is gradients and optimizer states";
	if (!s->budget->missing && s->room >= s->band && s->need.hi <= s->room - s->band)
		return "there is room for the steps as they are";
	if (!s->budget->missing && plan->factor_hi <= 0)
		return "it would not fit without any activations either";
	return NULL;
}

void rung_pack(const struct situation *s, struct ladder *ladder, struct rung_result *r)
{
	struct pack_plan *plan = &ladder->pack;
	const char *obstacle;

	plan->activations = activations_of(s);
	if (!s->budget->missing) {
		plan->factor_lo = pack_factor(s, s->need.hi, plan->activations.lo);
		plan->factor_hi = pack_factor(s, s->need.lo, plan->activations.hi);
	}
	plan->upper_bound = s->died;
	obstacle = pack_obstacle(s, plan);
	if (obstacle)
		rung_refuse(r, obstacle);
	else if (s->budget->missing)
		rung_doubt(r, plan->activations.hi, "activations may be what is too much",
		           s->budget->missing);
	else if (!(plan->factor_lo > 0))
		rung_doubt(
			r,
			bytes_min(plan->activations.hi, bytes_sub(s->need.hi, bytes_sub(s->room, s->band))),
			"activations may be what is too much: f is at most what is shown",
			"bytes of gradients and optimizer states (--optimizer-bytes, 0 included)");
	else
		plan_pack(s, plan, r);
}
