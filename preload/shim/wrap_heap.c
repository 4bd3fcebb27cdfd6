/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host allocations from SPARKTRACE_HEAP_THRESHOLD bytes on. The small ones, and their release, pay a compare and a
 * load: no thread-local storage, no table. The list of what must be wrapped is glibc's manual, Replacing malloc.
 *
 * The level CALL is up around the real call of a large one: another allocator than glibc's maps memory through our
 * wrappers, and this block must not be counted twice.
 */
#define SHIM_WRAPS_HEAP
#include "event.h"
#include "export.h"
#include "guard.h"
#include "heap.h"
#include "load.h"
#include "real.h"
#include "settings.h"
#include "stack.h"
#include "wrap_heap.h"

#include <malloc.h>
#include <stdlib.h>

#include "banned.h"

static size_t threshold = 1u << 20;

void heap_prepare(void)
{
	threshold = settings_get()->heap_threshold;
}

static inline bool is_large(size_t size)
{
	return unlikely(size >= threshold);
}

static void note_alloc(void *block, size_t size, enum st_host_how how)
{
	struct guard guard;

	if (!guard_enter(&guard))
		return;
	if (!block)
		load_refused(size);
	if (event_wanted() && (!block || heap_add(block)))
		EVENT(alloc, .addr = (uintptr_t)block, .size = size, .how = how, .stack = stack_id());
	guard_leave(&guard);
}

/* Returns the seq of the record, 0: it was not one of ours. */
static uint64_t note_free(void *block)
{
	struct guard guard;
	uint64_t seq = 0;

	if (!guard_enter(&guard))
		return 0;
	if (heap_remove(block))
		seq = EVENT(free, .addr = (uintptr_t)block);
	guard_leave(&guard);
	return seq;
}

static __attribute__((noinline)) void *malloc_large(size_t size)
{
	struct guard call;
	void *block;

	call_enter(&call);
	block = real()->malloc(size);
	call_leave(&call);
	note_alloc(block, size, ST_HOST_MALLOC);
	return block;
}

EXPORT void *malloc(size_t size)
{
	return is_large(size) ? malloc_large(size) : real()->malloc(size);
}

static __attribute__((noinline)) void *calloc_large(size_t count, size_t size)
{
	struct guard call;
	void *block;

	call_enter(&call);
	block = real()->calloc(count, size);
	call_leave(&call);
	note_alloc(block, count * size, ST_HOST_CALLOC);
	return block;
}

/* A product that does not fit is refused by the real one, and is nobody's wish for memory. */
EXPORT void *calloc(size_t count, size_t size)
{
	size_t bytes;

	if (likely(!__builtin_mul_overflow(count, size, &bytes)) && is_large(bytes))
		return calloc_large(count, size);
	return real()->calloc(count, size);
}

static __attribute__((noinline)) void free_suspect(void *block)
{
	note_free(block);
	real()->free(block);
}

EXPORT void free(void *block)
{
	if (unlikely(heap_suspect(block)))
		free_suspect(block);
	else
		real()->free(block);
}

/* The old block lives on when its enlargement is refused. */
static void note_kept(void *block, uint64_t seq)
{
	struct guard guard;

	if (!seq || !guard_enter(&guard))
		return;
	EVENT(revoke, .target = event_target(seq));
	heap_add(block);
	guard_leave(&guard);
}

/* Release before the call, allocation after it: another thread may get the old address in between. */
static __attribute__((noinline)) void *realloc_large(void *old, size_t size)
{
	uint64_t seq = old && heap_suspect(old) ? note_free(old) : 0;
	struct guard call;
	void *block;

	call_enter(&call);
	block = real()->realloc(old, size);
	call_leave(&call);
	if (!block && size)
		note_kept(old, seq);
	if (is_large(size))
		note_alloc(block, size, seq ? ST_HOST_REALLOC : ST_HOST_GROWN);
	return block;
}

EXPORT void *realloc(void *old, size_t size)
{
	if (is_large(size) || unlikely(heap_suspect(old)))
		return realloc_large(old, size);
	return real()->realloc(old, size);
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(count, size, &bytes)))
		return real()->reallocarray(old, count, size);
	return realloc(old, bytes);
}

EXPORT int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
	struct guard call;
	int r;

	if (!is_large(size))
		return real()->posix_memalign(ret_block, alignment, size);
	call_enter(&call);
	r = real()->posix_memalign(ret_block, alignment, size);
	call_leave(&call);
	if (r == 0 || r == ENOMEM)
		note_alloc(r ? NULL : *ret_block, size, ST_HOST_ALIGNED);
	return r;
}

/* aligned_alloc, and memalign, which is the same in glibc. */
static void *aligned_large(void *(*call)(size_t, size_t), size_t alignment, size_t size)
{
	struct guard guard;
	void *block;

	call_enter(&guard);
	block = call(alignment, size);
	call_leave(&guard);
	note_alloc(block, size, ST_HOST_ALIGNED);
	return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (is_large(size))
		return aligned_large(real()->aligned_alloc, alignment, size);
	return real()->aligned_alloc(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	if (is_large(size))
		return aligned_large(real()->memalign, alignment, size);
	return real()->memalign(alignment, size);
}

/* valloc and pvalloc: obsolete, page-aligned. */
static void *paged_large(void *(*call)(size_t), size_t size)
{
	struct guard guard;
	void *block;

	call_enter(&guard);
	block = call(size);
	call_leave(&guard);
	note_alloc(block, size, ST_HOST_ALIGNED);
	return block;
}

EXPORT void *valloc(size_t size)
{
	return is_large(size) ? paged_large(real()->valloc, size) : real()->valloc(size);
}

EXPORT void *pvalloc(size_t size)
{
	return is_large(size) ? paged_large(real()->pvalloc, size) : real()->pvalloc(size);
}
