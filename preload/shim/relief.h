/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SPARKTRACE_RELIEF: the one place where the shim changes what the program does.
 *
 * readonly	A weight file that is asked for private and writable is mapped without write permission. The driver of a
 *		machine with one pool pins the source of a copy, which breaks copy-on-write where the mapping is writable:
 *		an anonymous copy of every weight. What the program was promised stays true: a store into such a page
 *		faults, and the handler of signals.c makes the page and some around it writable; where the kernel or the
 *		driver would write, the range is made writable before the call.
 *
 * The ranges lie in the table of relief_table.h. Its lock is held with all signals blocked, and what runs under it
 * touches no memory of the program: the handler may take it in any thread at any instant. A fault whose range left the
 * table meanwhile (another thread gave it its permission) is tried once more before it counts as the program's own.
 *
 * Nothing is relieved unless a recording runs: what is done is said in `relief` records. 64 KiB around a store are made
 * writable at first, more with every one.
 */
#ifndef SPARKTRACE_SHIM_RELIEF_H
#define SPARKTRACE_SHIM_RELIEF_H

#include "export.h"
#include "file.h"
#include "settings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

extern _Atomic uint32_t relief_mode;   /* bits of enum setting_relief */
extern _Atomic uint32_t relief_ranges; /* in the table */

/* In the constructor. Until then, and when it is off, all that follows costs one load. */
void relief_prepare(void);

static inline bool relief_on(enum setting_relief what)
{
	return unlikely(atomic_load_explicit(&relief_mode, memory_order_relaxed) & what);
}

static inline bool relief_any(void)
{
	return unlikely(atomic_load_explicit(&relief_ranges, memory_order_relaxed) != 0);
}

/* Does one of them share bytes with the `size` ones at `addr`? */
bool relief_concerns(const void *addr, size_t size);

/* A fork child may have inherited a lock that another thread of its parent held. */
void relief_forked(void);

/*
 * What to ask the kernel for when the program asks for `prot`: the same, or the same without PROT_WRITE; then the
 * mapping is to be told to relief_add(), with what the program asked for. The guard must be up. errno is not kept.
 * relief_add() returns what the mapping has in the end: `prot`, when there was no room for it in the table.
 */
int relief_prot(int prot, int flags, int fd);
int relief_add(uintptr_t start, size_t size, int prot, const struct file *file, off_t offset);

/* A new mapping lies there: what is still known of an old one is not true any more. */
void relief_stale(uintptr_t start, size_t size);

/* The calls that end a range or change its permission, done in one step with the table. errno as the call left it. */
int relief_munmap(void *addr, size_t size);
int relief_mprotect(void *addr, size_t size, int prot);

/* Somebody but the program's own stores is about to write there: makes it writable. Keeps errno. */
void relief_write(const void *addr, size_t size);

/* The same where it is needed. Returns `to`. */
static inline void *relief_target(void *to, size_t size)
{
	if (relief_any() && relief_concerns(to, size))
		relief_write(to, size);
	return to;
}

/* Of a vector as the program hands it to the kernel, which may be none: that is for the kernel to say. */
void relief_vector(const struct iovec *pieces, size_t count);

/* Returns `pieces` too. */
static inline const struct iovec *relief_pieces(const struct iovec *pieces, int count)
{
	if (relief_any() && count > 0)
		relief_vector(pieces, (size_t)count);
	return pieces;
}

/* The same for good: the range leaves the table. */
void relief_leave(const void *addr, size_t size);

/*
 * A fault at `addr`, in the handler, all signals blocked. `store`: a store into a page that is there and read-only.
 * True: the instruction can be repeated.
 */
bool relief_fault(uintptr_t addr, bool store);

/* relief_check.c: 0, or why stores could not be caught in every thread: a negative errno, *ret_why. */
int relief_check(const char **ret_why);

#endif
