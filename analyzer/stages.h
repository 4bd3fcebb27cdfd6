/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages of a load, as its threads went through them: header, map, read, host copy, device copy, conversion,
 * quantising, re-packing, release. Fed with records in order, after residency has seen each.
 *
 * What a call took itself (`took`) is exact. The time between two events of one thread is put down to a stage where one
 * of the two says what was done in between (a buffer that the program filled by itself, memory that a conversion
 * had asked for); it holds whatever else the thread did then, so such a stage's time is an upper bound.
 */
#ifndef SPARKTRACE_STAGES_H
#define SPARKTRACE_STAGES_H

#include <analyzer/model.h>
#include <analyzer/residency.h>
#include <analyzer/stages_stack.h>

#define STAGES_THREADS 256  /* followed at a time; beyond these a thread's time is not seen */
#define STAGES_SPANS   1024 /* disjoint stretches of one stage that may still grow together */

/* What a thread was left with by its last event. */
struct stage_thread {
	uint32_t thread;
	uint64_t since;   /* its last event, 0: none yet */
	enum stage after; /* STAGE_COUNT: its next event tells */
	bool copying;     /* copies that nobody has waited for */
};

/* A stage's stretches of time: those that later ones may still touch, in order, and the sum of the others. */
struct stage_wall {
	struct {
		uint64_t lo, hi;
	} spans[STAGES_SPANS];
	size_t count;
	uint64_t over, over_until; /* the sum; its last one's end */
	bool cut;                  /* something reached back beyond that */
};

struct stages {
	struct stack_stages *of_stack;
	const struct residency *residency;
	struct stage_thread threads[STAGES_THREADS];
	uint32_t thread_count;
	bool threads_more; /* than are followed */
	struct stage_wall walls[STAGE_COUNT];
	struct load_stage figures[STAGE_COUNT];
	uint64_t recent[STAGE_COUNT]; /* thread time since the last sample */
	uint64_t moved[STAGE_COUNT];  /* bytes, likewise */
	struct st_ev_sample last;     /* the sample before, time 0: none */
	uint64_t weights_mapped;      /* bytes, before this record */
	bool loading;                 /* the load goes on; false: what comes after it, until the steps */
};

void stages_init(struct stages *stages, struct stack_stages *of_stack, const struct residency *residency);

/* All records, with the phase that each is in. */
void stages_record(struct stages *stages, const struct st_record *record, enum phase phase);

/* Puts what was found into the load's stages; `cpus` of the machine. */
void stages_finish(struct stages *stages, uint64_t cpus, struct load_stage *ret_figures);

#endif
