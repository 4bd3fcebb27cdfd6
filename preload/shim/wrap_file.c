/* SPDX-License-Identifier: Apache-2.0 */
/* The opens of weight files, in all spellings. Other files cost a look at the end of their name. */
#include "event.h"
#include "export.h"
#include "file.h"
#include "guard.h"
#include "load.h"
#include "real.h"
#include "stack.h"
#include "uring.h"
#include "weights.h"

#include <stdarg.h>
#include <stdio.h>

#include "banned.h"

static void note_open(int fd, int dirfd, const char *path, int flags)
{
	struct guard guard;
	struct file file;

	if (fd < 0 || !file_may_hold_weights(path) || (flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH))
		return;
	if (!guard_enter(&guard))
		return;
	if (event_wanted() && file_opened(fd, dirfd, path, &file) && file_weights(&file) &&
	    load_seen(TOUCH_OPEN, &file)) {
		EVENT(open, .file = file.id, .flags = (unsigned)flags, .stack = stack_id());
		uring_look();
	}
	guard_leave(&guard);
}

/* The mode is there only when a file may be made. */
#define MODE_OF(flags, more)                                               \
	({                                                                 \
		mode_t mode_ = 0;                                          \
		if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) { \
			va_start(more, flags);                             \
			mode_ = va_arg(more, mode_t);                      \
			va_end(more);                                      \
		}                                                          \
		mode_;                                                     \
	})

EXPORT int open(const char *path, int flags, ...)
{
	va_list more;
	mode_t mode = MODE_OF(flags, more);
	int fd = real()->open(path, flags, mode);

	note_open(fd, AT_FDCWD, path, flags);
	return fd;
}

EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
	va_list more;
	mode_t mode = MODE_OF(flags, more);
	int fd = real()->openat(dirfd, path, flags, mode);

	note_open(fd, dirfd, path, flags);
	return fd;
}

EXPORT int openat64(int dirfd, const char *path, int flags, ...) __attribute__((alias("openat")));

/* What _FORTIFY_SOURCE makes of an open without a mode. Declared nowhere. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
	int fd = real()->__open_2(path, flags);

	note_open(fd, AT_FDCWD, path, flags);
	return fd;
}

EXPORT int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));

EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
	int fd = real()->__openat_2(dirfd, path, flags);

	note_open(fd, dirfd, path, flags);
	return fd;
}

EXPORT int __openat64_2(int dirfd, const char *path, int flags) __attribute__((alias("__openat_2")));

static void note_stream(FILE *stream, const char *path, const char *mode)
{
	int error = errno;

	if (stream && path && mode[0] == 'r' && file_may_hold_weights(path))
		note_open(fileno(stream), AT_FDCWD, path, O_RDONLY);
	errno = error;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	FILE *stream = real()->fopen(path, mode);

	note_stream(stream, path, mode);
	return stream;
}

EXPORT FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

EXPORT FILE *freopen(const char *path, const char *mode, FILE *old)
{
	FILE *stream = real()->freopen(path, mode, old);

	note_stream(stream, path, mode);
	return stream;
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *old) __attribute__((alias("freopen")));
