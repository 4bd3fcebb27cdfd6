/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says about its pages and files: madvise, posix_fadvise, readahead, mlock and their kin. */
#include "anon.h"
#include "event.h"
#include "export.h"
#include "guard.h"
#include "maps.h"
#include "pages.h"
#include "real.h"
#include "relief.h"
#include "file.h"

#include <sys/mman.h>

#include "banned.h"

/* Advice after which anonymous copies are gone. */
static bool discards(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
}

static void note_advise(void *addr, size_t size, int advice)
{
	uintptr_t start = (uintptr_t)addr;
	struct guard guard;

	if (!guard_enter(&guard))
		return;
	if (discards(advice) && maps_count())
		anon_note(page_down(start), page_up(start + size), ST_MOMENT_UNMAP);
	EVENT(advise, .addr = start, .size = size, .advice = (unsigned)advice);
	guard_leave(&guard);
}

/* Before the call, like a release: DONTNEED is one. A failed one changed nothing that the replay believes. */
EXPORT int madvise(void *addr, size_t size, int advice)
{
	if (relief_any() && advice == MADV_POPULATE_WRITE && relief_concerns(addr, size))
		relief_leave(addr, size);
	note_advise(addr, size, advice);
	return real()->madvise(addr, size, advice);
}

/* Its DONTNEED does nothing in glibc: never noted as one. */
EXPORT int posix_madvise(void *addr, size_t size, int advice)
{
	if (advice != POSIX_MADV_DONTNEED)
		note_advise(addr, size, advice);
	return real()->posix_madvise(addr, size, advice);
}

static void note_fadvise(int fd, off_t offset, size_t size, int advice)
{
	struct file file;
	struct guard guard;

	if (!file_any_weights() || !guard_enter(&guard))
		return;
	if (file_read(fd, &file) && file_weights(&file))
		EVENT(fadvise, .file = file.id, .offset = (uint64_t)offset, .size = size,
		      .advice = (unsigned)advice);
	guard_leave(&guard);
}

EXPORT int posix_fadvise(int fd, off_t offset, off_t size, int advice)
{
	int r = real()->posix_fadvise(fd, offset, size, advice);

	if (r == 0)
		note_fadvise(fd, offset, (size_t)size, advice);
	return r;
}

EXPORT int posix_fadvise64(int fd, off64_t offset, off64_t size, int advice)
	__attribute__((alias("posix_fadvise")));

EXPORT ssize_t readahead(int fd, off64_t offset, size_t size)
{
	ssize_t r = real()->readahead(fd, offset, size);

	if (r == 0)
		note_fadvise(fd, offset, size, POSIX_FADV_WILLNEED);
	return r;
}

static void note_lock(const void *addr, size_t size, bool locked, int r)
{
	int error = r ? errno : 0;
	struct guard guard;

	if (!guard_enter(&guard))
		return;
	EVENT(lock, .addr = (uintptr_t)addr, .size = size, .locked = locked, .result = (uint64_t)error);
	guard_leave(&guard);
}

EXPORT int mlock(const void *addr, size_t size)
{
	int r = real()->mlock(addr, size);

	note_lock(addr, size, true, r);
	return r;
}

EXPORT int mlock2(const void *addr, size_t size, unsigned flags)
{
	int r = real()->mlock2(addr, size, flags);

	note_lock(addr, size, true, r);
	return r;
}

EXPORT int munlock(const void *addr, size_t size)
{
	int r = real()->munlock(addr, size);

	note_lock(addr, size, false, r);
	return r;
}

/* All pages: address 0, no size. */
EXPORT int mlockall(int flags)
{
	int r = real()->mlockall(flags);

	note_lock(NULL, 0, true, r);
	return r;
}

EXPORT int munlockall(void)
{
	int r = real()->munlockall();

	note_lock(NULL, 0, false, r);
	return r;
}
