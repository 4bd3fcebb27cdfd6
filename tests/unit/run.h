/* SPDX-License-Identifier: Apache-2.0 */
/* Runs made by hand, for tests of the ladder. */
#ifndef SPARKTRACE_TESTS_RUN_H
#define SPARKTRACE_TESTS_RUN_H

#include <string.h>

#include "analyzer/ladder.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* A run of its own making: model, options, and what the ladder says of them. */
struct run {
	struct model model;
	struct options options;
	struct budget budget;
	struct ladder ladder;
	struct failure failure;
};

static inline struct run run_init(uint64_t free, uint64_t available, uint64_t need)
{
	struct run run;

	memset(&run, 0, sizeof(run));
	run.options.budget = run.options.band = run.options.pool = ST_UNKNOWN;
	run.options.optimizer_bytes = run.options.pack = run.options.batch = ST_UNKNOWN;
	run.options.parameters = run.options.linear_parameters = ST_UNKNOWN;
	run.options.trainable_parameters = ST_UNKNOWN;
	run.options.reserve = 0;
	run.model.samples = 1;
	run.model.first.free = free;
	run.model.first.available = available;
	run.model.first.percpu = run.model.first.watermark = run.model.first.cgroup_limit = ST_UNKNOWN;
	run.model.needed.demand = range_of(need);
	run.model.needed.died_in = PHASE_COUNT;
	run.model.optimizer = RANGE_UNKNOWN;
	run.model.moments[MOMENT_DEMAND_PEAK].valid = true;
	run.model.moments[MOMENT_DEMAND_PEAK].phase = PHASE_STEPS;
	return run;
}

/* A load of `weights`, whose device bytes stay; the steps come up to `steps` device bytes. */
static inline void run_load(struct run *run, uint64_t weights, uint64_t steps)
{
	struct moment *settled = &run->model.moments[MOMENT_SETTLED];
	struct moment *peak = &run->model.moments[MOMENT_STEPS_PEAK];
	struct moment *load = &run->model.moments[MOMENT_LOAD_DEMAND_PEAK];

	run->model.load.present = run->model.load.finished = true;
	run->model.load.weights = weights;
	run->model.load.loaded = run->model.load.would_load = range_of(weights);
	run->model.load.repaired = run->model.needed.demand;
	run->model.load.slots = run->model.load.spare = 16 * MIB;
	settled->valid = load->valid = true;
	settled->layers.device = load->layers.device = weights;
	settled->on_device = load->demand = range_of(weights);
	peak->valid = steps > weights;
	peak->layers.device = steps;
}

static inline void run_failure(struct run *run, enum phase phase, uint64_t device, uint64_t request)
{
	struct moment *at = &run->model.moments[MOMENT_FAILURE];

	at->valid = true;
	at->phase = phase;
	at->layers.device = device;
	run->model.needed.died_in = phase;
	run->model.needed.request = request;
	run->failure.outcome = FAILURE_FATAL;
	run->model.failure_count = 1;
}

static inline void climb(struct run *run)
{
	run->model.failures = &run->failure;
	budget_find(&run->model, &run->options, &run->budget);
	ladder_climb(&run->model, &run->options, &run->budget, &run->ladder);
}

static inline const char *next_of(const struct run *run)
{
	static const char *const words[] = {[NEXT_NONE] = "none", [NEXT_OUTSIDE] = "outside"};

	return run->ladder.next_kind == NEXT_RUNG ? rung_names[run->ladder.next]
	                                          : words[run->ladder.next_kind];
}

static inline enum verdict verdict_of(const struct run *run)
{
	return budget_verdict(&run->budget, &run->model, run->model.needed.demand).verdict;
}

/* 140 GiB of weights and 10 of states on a machine of 100. */
static inline struct run too_big_case(void)
{
	struct run run = run_init(100 * GIB, 100 * GIB, 150 * GIB);

	run_load(&run, 140 * GIB, 150 * GIB);
	run.options.optimizer_bytes = 10 * GIB;
	return run;
}

#endif
