/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer of the ring: committed records go to the trace in their order. The ring's tail
 * follows only when they are in the file (drain_acknowledge), so that whatever dies, every record is
 * in the file or in the ring.
 */
#ifndef SPARKTRACE_RECORDER_DRAIN_H
#define SPARKTRACE_RECORDER_DRAIN_H

#include "out.h"
#include <sparktrace/ring.h>
#include <stdbool.h>

struct drain {
	struct st_ring *ring;
	struct out *out;
	/* Sees every record after it was taken; may be NULL. */
	void (*observe)(void *context, const struct st_record *record);
	void *context;
	bool dead;                       /* no more producers: what is not committed now never will be */
	uint64_t read;                   /* taken up to here */
	uint64_t lost_count, lost_bytes; /* said so far */
	uint64_t torn;                   /* bytes skipped as torn */
	uint64_t stuck_since;            /* the record at `read` has been uncommitted for so long */
};

void drain_init(struct drain *drain, struct st_ring *ring, struct out *out);

/*
 * Takes what is committed, a quarter of the ring at most. 0: nothing more for now; 1: call again;
 * or the error of the trace that has no room: the rest waits in the ring.
 */
int drain_step(struct drain *drain);

/* Bytes taken that the ring still holds. */
uint64_t drain_unacknowledged(const struct drain *drain);

/* Call after trace_flush has succeeded. */
void drain_acknowledge(struct drain *drain);

#endif
