/* SPDX-License-Identifier: Apache-2.0 */
#include "drain.h"
#include "clock.h"

#include <errno.h>

/* A producer that has not committed for so long, with the ring nearly full, never will. */
#define STUCK (30 * SECOND)

void drain_init(struct drain *drain, struct st_ring *ring, struct out *out)
{
	*drain = (struct drain){
		.ring = ring,
		.out = out,
		.read = atomic_load(&ring->tail) & ~UINT64_C(7) & ST_SEQ_MASK,
	};
}

uint64_t drain_unacknowledged(const struct drain *drain)
{
	return drain->read - atomic_load_explicit(&drain->ring->tail, memory_order_relaxed);
}

void drain_acknowledge(struct drain *drain)
{
	atomic_store_explicit(&drain->ring->tail, drain->read, memory_order_release);
}

static const struct st_record *record_at(const struct drain *drain, uint64_t position)
{
	return (const void *)(st_ring_data(drain->ring) + position % drain->ring->size);
}

static bool is_committed(const struct drain *drain, uint64_t position)
{
	_Atomic uint64_t *seq = (void *)(st_ring_data(drain->ring) + position % drain->ring->size);

	return atomic_load_explicit(seq, memory_order_acquire) == (ST_SEQ_MAGIC | position);
}

/* Bytes of the record, or of the filler, at a committed position; 0: damaged, no such length. */
static uint64_t length_at(const struct drain *drain, uint64_t position, uint64_t head)
{
	const struct st_record *record = record_at(drain, position);
	uint64_t left = drain->ring->size - position % drain->ring->size;
	uint64_t bytes = record->kind == ST_RING_PAD ? left : (uint64_t)record->words * 8;

	return bytes < sizeof(*record) || bytes > left || bytes > head - position ? 0 : bytes;
}

static bool is_stuck(struct drain *drain, uint64_t head)
{
	if (drain->dead)
		return true;
	if (!drain->stuck_since)
		drain->stuck_since = clock_now();
	return head - drain->read > drain->ring->size / 4 * 3 && clock_now() - drain->stuck_since > STUCK;
}

static void skip_torn(struct drain *drain, uint64_t head)
{
	do {
		drain->read += 8;
		drain->torn += 8;
	} while (drain->read < head && !is_committed(drain, drain->read));
	drain->stuck_since = 0;
}

/* One step at drain->read < head. 1: something was taken or skipped; 0: wait; or an error. */
static int take_one(struct drain *drain, uint64_t head)
{
	uint64_t left = drain->ring->size - drain->read % drain->ring->size, bytes;
	const struct st_record *record = record_at(drain, drain->read);
	int err = 0;

	if (left < sizeof(*record)) {
		drain->read += left;
		return 1;
	}
	if (!is_committed(drain, drain->read)) {
		if (!is_stuck(drain, head))
			return 0;
		skip_torn(drain, head);
		return 1;
	}
	bytes = length_at(drain, drain->read, head);
	if (!bytes) {
		skip_torn(drain, head);
		return 1;
	}
	if (record->kind != ST_RING_PAD)
		err = trace_append(drain->out->trace, record);
	if (err)
		return err;
	drain->read += bytes;
	drain->stuck_since = 0;
	if (record->kind != ST_RING_PAD && drain->observe)
		drain->observe(drain->context, record);
	return 1;
}

/* Losses are counted in the ring; where they become a record is about where they happened. */
static void say_lost(struct drain *drain)
{
	uint64_t count = atomic_load(&drain->ring->lost_count), bytes = atomic_load(&drain->ring->lost_bytes);

	if (count == drain->lost_count)
		return;
	OUT(drain->out, lost, .count = count - drain->lost_count, .bytes = bytes - drain->lost_bytes);
	drain->lost_count = count;
	drain->lost_bytes = bytes;
}

static void say_torn(struct drain *drain)
{
	if (!drain->torn)
		return;
	out_coverage(drain->out, "%llu bytes of the ring were torn records", (unsigned long long)drain->torn);
	drain->torn = 0;
}

int drain_step(struct drain *drain)
{
	uint64_t head = atomic_load_explicit(&drain->ring->head, memory_order_acquire);
	uint64_t stop = drain->read + drain->ring->size / 4;
	int rc = 1;

	if (head - drain->read > drain->ring->size) /* no head can be there: the page was written over */
		return -EIO;
	while (rc == 1 && drain->read < head && drain->read < stop)
		rc = take_one(drain, head);
	say_torn(drain);
	if (rc == 1)
		say_lost(drain);
	return rc == 1 ? drain->read < head : rc;
}
