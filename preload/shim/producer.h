/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's side of the ring (include/sparktrace/ring.h): reserve, fill, commit, wake. */
#ifndef SPARKTRACE_SHIM_PRODUCER_H
#define SPARKTRACE_SHIM_PRODUCER_H

#include <sparktrace/ring.h>
#include <stdbool.h>
#include <stddef.h>

/* One record in two pieces: the head with its fields, and the tail. */
struct piece {
	const struct st_record *record; /* `words` is that of the whole record */
	size_t record_bytes;            /* without the tail */
	const void *tail;
	size_t tail_bytes; /* padded to 8 with NUL */
};

/*
 * Copies a record to `at`, all but its first word, then commits it by storing that: ST_SEQ_MAGIC | position.
 * Returns what it stored.
 */
uint64_t piece_commit(const struct piece *piece, unsigned char *at, uint64_t position);

/*
 * Puts one record into the ring, whose data are `size` bytes (the caller's own copy of ring->size). Lock-free.
 * Returns its seq; 0: no room, which is counted in the ring.
 */
uint64_t producer_put(struct st_ring *ring, uint64_t size, const struct piece *piece);

/* Bytes reserved and not yet consumed. */
uint64_t producer_waiting(const struct st_ring *ring);

/* Wakes the recorder if it sleeps. */
void producer_wake(struct st_ring *ring);

#endif
