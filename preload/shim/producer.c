/* SPDX-License-Identifier: Apache-2.0 */
#include "producer.h"

#include "export.h"
#include "sys.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>

#include "banned.h"

uint64_t piece_commit(const struct piece *piece, unsigned char *at, uint64_t position)
{
	size_t padded = (piece->tail_bytes + 7) & ~(size_t)7;
	unsigned char *tail = at + piece->record_bytes;
	uint64_t seq = ST_SEQ_MAGIC | position;

	if (padded) {
		memset(tail + padded - 8, 0, 8);
		memcpy(tail, piece->tail, piece->tail_bytes);
	}
	memcpy(at + 8, (const unsigned char *)piece->record + 8, piece->record_bytes - 8);
	atomic_store_explicit((_Atomic uint64_t *)(void *)at, seq, memory_order_release);
	return seq;
}

/* Where a record of `bytes` goes when the ring is filled up to `head`: behind a filler if it does not fit. */
static uint64_t place(uint64_t head, uint64_t size, uint64_t bytes)
{
	uint64_t left = size - (head & (size - 1));

	return left < bytes ? head + left : head;
}

static void pad(struct st_ring *ring, uint64_t size, uint64_t from, uint64_t to)
{
	struct st_record filler = {.kind = ST_RING_PAD};
	struct piece piece = {.record = &filler, .record_bytes = sizeof(filler)};
	uint64_t words = (to - from) / 8;

	if (to - from < sizeof(filler))
		return;
	filler.words = words > UINT16_MAX ? UINT16_MAX : (uint16_t)words;
	piece_commit(&piece, st_ring_data(ring) + (from & (size - 1)), from);
}

static uint64_t lose(struct st_ring *ring, uint64_t bytes)
{
	atomic_fetch_add_explicit(&ring->lost_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&ring->lost_bytes, bytes, memory_order_relaxed);
	return 0;
}

/*
 * The tail is loaded with acquire: the recorder has read what stood in the room that it gives back. It may be
 * newer than `head`; the exchange then fails, and all is looked at again.
 */
uint64_t producer_put(struct st_ring *ring, uint64_t size, const struct piece *piece)
{
	uint64_t bytes = (uint64_t)piece->record->words * 8;
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t at, tail;

	do {
		at = place(head, size, bytes);
		tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (at + bytes > tail + size)
			return lose(ring, bytes);
	} while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, at + bytes, memory_order_relaxed,
	                                                memory_order_relaxed));
	if (at != head)
		pad(ring, size, head, at);
	return piece_commit(piece, st_ring_data(ring) + (at & (size - 1)), at);
}

uint64_t producer_waiting(const struct st_ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	return atomic_load_explicit(&ring->head, memory_order_relaxed) - tail;
}

/*
 * The recorder sets `sleeping` before it looks at `head` (ringfile_wait): here `head` must be moved before `sleeping` is
 * looked at, or both miss each other. Nothing but the barrier says so to a weakly ordered processor.
 */
void producer_wake(struct st_ring *ring)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (likely(!atomic_load_explicit(&ring->sleeping, memory_order_relaxed)) ||
	    !atomic_exchange_explicit(&ring->sleeping, 0, memory_order_seq_cst))
		return;
	atomic_fetch_add_explicit(&ring->wake, 1, memory_order_seq_cst);
	sys_call3(SYS_futex, (long)&ring->wake, FUTEX_WAKE, INT_MAX);
}
