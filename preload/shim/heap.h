/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The large host blocks that are alive, so that free() knows the few that were recorded from the many that were not.
 *
 * In front of the table stands a filter: one counter for each 1 MiB of addresses (folded at 64 GiB), raised while a
 * block begins there. free() of a small block costs that one load.
 */
#ifndef SPARKTRACE_SHIM_HEAP_H
#define SPARKTRACE_SHIM_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HEAP_SHIFT  20
#define HEAP_FILTER (1u << 16)

extern _Atomic uint8_t heap_filter[HEAP_FILTER];

/* May a recorded block begin at this address? */
static inline bool heap_suspect(const void *block)
{
	uintptr_t place = ((uintptr_t)block >> HEAP_SHIFT) % HEAP_FILTER;

	return atomic_load_explicit(&heap_filter[place], memory_order_relaxed);
}

/* False: no room, then it must not be recorded either, since its end would not be. */
bool heap_add(const void *block);

/* True: it was there, and is no more. */
bool heap_remove(const void *block);

#endif
