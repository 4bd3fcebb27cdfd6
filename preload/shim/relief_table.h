/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges that the program believes to be writable and that are not: a small table of fixed size, in the shim's own
 * memory. It knows nothing of locks and system calls: the caller holds the lock of relief.c, but for one look.
 */
#ifndef SPARKTRACE_SHIM_RELIEF_TABLE_H
#define SPARKTRACE_SHIM_RELIEF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relief_range {
	uintptr_t start, end; /* whole pages; end 0: the slot is free */
	uint64_t offset;      /* in the file, of `start` */
	uint32_t file;        /* identifier */
	uint32_t faults;      /* stores that were met in it */
	int prot;             /* what the program asked for */
	uintptr_t opened[2];  /* from, to: what was made writable last */
};

/*
 * Does any range share bytes with [start, end)? Without the lock: what another thread takes in or out meanwhile may be
 * seen or not, what stays is.
 */
bool relief_table_meets(uintptr_t start, uintptr_t end);

/* Takes a range in; false: no room. It overlaps none that is there. */
bool relief_table_add(const struct relief_range *range);

/* The range in which `address` lies, or NULL. */
struct relief_range *relief_table_find(uintptr_t address);

/* The n-th range (from *cursor on) that shares bytes with [start, end), or NULL: no more. */
struct relief_range *relief_table_next(uintptr_t start, uintptr_t end, unsigned *cursor);

/*
 * Forgets [start, end). A range that is cut in the middle becomes two. False: there was no room for the second one,
 * which is *ret_rest, and is forgotten too.
 */
bool relief_table_cut(uintptr_t start, uintptr_t end, struct relief_range *ret_rest);

/* How many there are. */
unsigned relief_table_count(void);

/* Bytes to be made writable around the next store into a range: more with every one, so that their number is bounded. */
uint64_t relief_table_group(const struct relief_range *range);

#endif
