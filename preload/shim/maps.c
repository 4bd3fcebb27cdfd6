/* SPDX-License-Identifier: Apache-2.0 */
#include "maps.h"

#include <stdatomic.h>
#include <string.h>

#include "banned.h"

#define SLOTS 2048

/* A slot is free (start 0), taken and not yet filled (start 1), or holds a mapping. */
static struct slot {
	_Atomic uintptr_t start, end;
	uint64_t offset;
	uint32_t file;
	_Atomic bool writable;
} slots[SLOTS];

static _Atomic unsigned used; /* slots from here on were never taken */
static _Atomic unsigned alive;

static struct slot *slot_take(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		uintptr_t none = 0;
		unsigned top = atomic_load(&used);

		if (!atomic_compare_exchange_strong(&slots[i].start, &none, 1))
			continue;
		while (top < i + 1 && !atomic_compare_exchange_weak(&used, &top, i + 1))
			;
		return &slots[i];
	}
	return NULL;
}

bool maps_add(const struct mapping *mapping)
{
	struct slot *slot = slot_take();

	if (!slot)
		return false;
	slot->end = mapping->end;
	slot->offset = mapping->offset;
	slot->file = mapping->file;
	slot->writable = mapping->writable;
	atomic_fetch_add(&alive, 1);
	atomic_store_explicit(&slot->start, mapping->start, memory_order_release);
	return true;
}

/* Another thread may unmap this one meanwhile, and a third one fill the slot with one of its own: half of each is none. */
static bool slot_read(const struct slot *slot, struct mapping *ret_mapping)
{
	uintptr_t start = atomic_load_explicit(&slot->start, memory_order_acquire);

	if (start <= 1)
		return false;
	*ret_mapping = (struct mapping){start, slot->end, slot->offset, slot->file, slot->writable};
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&slot->start, memory_order_relaxed) == start;
}

bool maps_next(uintptr_t start, uintptr_t end, unsigned *cursor, struct mapping *ret_part)
{
	unsigned top = atomic_load(&used);
	struct mapping m;

	while (*cursor < top) {
		if (!slot_read(&slots[(*cursor)++], &m) || m.start >= end || m.end <= start)
			continue;
		if (m.start < start) {
			m.offset += start - m.start;
			m.start = start;
		}
		if (m.end > end)
			m.end = end;
		*ret_part = m;
		return true;
	}
	return false;
}

static void slot_free(struct slot *slot)
{
	atomic_store(&slot->start, 0);
	atomic_fetch_sub(&alive, 1);
}

/* What stays of a mapping behind the cut goes into a slot of its own, what stays before it keeps the slot. */
static void slot_cut(struct slot *slot, uintptr_t start, uintptr_t end)
{
	struct mapping m;

	if (!slot_read(slot, &m) || m.start >= end || m.end <= start)
		return;
	if (m.end > end) {
		struct mapping rest = {end, m.end, m.offset + (end - m.start), m.file, m.writable};

		maps_add(&rest);
	}
	if (m.start < start)
		atomic_store(&slot->end, start);
	else
		slot_free(slot);
}

void maps_cut(uintptr_t start, uintptr_t end)
{
	unsigned top = atomic_load(&used);

	for (unsigned i = 0; i < top; i++)
		slot_cut(&slots[i], start, end);
}

void maps_writable(uintptr_t start, uintptr_t end)
{
	unsigned top = atomic_load(&used);
	struct mapping m;

	for (unsigned i = 0; i < top; i++)
		if (slot_read(&slots[i], &m) && m.start < end && m.end > start)
			atomic_store(&slots[i].writable, true);
}

unsigned maps_count(void)
{
	return atomic_load_explicit(&alive, memory_order_relaxed);
}

void maps_reset(void)
{
	memset(slots, 0, sizeof(slots[0]) * atomic_load(&used));
	atomic_store(&used, 0);
	atomic_store(&alive, 0);
}
