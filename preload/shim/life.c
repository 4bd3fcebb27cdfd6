/* SPDX-License-Identifier: Apache-2.0 */
#include "life.h"

#include "file.h"
#include "load.h"
#include "maps.h"
#include "settings.h"
#include "stack.h"
#include "sys.h"

#include <string.h>
#include <sys/mman.h>

#include "banned.h"

/* How often a thread gives way to another one that is in the middle of a short step, before it goes without. */
#define PATIENCE 1000

_Atomic(struct life *) life_page;

static struct life *life_map(void)
{
	struct life *none = NULL, *life = sys_mmap_anonymous(sizeof(*life));

	if (sys_failed(life))
		return NULL;
	sys_madvise(life, sizeof(*life), MADV_WIPEONFORK);
	if (atomic_compare_exchange_strong(&life_page, &none, life))
		return life;
	sys_munmap(life, sizeof(*life));
	return none;
}

/* Another thread renews: a matter of microseconds. */
static struct life *life_wait(struct life *life)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (life_state(life) > LIFE_RENEWING)
			return life;
		sys_yield();
	}
	return NULL;
}

struct life *life_renew(void)
{
	struct life *life = atomic_load(&life_page);
	uint32_t fresh = LIFE_FRESH;

	if (!life)
		life = life_map();
	if (!life)
		return NULL;
	if (!atomic_compare_exchange_strong(&life->state, &fresh, LIFE_RENEWING))
		return life_wait(life);
	life->pid = sys_getpid();
	file_reset();
	maps_reset();
	load_reset();
	stack_reset();
	atomic_store_explicit(&life->state, settings_get()->record ? LIFE_EARLY : LIFE_OFF,
	                      memory_order_release);
	return life;
}

void life_forked(void)
{
	struct life *life = atomic_load(&life_page);

	if (life && life->pid && life->pid != sys_getpid())
		memset(life, 0, sizeof(*life));
}

/* `at` is where the last record would begin if it is a map. */
static bool is_end_of(const struct st_ev_map *map, uint64_t at, const struct st_record *record)
{
	const struct st_ev_unmap *unmap = (const void *)record;

	return atomic_load_explicit((const _Atomic uint64_t *)&map->r.seq, memory_order_acquire) ==
	               (ST_SEQ_MAGIC | at) &&
	       map->r.kind == ST_KIND_map && map->r.thread == unmap->r.thread && !map->file &&
	       map->addr == unmap->addr && map->size == unmap->size && !(map->flags & MAP_FIXED);
}

/*
 * CPython maps and unmaps one chunk of its data stack thousands of times while a large package is imported, which would
 * fill the buffer. The record is unmade before its room is given back, so that nobody takes what is written there next
 * for committed; only its own thread does so, and only while it is the last one.
 */
static bool early_cancel(struct life *life, const struct st_record *record)
{
	uint64_t head = atomic_load_explicit(&life->early_head, memory_order_relaxed);
	uint64_t at = head - sizeof(struct st_ev_map);
	_Atomic uint64_t *seq = (void *)(life->early + at);

	if (record->kind != ST_KIND_unmap || head > EARLY_SIZE || head < sizeof(struct st_ev_map) ||
	    !is_end_of((const void *)seq, at, record))
		return false;
	atomic_store(seq, 0);
	if (atomic_compare_exchange_strong(&life->early_head, &head, at))
		return true;
	atomic_store_explicit(seq, ST_SEQ_MAGIC | at, memory_order_release);
	return false;
}

uint64_t early_put(struct life *life, const struct piece *piece, bool matters)
{
	uint64_t bytes = (uint64_t)piece->record->words * 8;
	uint64_t room = matters ? EARLY_SIZE : EARLY_SIZE / 4 * 3;
	uint64_t head;

	if (early_cancel(life, piece->record))
		return 0;
	head = atomic_load_explicit(&life->early_head, memory_order_relaxed);
	do {
		if (head & EARLY_CLOSED)
			return 0;
		if (head + bytes > room) {
			atomic_fetch_add_explicit(&life->early_lost_count, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&life->early_lost_bytes, bytes, memory_order_relaxed);
			return 0;
		}
	} while (!atomic_compare_exchange_weak(&life->early_head, &head, head + bytes));
	return piece_commit(piece, life->early + head, head);
}

/* Is the record at `at` committed? Waits a little for a thread that is in the middle of it. */
static bool early_ready(const struct life *life, uint64_t at)
{
	const _Atomic uint64_t *seq = (const void *)(life->early + at);

	for (int i = 0; i < PATIENCE; i++) {
		if (atomic_load_explicit(seq, memory_order_acquire) == (ST_SEQ_MAGIC | at))
			return true;
		sys_yield();
	}
	return false;
}

/* A record that a thread left half-way has no known length: it and what stands behind it count as lost. */
void early_move(struct life *life, struct st_ring *ring)
{
	uint64_t end = atomic_fetch_or(&life->early_head, EARLY_CLOSED) & ~EARLY_CLOSED;
	uint64_t at = 0;

	while (at < end && early_ready(life, at)) {
		const struct st_record *record = (const void *)(life->early + at);
		uint64_t bytes = (uint64_t)record->words * 8;

		memcpy(st_ring_data(ring) + at, record, bytes);
		at += bytes;
	}
	ring->lost_count = life->early_lost_count + (at < end);
	ring->lost_bytes = life->early_lost_bytes + (end - at);
	ring->head = at;
}
