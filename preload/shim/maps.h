/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private mappings of weight files that are alive: where anonymous copies can arise. A small table without
 * locks; it is the program that must not unmap in one thread what it maps in another.
 */
#ifndef SPARKTRACE_SHIM_MAPS_H
#define SPARKTRACE_SHIM_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
	uintptr_t start, end; /* whole pages */
	uint64_t offset;      /* in the file, of `start` */
	uint32_t file;        /* identifier */
	bool writable;        /* is, or was: else it can hold no copies */
};

/* Remembers one; false: no room. */
bool maps_add(const struct mapping *mapping);

/* The part of the n-th remembered mapping (from *cursor on) inside [start, end); false: no more. */
bool maps_next(uintptr_t start, uintptr_t end, unsigned *cursor, struct mapping *ret_part);

/* Forgets what lies inside [start, end); a mapping that is cut in the middle becomes two. */
void maps_cut(uintptr_t start, uintptr_t end);

/* Pages in [start, end) may be written from now on. */
void maps_writable(uintptr_t start, uintptr_t end);

/* How many there are. */
unsigned maps_count(void);

void maps_reset(void);

#endif
