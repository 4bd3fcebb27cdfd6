/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: from a note into the ring, or, as long as nothing is recorded, into a small early buffer.
 *
 *	uint64_t seq = EVENT(unmap, .addr = (uintptr_t)p, .size = n, .stack = stack_id());
 *	...
 *	if (the call failed)
 *		EVENT(revoke, .target = event_target(seq));
 *
 * Time (CLOCK_MONOTONIC), thread and sequence number are filled in. Nothing waits, nothing allocates; safe in
 * signal handlers. The guard must be up. What finds no room is counted and becomes a `lost` record.
 */
#ifndef SPARKTRACE_SHIM_EVENT_H
#define SPARKTRACE_SHIM_EVENT_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Copies one record with its tail (padded with NUL to 8 bytes; cut where the record would be too long). `record`
 * has kind and, without the tail, words. Returns its seq, ST_SEQ_MAGIC included; 0: not recorded.
 */
uint64_t event_put(struct st_record *record, const void *tail, size_t tail_bytes);

#define EVENT_HEAD(kind_) .r.kind = ST_KIND_##kind_, .r.words = sizeof(struct st_ev_##kind_) / 8
#define EVENT(kind_, ...) event_put(&(struct st_ev_##kind_){EVENT_HEAD(kind_), ##__VA_ARGS__}.r, NULL, 0)
#define EVENT_TAIL(kind_, tail_, bytes_, ...) \
	event_put(&(struct st_ev_##kind_){EVENT_HEAD(kind_), ##__VA_ARGS__}.r, tail_, bytes_)

/* Field `target` of a revoke. */
static inline uint64_t event_target(uint64_t seq)
{
	return seq & ST_SEQ_MASK;
}

/*
 * False: nothing would be kept (SPARKTRACE=off, no ring could be made). Notes that cost something ask first.
 * In a fork child the first of these calls, or the first event, starts afresh.
 */
bool event_wanted(void);

/* True: a recording runs, so stacks and readings of the driver's state are worth their price. */
bool event_recording(void);

/* Kernel thread id of the caller, 0: nothing can be kept. */
uint32_t event_thread(void);

/* CLOCK_MONOTONIC, ns. */
uint64_t event_now(void);

#endif
