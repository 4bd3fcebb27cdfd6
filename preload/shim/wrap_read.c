/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from weight files, with the addresses they went to. A read from another file costs a load and a compare: it
 * is looked at only if its descriptor was once marked as a weight file's, or if it is large and weights are about.
 */
#include "cufile.h"
#include "event.h"
#include "export.h"
#include "file.h"
#include "guard.h"
#include "load.h"
#include "real.h"
#include "relief.h"
#include "relief_drop.h"
#include "stack.h"
#include "sys.h"

#include <limits.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "banned.h"

/* From here on a look at the descriptor (0.2 us) is nothing beside the read itself. */
#define LARGE (64 << 10)

/* The offset is the descriptor's own: where it stands after the call, less what came. */
#define OFFSET_OWN (-1)

static bool concerns(int fd, ssize_t got)
{
	return got > 0 && (file_marked(fd) || (got >= LARGE && file_any_weights()));
}

/* A call of the program: who made it, and when, where the descriptor is known to be a weight file's (else 0). */
struct reading {
	int fd;
	enum st_read_how how;
	const void *caller;
	uint64_t began;
};

/* Directly in the wrapper only. */
#define READING(fd_, how_)                                                         \
	(struct reading)                                                           \
	{                                                                          \
		.fd = (fd_), .how = (how_), .caller = __builtin_return_address(0), \
		.began = unlikely(file_marked(fd_)) ? event_now() : 0              \
	}

static uint64_t reading_took(const struct reading *reading)
{
	return reading->began ? event_now() - reading->began : 0;
}

/*
 * libcufile reads where the device cannot be reached directly, on the program's thread and on its own: what it does for
 * a call of the program is that call's record (wrap_cufile.c), the copies that follow included.
 */
static bool of_cufile(const void *caller)
{
	bool inside = cufile_inside(caller);

	if (unlikely(guard_thread.cufile || inside))
		guard_thread.cufile = inside && !call_nested();
	return inside;
}

/* The file, when it is one of weights and a recording runs. The guard must be up. */
static bool weights_behind(int fd, struct file *ret_file)
{
	return file_read(fd, ret_file) && file_weights(ret_file) && load_seen(TOUCH_INSIDE, ret_file);
}

static uint64_t offset_before(int fd, off_t offset, size_t got)
{
	long at = offset == OFFSET_OWN ? sys_lseek(fd, 0, SEEK_CUR) - (long)got : offset;

	return at > 0 ? (uint64_t)at : 0;
}

static void note_bytes(const struct reading *reading, const struct file *file, uint64_t offset, size_t got,
                       const void *to, uint64_t took)
{
	EVENT(read, .file = file->id, .offset = offset, .size = got, .addr = (uintptr_t)to,
	      .how = reading->how, .stack = stack_id(), .took = took);
	if (relief_on(RELIEF_DROP))
		drop_read(reading->fd, file, offset, got);
	if (file->size && offset + got >= file->size)
		load_ended(file->size);
}

static __attribute__((noinline)) void note_read(const struct reading *reading, off_t offset, ssize_t got,
                                                const void *to)
{
	uint64_t took = reading_took(reading);
	struct guard guard;
	struct file file;

	if (of_cufile(reading->caller) || !guard_enter(&guard))
		return;
	if (weights_behind(reading->fd, &file))
		note_bytes(reading, &file, offset_before(reading->fd, offset, (size_t)got), (size_t)got, to,
		           took);
	guard_leave(&guard);
}

EXPORT ssize_t read(int fd, void *to, size_t size)
{
	const struct reading reading = READING(fd, ST_READ_READ);
	ssize_t got = real()->read(fd, relief_target(to, size), size);

	if (unlikely(concerns(fd, got)))
		note_read(&reading, OFFSET_OWN, got, to);
	return got;
}

EXPORT ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
	const struct reading reading = READING(fd, ST_READ_PREAD);
	ssize_t got = real()->pread(fd, relief_target(to, size), size, offset);

	if (unlikely(concerns(fd, got)))
		note_read(&reading, offset, got, to);
	return got;
}

EXPORT ssize_t pread64(int fd, void *to, size_t size, off64_t offset) __attribute__((alias("pread")));

ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t offset, size_t room);

EXPORT ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
	const struct reading reading = READING(fd, ST_READ_READ);
	ssize_t got = real()->__read_chk(fd, relief_target(to, size), size, room);

	if (unlikely(concerns(fd, got)))
		note_read(&reading, OFFSET_OWN, got, to);
	return got;
}

EXPORT ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room)
{
	const struct reading reading = READING(fd, ST_READ_PREAD);
	ssize_t got = real()->__pread_chk(fd, relief_target(to, size), size, offset, room);

	if (unlikely(concerns(fd, got)))
		note_read(&reading, offset, got, to);
	return got;
}

EXPORT ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t offset, size_t room)
	__attribute__((alias("__pread_chk")));

/* One record a piece of the vector, until what came is used up. The vector may have changed since: its end counts. */
static void note_pieces(const struct reading *reading, const struct file *file, uint64_t offset, size_t got,
                        const struct iovec *pieces, int count, uint64_t took)
{
	for (; got && count; pieces++, count--) {
		size_t part = pieces->iov_len < got ? pieces->iov_len : got;

		if (part)
			note_bytes(reading, file, offset, part, pieces->iov_base, took);
		offset += part;
		got -= part;
		took = 0; /* it is told once */
	}
}

static __attribute__((noinline)) void note_vector(const struct reading *reading, off_t offset, ssize_t got,
                                                  const struct iovec *pieces, int count)
{
	uint64_t took = reading_took(reading);
	struct guard guard;
	struct file file;

	if (of_cufile(reading->caller) || !guard_enter(&guard))
		return;
	if (weights_behind(reading->fd, &file))
		note_pieces(reading, &file, offset_before(reading->fd, offset, (size_t)got), (size_t)got,
		            pieces, count, took);
	guard_leave(&guard);
}

EXPORT ssize_t readv(int fd, const struct iovec *pieces, int count)
{
	const struct reading reading = READING(fd, ST_READ_READV);
	ssize_t got = real()->readv(fd, relief_pieces(pieces, count), count);

	if (unlikely(concerns(fd, got)))
		note_vector(&reading, OFFSET_OWN, got, pieces, count);
	return got;
}

EXPORT ssize_t preadv(int fd, const struct iovec *pieces, int count, off_t offset)
{
	const struct reading reading = READING(fd, ST_READ_PREADV);
	ssize_t got = real()->preadv(fd, relief_pieces(pieces, count), count, offset);

	if (unlikely(concerns(fd, got)))
		note_vector(&reading, offset, got, pieces, count);
	return got;
}

EXPORT ssize_t preadv64(int fd, const struct iovec *pieces, int count, off64_t offset)
	__attribute__((alias("preadv")));

/* Offset -1 is the descriptor's own there too. */
EXPORT ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t offset, int flags)
{
	const struct reading reading = READING(fd, ST_READ_PREADV);
	ssize_t got = real()->preadv2(fd, relief_pieces(pieces, count), count, offset, flags);

	if (unlikely(concerns(fd, got)))
		note_vector(&reading, offset, got, pieces, count);
	return got;
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *pieces, int count, off64_t offset, int flags)
	__attribute__((alias("preadv2")));

/* From file to file: through the page cache, to no address. `offset` is the program's, moved on by the call. */
static void note_through(const struct reading *reading, const off_t *offset, ssize_t got)
{
	if (unlikely(concerns(reading->fd, got)))
		note_read(reading, offset ? *offset - got : OFFSET_OWN, got, NULL);
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t size)
{
	const struct reading reading = READING(in, ST_READ_SENDFILE);
	ssize_t got = real()->sendfile(out, in, offset, size);

	note_through(&reading, offset, got);
	return got;
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) __attribute__((alias("sendfile")));

EXPORT ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t size,
                               unsigned flags)
{
	const struct reading reading = READING(in, ST_READ_COPYRANGE);
	ssize_t got = real()->copy_file_range(in, in_offset, out, out_offset, size, flags);

	note_through(&reading, in_offset, got);
	return got;
}
