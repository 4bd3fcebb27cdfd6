/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include "banned.h"

#define SLOTS (1u << 13)
#define PROBE 64 /* slots from its own on in which a block is looked for */

_Atomic uint8_t heap_filter[HEAP_FILTER];
static _Atomic uintptr_t slots[SLOTS]; /* 0: free */

static uintptr_t slot_first(uintptr_t block)
{
	return (block >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 40;
}

/* A counter that came to the top stays there: it then only costs a look into the table. */
static void filter_change(uintptr_t block, int by)
{
	_Atomic uint8_t *counter = &heap_filter[(block >> HEAP_SHIFT) % HEAP_FILTER];
	uint8_t now = atomic_load(counter);

	do {
		if (now == UINT8_MAX)
			return;
	} while (!atomic_compare_exchange_weak(counter, &now, (uint8_t)(now + by)));
}

bool heap_add(const void *block)
{
	uintptr_t address = (uintptr_t)block, first = slot_first(address);

	for (unsigned i = 0; i < PROBE; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&slots[(first + i) % SLOTS], &none, address))
			continue;
		filter_change(address, 1);
		return true;
	}
	return false;
}

/* All PROBE slots are looked at, so that a slot that became free in between needs no mark. */
bool heap_remove(const void *block)
{
	uintptr_t address = (uintptr_t)block, first = slot_first(address);

	for (unsigned i = 0; i < PROBE; i++) {
		uintptr_t wanted = address;

		if (!atomic_compare_exchange_strong(&slots[(first + i) % SLOTS], &wanted, 0))
			continue;
		filter_change(address, -1);
		return true;
	}
	return false;
}
