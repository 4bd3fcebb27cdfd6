/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include "guard.h"
#include "life.h"
#include "sys.h"

#include <time.h>

#include "banned.h"

/* No event for so long: the recorder may sleep for a second then, and the next event wakes it. */
#define REST_NS UINT64_C(500000000)

/* How often a thread gives way to the one that moves the early buffer into the ring: a matter of microseconds. */
#define PATIENCE 10000

_Thread_local struct guard_thread guard_thread;

uint64_t event_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A fork child inherits the thread's storage: what it holds counts for the process that asked. */
static inline uint32_t thread_in(uint32_t pid)
{
	if (unlikely(!pid || guard_thread.tid_of != pid)) {
		guard_thread.tid = sys_gettid();
		guard_thread.tid_of = pid;
	}
	return guard_thread.tid;
}

uint32_t event_thread(void)
{
	struct life *life = life_get();

	return life ? thread_in(life->pid) : 0;
}

bool event_wanted(void)
{
	struct life *life = life_get();

	return life && life_state(life) != LIFE_OFF;
}

bool event_recording(void)
{
	struct life *life = life_get();

	return life && life_state(life) == LIFE_ON;
}

/* Is this record worth waking a sleeping recorder? `last` is shared by threads, and only a hint: no locked exchange. */
static bool worth_waking(struct life *life, const struct st_record *record)
{
	uint64_t last = atomic_load_explicit(&life->last, memory_order_relaxed);

	atomic_store_explicit(&life->last, record->time, memory_order_relaxed);
	return record->kind == ST_KIND_moment || record->kind == ST_KIND_relief ||
	       record->time - last > REST_NS || producer_waiting(life->ring) > life->ring_size / 4;
}

static uint64_t ring_put(struct life *life, const struct piece *piece)
{
	uint64_t seq = producer_put(life->ring, life->ring_size, piece);

	if (unlikely(worth_waking(life, piece->record)))
		producer_wake(life->ring);
	return seq;
}

/* Mappings of files, files and marks are what the report of a load needs from the time before it. */
static bool matters(const struct st_record *record)
{
	const struct st_ev_map *map = (const void *)record;

	return record->kind != ST_KIND_map || map->file != 0;
}

/* Early, or, when another thread is just moving the early buffer, in the ring as soon as that is done. */
static uint64_t put_before(struct life *life, const struct piece *piece)
{
	uint64_t seq = early_put(life, piece, matters(piece->record));

	if (seq || !(atomic_load(&life->early_head) & EARLY_CLOSED))
		return seq;
	for (int i = 0; i < PATIENCE && life_state(life) == LIFE_STARTING; i++)
		sys_yield();
	return life_state(life) == LIFE_ON ? ring_put(life, piece) : 0;
}

static uint64_t put(struct life *life, const struct piece *piece)
{
	switch (life_state(life)) {
	case LIFE_ON:
		return ring_put(life, piece);
	case LIFE_EARLY:
	case LIFE_STARTING:
		return put_before(life, piece);
	case LIFE_FRESH:
	case LIFE_RENEWING:
	case LIFE_OFF:
		break;
	}
	return 0;
}

uint64_t event_put(struct st_record *record, const void *tail, size_t tail_bytes)
{
	struct piece piece = {record, (size_t)record->words * 8, tail, tail_bytes};
	size_t most = (size_t)UINT16_MAX * 8 - piece.record_bytes;
	struct life *life = life_get();

	if (unlikely(!life))
		return 0;
	if (unlikely(tail_bytes > most))
		piece.tail_bytes = most;
	record->words += (uint16_t)((piece.tail_bytes + 7) / 8);
	record->time = event_now();
	record->thread = thread_in(life->pid);
	return put(life, &piece);
}
