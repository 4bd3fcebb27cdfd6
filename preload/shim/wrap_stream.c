/* SPDX-License-Identifier: Apache-2.0 */
/* fread and its kin from weight files: stdio reads inside libc, where no wrapper sees it. */
#include "event.h"
#include "export.h"
#include "file.h"
#include "guard.h"
#include "load.h"
#include "real.h"
#include "relief.h"
#include "relief_drop.h"
#include "stack.h"

#include <errno.h>
#include <stdio.h>

#include "banned.h"

/* With optimisation <stdio.h> makes a macro of it. */
#undef fread_unlocked

size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);

/* Where the program stands in the stream, not where libc has read to. */
static void note_stream(FILE *stream, int fd, const void *to, size_t bytes, uint64_t took)
{
	struct file file;
	off_t after;

	if (!file_read(fd, &file) || !file_weights(&file) || !load_seen(TOUCH_INSIDE, &file))
		return;
	after = ftello(stream);
	if (after < (off_t)bytes)
		return;
	EVENT(read, .file = file.id, .offset = (uint64_t)after - bytes, .size = bytes, .addr = (uintptr_t)to,
	      .how = ST_READ_FREAD, .stack = stack_id(), .took = took);
	if (relief_on(RELIEF_DROP))
		drop_read(fd, &file, (uint64_t)after - bytes, bytes);
	if ((uint64_t)after >= file.size)
		load_ended(file.size);
}

/* When the call began, where the stream is known to be a weight file's; else 0. */
static uint64_t fread_began(FILE *stream)
{
	int error = errno, fd;

	if (likely(!file_any_weights()))
		return 0;
	fd = fileno(stream);
	errno = error; /* a stream in memory has no descriptor */
	return file_marked(fd) ? event_now() : 0;
}

static void note_fread(FILE *stream, const void *to, size_t size, size_t got, uint64_t began)
{
	uint64_t took = began ? event_now() - began : 0;
	struct guard guard;
	int fd;

	if (!got || !file_any_weights() || !guard_enter(&guard))
		return;
	fd = fileno(stream);
	if (file_marked(fd))
		note_stream(stream, fd, to, size * got, took);
	guard_leave(&guard);
}

EXPORT size_t fread(void *to, size_t size, size_t count, FILE *stream)
{
	uint64_t began = fread_began(stream);
	size_t got = real()->fread(relief_target(to, size * count), size, count, stream);

	note_fread(stream, to, size, got, began);
	return got;
}

EXPORT size_t fread_unlocked(void *to, size_t size, size_t count, FILE *stream)
{
	uint64_t began = fread_began(stream);
	size_t got = real()->fread_unlocked(relief_target(to, size * count), size, count, stream);

	note_fread(stream, to, size, got, began);
	return got;
}

EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream)
{
	uint64_t began = fread_began(stream);
	size_t got = real()->__fread_chk(relief_target(to, size * count), room, size, count, stream);

	note_fread(stream, to, size, got, began);
	return got;
}

EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *stream)
{
	uint64_t began = fread_began(stream);
	size_t got = real()->__fread_unlocked_chk(relief_target(to, size * count), room, size, count, stream);

	note_fread(stream, to, size, got, began);
	return got;
}
