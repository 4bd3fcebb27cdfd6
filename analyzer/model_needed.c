/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mn, what the run needed. A run that ended well needed its maximum. One that died needed what it had, and what
 * it was about to take: in the load the bytes not yet loaded, with the anonymous copies that come along with each
 * as they did until then, less what was allocated ahead; elsewhere the request that was refused.
 */
#include <analyzer/model_parts.h>

/* The state in which the run died: before the request that ended it, else at the last event. */
static const struct moment *death(const struct build *build, const struct request *fatal)
{
	return fatal ? &fatal->failure.at : &build->model->moments[MOMENT_END];
}

/* The record of its end comes after the phase that it ended in. */
static enum phase death_phase(const struct build *build, const struct moment *at)
{
	if (at->phase != PHASE_END || build->exit_moment || !build->phases.end)
		return at->phase;
	return phases_at(&build->phases, build->phases.end - 1);
}

/* One bound of A that the remaining bytes would bring, from A and the bytes loaded at the death. */
static uint64_t slope_carried(uint64_t anon, uint64_t loaded, uint64_t remaining)
{
	if (!loaded || !anon)
		return 0;
	return (uint64_t)((long double)anon / (long double)loaded * (long double)remaining);
}

/*
 * Device bytes that were allocated for weights and not yet filled: those since the first weight byte, at least; at
 * most all, for a model can be made on the device before its weights are read.
 */
static struct range allocated_ahead(const struct build *build, const struct moment *at)
{
	const struct moment *first = &build->model->moments[MOMENT_FIRST_WEIGHT];
	uint64_t all = bytes_sub(at->layers.device, build->model->context_bytes);
	uint64_t grown =
		bytes_min(all, bytes_sub(at->layers.device, first->valid ? first->layers.device : 0));

	return (struct range){bytes_sub(grown, at->on_device.lo), bytes_sub(all, at->on_device.hi)};
}

/* What a load that died would still have taken: each bound with the loaded bytes that it stands for. */
static struct range load_rest(struct build *build, const struct moment *at, struct needed *needed)
{
	struct load *load = &build->model->load;
	struct range remaining = load->remaining, anon = at->layers.anon, rest, ahead;

	if (!build->phases.to_device && !at->layers.device)
		return range_of(0); /* used in place or on the host: the pool's page cache is not demand */
	ahead = allocated_ahead(build, at);
	load->ahead = bytes_min(remaining.hi, ahead.lo);
	build->whatif.rest =
		(struct range){bytes_sub(remaining.lo, ahead.hi), bytes_sub(remaining.hi, ahead.lo)};
	anon.lo = slope_carried(anon.lo, load->loaded.hi, remaining.lo);
	anon.hi = slope_carried(anon.hi, load->loaded.lo, remaining.hi);
	needed->anon = range_add(needed->anon, anon);
	build->whatif.rest_anon = anon;
	rest.lo = bytes_add(bytes_sub(remaining.lo, ahead.hi), anon.lo);
	rest.hi = bytes_add(bytes_sub(remaining.hi, ahead.lo), anon.hi);
	return rest;
}

void build_needed(struct build *build)
{
	struct model *model = build->model;
	struct needed *needed = &model->needed;
	const struct request *fatal = requests_fatal(&build->requests);
	const struct moment *at = death(build, fatal), *peak = &model->moments[MOMENT_DEMAND_PEAK];
	struct range rest = range_of(0), request;

	*needed = (struct needed){.demand = peak->demand,
	                          .modelled = peak_range(&build->peaks[PEAK_MODELLED]),
	                          .anon = peak->layers.anon,
	                          .staging = range_of(peak->layers.staging),
	                          .died_in = PHASE_COUNT};
	if (!fatal && !build->badly) {
		whatif_finish(build);
		return;
	}
	needed->died_in = build->phases.unfinished ? PHASE_LOAD : death_phase(build, at);
	needed->lower_bound = true;
	needed->anon = at->layers.anon;
	needed->staging = range_of(at->layers.staging);
	if (build->phases.unfinished)
		rest = load_rest(build, at, needed);
	request = range_of(fatal ? fatal->failure.asked : 0);
	if (request.lo > rest.lo)
		needed->request = request.lo;
	needed->at_least = needed->request && fatal->failure.at_least;
	rest = range_max(rest, request);
	needed->demand = range_max(needed->demand, range_add(at->demand, rest));
	needed->modelled = range_max(needed->modelled, range_add(at->modelled, rest));
	whatif_finish(build);
}
