/* SPDX-License-Identifier: Apache-2.0 */
/* What is written once: the `process` record and the `info` records about program and machine. */
#ifndef SPARKTRACE_RECORDER_FACTS_H
#define SPARKTRACE_RECORDER_FACTS_H

#include "out.h"
#include <sparktrace/ring.h>

struct facts {
	struct st_ring *ring;
	char machine[128]; /* product name */
	char gpu[96];      /* NVML's name, "" as long as it has not answered */
	int gpu_fd;        /* where it will come, -1 */
	uint64_t start;    /* of the program, CLOCK_MONOTONIC: one reading for all its records */
	enum st_pool_class pool;
};

/* Rank of the program in its run, from the launcher's variables; "" when there is none. */
void facts_rank(const struct st_ring *ring, char *ret_rank, size_t size);

/* Writes all that is known at once. */
void facts_write(struct facts *facts, struct st_ring *ring, struct out *out);

/* Of a program that is dead already: what its ring's head says. */
void facts_write_late(struct st_ring *ring, struct out *out);

/*
 * Looks whether more has become known: NVML's answer, a simulated driver. When that changes the class
 * of the pool, a second `process` record replaces the first.
 */
void facts_look(struct facts *facts, struct out *out);

void facts_release(struct facts *facts);

#endif
