/* SPDX-License-Identifier: Apache-2.0 */
#include "relief_table.h"

#include <stdatomic.h>

#include "banned.h"

#define SLOTS 512

/* A 64 KiB page is the largest there is. Four times as much after so many stores: some 100 faults for a range of 1 GiB. */
#define GROUP        (UINT64_C(64) << 10)
#define GROUP_FAULTS 16
#define GROUP_SHIFT  40 /* larger than any range */

/* `end` is written last when a range comes, and first when it goes: 0, no range. */
static struct slot {
	_Atomic uintptr_t start, end;
	struct relief_range range;
} slots[SLOTS];

static _Atomic unsigned used; /* slots from here on were never taken */
static unsigned count;

bool relief_table_add(const struct relief_range *range)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (slots[i].range.end)
			continue;
		slots[i].range = *range;
		atomic_store(&slots[i].start, range->start);
		atomic_store(&slots[i].end, range->end);
		count++;
		if (used < i + 1)
			atomic_store(&used, i + 1);
		return true;
	}
	return false;
}

bool relief_table_meets(uintptr_t start, uintptr_t end)
{
	unsigned top = atomic_load_explicit(&used, memory_order_acquire);

	for (unsigned i = 0; i < top; i++)
		if (atomic_load_explicit(&slots[i].end, memory_order_acquire) > start &&
		    atomic_load_explicit(&slots[i].start, memory_order_relaxed) < end)
			return true;
	return false;
}

struct relief_range *relief_table_next(uintptr_t start, uintptr_t end, unsigned *cursor)
{
	while (*cursor < used) {
		struct relief_range *range = &slots[(*cursor)++].range;

		if (range->end > start && range->start < end)
			return range;
	}
	return NULL;
}

struct relief_range *relief_table_find(uintptr_t address)
{
	unsigned cursor = 0;

	return relief_table_next(address, address + 1, &cursor);
}

static void slot_end(struct slot *slot, uintptr_t end)
{
	atomic_store(&slot->end, end);
	slot->range.end = end;
	if (!end)
		count--;
}

static void slot_begin(struct slot *slot, uintptr_t start)
{
	slot->range.offset += start - slot->range.start;
	slot->range.start = start;
	atomic_store(&slot->start, start);
}

/* Behind a cut in the middle: a slot of its own, before the front gets its end. At no instant is it in none. */
static bool slot_split(const struct slot *slot, uintptr_t at, struct relief_range *ret_rest)
{
	struct relief_range rest = slot->range;

	rest.offset += at - rest.start;
	rest.start = at;
	if (relief_table_add(&rest))
		return true;
	*ret_rest = rest;
	return false;
}

static bool slot_cut(struct slot *slot, uintptr_t start, uintptr_t end, struct relief_range *ret_rest)
{
	bool room = true;

	if (slot->range.start >= start) {
		if (slot->range.end > end)
			slot_begin(slot, end);
		else
			slot_end(slot, 0);
		return true;
	}
	if (slot->range.end > end)
		room = slot_split(slot, end, ret_rest);
	slot_end(slot, start);
	return room;
}

bool relief_table_cut(uintptr_t start, uintptr_t end, struct relief_range *ret_rest)
{
	unsigned top = used;
	bool whole = true;

	for (unsigned i = 0; i < top; i++)
		if (slots[i].range.end > start && slots[i].range.start < end)
			whole = slot_cut(&slots[i], start, end, ret_rest) && whole;
	return whole;
}

unsigned relief_table_count(void)
{
	return count;
}

uint64_t relief_table_group(const struct relief_range *range)
{
	unsigned shift = range->faults / GROUP_FAULTS * 2;

	return GROUP << (shift < GROUP_SHIFT ? shift : GROUP_SHIFT);
}
