/* SPDX-License-Identifier: Apache-2.0 */
/* `sample` records: the pool, the program, its neighbours, at one moment. */
#ifndef SPARKTRACE_RECORDER_SAMPLE_H
#define SPARKTRACE_RECORDER_SAMPLE_H

#include "out.h"
#include <sparktrace/ring.h>
#include <stdbool.h>

enum sample_source {
	SAMPLE_STATUS,
	SAMPLE_IO,
	SAMPLE_STAT,
	SAMPLE_MEMINFO,
	SAMPLE_ZONEINFO,
	SAMPLE_VMSTAT,
	SAMPLE_PRESSURE,
	SAMPLE_OWN,
	SAMPLE_CGROUP_USED,
	SAMPLE_CGROUP_LIMIT,
	SAMPLE_SOURCES
};

struct sampler {
	struct st_ring *ring;
	uint64_t page_size;
	int fd[SAMPLE_SOURCES];   /* -1: not there */
	struct st_ev_sample last; /* mem_total 0: none yet */
	uint64_t cost;            /* CPU time of a sample, ns; the dearest of late */

	/* RssAnon of all other processes costs more than all the rest: looked at less often. */
	uint64_t others, others_cost, others_next;

	/* Descriptors of the program that are memory of the simulated device. */
	int sim_fd[4];
	unsigned sim_count;
	uint64_t sim_next;
};

void sampler_init(struct sampler *sampler, struct st_ring *ring);
void sampler_release(struct sampler *sampler);

/* Takes one. `exact`: the neighbours too are looked at now. */
void sampler_take(struct sampler *sampler, struct out *out, enum st_moment reason, bool exact);

/* Free, parked and reclaimable bytes of the last sample: what grows back when a program ends. */
uint64_t sampler_spare(const struct sampler *sampler);

#endif
