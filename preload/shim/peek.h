/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading this process's own memory through pointers that may be wrong, without a fault.
 *
 * peek() asks the kernel whether a page can be read, once, and then simply reads: for what this very thread holds if it
 * is what it seems to be, so that only a pointer into somewhere else must be feared, which leads to a page not seen
 * before. peek_now() asks again: for what may have been given back since. fetch() lets the kernel copy: for what other
 * threads may give back at this moment.
 */
#ifndef SPARKTRACE_SHIM_PEEK_H
#define SPARKTRACE_SHIM_PEEK_H

#include "sys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define PEEK_PAGE  4096u /* the smallest that there is */
#define PEEK_PAGES 256u  /* of the hash in peek_place() */

/*
 * Numbers of pages that could be read; the first page of all is taken to be none. A zeroed one knows none. Threads may
 * share it.
 */
struct peek {
	_Atomic uintptr_t page[PEEK_PAGES];
};

/* Asks the kernel, which reads the signal set before it refuses the unknown operation. `address` is a multiple of 8. */
static inline bool sys_readable(uintptr_t address)
{
	return sys_call4(SYS_rt_sigprocmask, -1, (long)address, 0, 8) != -EFAULT;
}

/* The same of `size` bytes, no more than a page of them. */
static inline bool sys_readable_bytes(const void *start, size_t size)
{
	uintptr_t first = (uintptr_t)start, last = first + size - 1;

	return sys_readable(first & ~(uintptr_t)7) && sys_readable(last & ~(uintptr_t)7);
}

static inline _Atomic uintptr_t *peek_place(struct peek *peek, uintptr_t page)
{
	return &peek->page[page * UINT64_C(0x9E3779B97F4A7C15) >> 56];
}

static inline bool peek_page(struct peek *peek, uintptr_t page, bool now)
{
	_Atomic uintptr_t *known = peek_place(peek, page);

	if (!page)
		return false;
	if (!now && atomic_load_explicit(known, memory_order_relaxed) == page)
		return true;
	if (!sys_readable(page * PEEK_PAGE))
		return false;
	atomic_store_explicit(known, page, memory_order_relaxed);
	return true;
}

static inline bool peek_pages(struct peek *peek, uintptr_t address, size_t size, bool now)
{
	uintptr_t last = (address + size - 1) / PEEK_PAGE;

	if (!size || address + size < address)
		return false;
	for (uintptr_t page = address / PEEK_PAGE; page <= last; page++)
		if (!peek_page(peek, page, now))
			return false;
	return true;
}

/* Is all of it readable? */
static inline bool peek_range(struct peek *peek, uintptr_t address, size_t size)
{
	return peek_pages(peek, address, size, false);
}

static inline bool peek_now(struct peek *peek, uintptr_t address, size_t size)
{
	return peek_pages(peek, address, size, true);
}

/* Copies; false: not readable. */
static inline bool peek(struct peek *peek, uintptr_t address, void *ret_bytes, size_t size)
{
	if (!peek_range(peek, address, size))
		return false;
	memcpy(ret_bytes, (const void *)address, size);
	return true;
}

static inline void peek_reset(struct peek *peek)
{
	for (unsigned i = 0; i < PEEK_PAGES; i++)
		atomic_store_explicit(&peek->page[i], 0, memory_order_relaxed);
}

/* Copies; `tid` is the calling thread. 0, or a negative errno: EFAULT, or what forbids such reads. */
static inline int fetch(uint32_t tid, uintptr_t address, void *ret_bytes, size_t size)
{
	struct iovec here = {ret_bytes, size}, there = {(void *)address, size};
	long count = sys_call6(SYS_process_vm_readv, (long)tid, (long)&here, 1, (long)&there, 1, 0);

	return count < 0 ? (int)count : (size_t)count == size ? 0 : -EFAULT;
}

#endif
