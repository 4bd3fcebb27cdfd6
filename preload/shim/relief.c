/* SPDX-License-Identifier: Apache-2.0 */
#include "relief.h"

#include "event.h"
#include "guard.h"
#include "load.h"
#include "maps.h"
#include "pages.h"
#include "peek.h"
#include "real.h"
#include "relief_table.h"
#include "signals.h"
#include "sys.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "banned.h"

/* How often a thread gives way to the one with the lock, which may be unmapping many GiB, before it goes on without. */
#define PATIENCE 10000000

_Atomic uint32_t relief_mode;
_Atomic uint32_t relief_ranges;

static _Atomic uint32_t locked;
static _Atomic uint32_t generation; /* of the table: counts what left it */
static _Thread_local uint32_t generation_seen __attribute__((tls_model("initial-exec")));

enum check { CHECK_NONE, CHECK_GOOD, CHECK_BAD };
static _Atomic uint32_t checked; /* enum check */

void relief_prepare(void)
{
	uint32_t mode = (uint32_t)settings_get()->relief;

	if (mode & RELIEF_READONLY)
		signals_prepare();
	atomic_store(&relief_mode, mode);
}

void relief_forked(void)
{
	uint32_t bad = CHECK_BAD;

	atomic_store(&locked, 0);
	atomic_compare_exchange_strong(&checked, &bad, CHECK_NONE); /* its own trace shall say why */
}

bool relief_concerns(const void *addr, size_t size)
{
	uintptr_t start = (uintptr_t)addr;

	return size && relief_table_meets(page_down(start), page_up(start + size));
}

/* --- the lock -------------------------------------------------------------------------------- */

static void lock(void)
{
	uint32_t none = 0;

	for (int i = 0; i < PATIENCE && !atomic_compare_exchange_weak(&locked, &none, 1); i++) {
		none = 0;
		sys_yield();
	}
}

static void unlock(void)
{
	atomic_store(&relief_ranges, relief_table_count());
	atomic_store(&locked, 0);
}

static void lock_quiet(uint64_t *ret_mask)
{
	const uint64_t all = UINT64_MAX;

	sys_sigmask(SIG_SETMASK, &all, ret_mask);
	lock();
}

static void unlock_quiet(const uint64_t *mask)
{
	unlock();
	sys_sigmask(SIG_SETMASK, mask, NULL);
}

/* --- what is said ---------------------------------------------------------------------------- */

static void note(enum st_relief what, const struct relief_range *range, int error)
{
	EVENT(relief, .what = what, .file = range->file, .offset = range->offset,
	      .size = range->end - range->start, .addr = range->start, .result = (uint64_t)-error);
}

/* Pages that are writable now. Whoever replays the trace sees the permission change too. */
static void note_opened(const struct relief_range *part, int error)
{
	struct guard guard;

	if (!guard_enter_nested(&guard))
		return;
	note(ST_RELIEF_WRITTEN, part, error);
	if (error == 0)
		EVENT(protect, .addr = part->start, .size = part->end - part->start,
		      .prot = (unsigned)part->prot);
	guard_leave(&guard);
}

static void note_off(const struct file *file, const char *why, int error)
{
	struct relief_range range = {.file = file->id, .end = file->size};

	note(ST_RELIEF_OFF, &range, error);
	EVENT_TAIL(coverage, why, strlen(why));
}

/* --- making writable ------------------------------------------------------------------------- */

static long protect(uintptr_t start, uintptr_t end, int prot)
{
	return start < end ? sys_call3(SYS_mprotect, (long)start, (long)(end - start), prot) : 0;
}

/* Before Linux 5.14 by a store that changes nothing. */
static void page_write(uintptr_t page)
{
	if (sys_madvise((void *)page, page_size(), MADV_POPULATE_WRITE) == -EINVAL)
		__atomic_fetch_or((unsigned char *)page, 0, __ATOMIC_RELAXED);
}

/*
 * Pieces of a mapping with different permissions can only be moved (mremap) once they are one again, and they become
 * one only if they share the kernel's book of anonymous pages, which the first page with a copy opens: so that page
 * gets its copy while the mapping is still in one piece.
 */
static void range_prepare(const struct relief_range *range, uintptr_t start, uintptr_t end)
{
	if (protect(range->start, range->end, range->prot))
		return;
	page_write(start);
	protect(range->start, start, range->prot & ~PROT_WRITE);
	protect(end, range->end, range->prot & ~PROT_WRITE);
}

static struct relief_range part_of(const struct relief_range *range, uintptr_t start, uintptr_t end)
{
	struct relief_range part = *range;

	part.start = start > range->start ? start : range->start;
	part.end = end < range->end ? end : range->end;
	part.offset += part.start - range->start;
	return part;
}

/* Makes a part writable, or, where there are too many mappings for that, the whole range. *part is what it came to. */
static int range_open(struct relief_range *range, struct relief_range *part)
{
	long error;

	if (!range->faults++)
		range_prepare(range, part->start, part->end);
	error = protect(part->start, part->end, range->prot);
	if (error) {
		*part = *range;
		error = protect(part->start, part->end, range->prot);
	}
	maps_writable(part->start, part->end);
	if (part->start <= range->opened[1] && part->end >= range->opened[0]) {
		range->opened[0] = part->start < range->opened[0] ? part->start : range->opened[0];
		range->opened[1] = part->end > range->opened[1] ? part->end : range->opened[1];
	} else {
		range->opened[0] = part->start;
		range->opened[1] = part->end;
	}
	return (int)error;
}

static bool retry_worthwhile(void)
{
	uint32_t now = atomic_load(&generation);

	if (generation_seen == now)
		return false;
	generation_seen = now;
	return true;
}

bool relief_fault(uintptr_t addr, bool store)
{
	struct relief_range *range, part;
	uint64_t group;
	int error;

	if (!store || !signals_taken())
		return false;
	lock();
	range = relief_table_find(addr);
	if (!range) {
		unlock();
		return retry_worthwhile();
	}
	group = relief_table_group(range);
	part = part_of(range, addr / group * group, (addr / group + 1) * group);
	error = range_open(range, &part);
	unlock();
	note_opened(&part, error);
	return error == 0;
}

/* The next part of [start, end) that is not writable yet, and its range; NULL: no more. */
static struct relief_range *part_next(uintptr_t start, uintptr_t end, unsigned *cursor,
                                      struct relief_range *ret_part)
{
	struct relief_range *range;

	while ((range = relief_table_next(start, end, cursor))) {
		*ret_part = part_of(range, start, end);
		if (ret_part->start < range->opened[0] || ret_part->end > range->opened[1])
			return range;
	}
	return NULL;
}

void relief_write(const void *addr, size_t size)
{
	uintptr_t start = page_down((uintptr_t)addr), end = page_up((uintptr_t)addr + size);
	struct relief_range *range, part;
	unsigned cursor = 0;
	uint64_t mask;
	int error = 0;

	if (!size || end <= start)
		return;
	do {
		lock_quiet(&mask);
		range = part_next(start, end, &cursor, &part);
		if (range)
			error = range_open(range, &part);
		unlock_quiet(&mask);
		if (range)
			note_opened(&part, error);
	} while (range);
}

void relief_vector(const struct iovec *pieces, size_t count)
{
	for (size_t i = 0; i < count && i < IOV_MAX && sys_readable_bytes(&pieces[i], sizeof(pieces[i])); i++)
		relief_target(pieces[i].iov_base, pieces[i].iov_len);
}

/* --- leaving the table ----------------------------------------------------------------------- */

/* Under the lock. A rest that finds no room is given its permission: it needs no watching then. */
static void forget(uintptr_t start, uintptr_t end)
{
	struct relief_range rest;

	if (!relief_table_cut(start, end, &rest))
		protect(rest.start, rest.end, rest.prot);
	atomic_fetch_add(&generation, 1);
}

void relief_leave(const void *addr, size_t size)
{
	uintptr_t start = page_down((uintptr_t)addr), end = page_up((uintptr_t)addr + size);
	struct relief_range *range, part;
	uint64_t mask;

	relief_write(addr, size);
	if (!size || end <= start)
		return;
	lock_quiet(&mask);
	for (unsigned cursor = 0; (range = relief_table_next(start, end, &cursor));) {
		part = part_of(range, start, end);
		protect(part.start, part.end, part.prot);
	}
	forget(start, end);
	unlock_quiet(&mask);
}

void relief_stale(uintptr_t start, size_t size)
{
	uint64_t mask;

	lock_quiet(&mask);
	forget(start, page_up(start + size));
	unlock_quiet(&mask);
}

int relief_munmap(void *addr, size_t size)
{
	uintptr_t start = (uintptr_t)addr;
	uint64_t mask;
	int r;

	lock_quiet(&mask);
	r = real()->munmap(addr, size);
	if (r == 0)
		forget(start, page_up(start + size));
	unlock_quiet(&mask);
	return r;
}

int relief_mprotect(void *addr, size_t size, int prot)
{
	uintptr_t start = (uintptr_t)addr;
	uint64_t mask;
	int r;

	lock_quiet(&mask);
	r = real()->mprotect(addr, size, prot);
	if (r == 0)
		forget(start, page_up(start + size));
	unlock_quiet(&mask);
	return r;
}

/* --- mapping --------------------------------------------------------------------------------- */

/* Once: can stores be caught in every thread, whatever it does to its signals? */
static bool may_relieve(const struct file *file)
{
	const char *why = "relief is off: SIGSEGV cannot be handled";
	uint32_t state = atomic_load(&checked);
	int error;

	if (state == CHECK_NONE) {
		error = relief_check(&why);
		if (error == 0)
			error = signals_take();
		state = error ? CHECK_BAD : CHECK_GOOD;
		if (atomic_exchange(&checked, state) == CHECK_NONE && error)
			note_off(file, why, error);
	}
	return state == CHECK_GOOD;
}

int relief_prot(int prot, int flags, int fd)
{
	const int not_for_us = MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN | MAP_HUGETLB;
	struct file file;

	if ((prot & (PROT_READ | PROT_WRITE | PROT_EXEC)) != (PROT_READ | PROT_WRITE) ||
	    (flags & MAP_TYPE) != MAP_PRIVATE || (flags & not_for_us))
		return prot;
	if (!file_of(fd, &file) || !file_weights(&file) || !load_seen(TOUCH_INSIDE, &file) ||
	    !may_relieve(&file))
		return prot;
	return prot & ~PROT_WRITE;
}

int relief_add(uintptr_t start, size_t size, int prot, const struct file *file, off_t offset)
{
	struct relief_range range = {
		.start = start,
		.end = page_up(start + size),
		.offset = (uint64_t)offset,
		.file = file->id,
		.prot = prot,
	};
	uint64_t mask;
	bool room;

	lock_quiet(&mask);
	forget(range.start, range.end);
	room = relief_table_add(&range);
	if (!room)
		protect(range.start, range.end, prot);
	unlock_quiet(&mask);
	note(room ? ST_RELIEF_READONLY : ST_RELIEF_OFF, &range, room ? 0 : -ENOSPC);
	return room ? prot & ~PROT_WRITE : prot;
}
