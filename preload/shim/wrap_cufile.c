/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFile: a range of a file comes to a range of the device. One record of such a call tells both, whatever the library
 * does inside (read and copy through buffers of its own, or let the disk write to the device), so its own reads are
 * passed over and its copies marked as nested.
 */
#include "cufile.h"
#include "event.h"
#include "guard.h"
#include "load.h"
#include "stack.h"

#include "banned.h"

/* The real entry, of its type, or NULL. Directly in the wrapper only: the return address tells the caller. */
#define REAL(name) ((__typeof__(&name))cufile_real(CUFILE_##name, __builtin_return_address(0)))

static const struct cufile_error absent = {CUFILE_NOT_INITIALIZED, 0};

struct cufile_error cuFileHandleRegister(cufile_handle *handle, struct cufile_description *description)
{
	__typeof__(&cuFileHandleRegister) real = REAL(cuFileHandleRegister);
	struct cufile_error result = absent;
	struct guard guard;

	if (!real)
		return result;
	call_enter(&guard);
	result = real(handle, description);
	call_leave(&guard);
	if (result.error == CUFILE_SUCCESS && description->type == CUFILE_FD && guard_enter(&guard)) {
		if (event_wanted())
			cufile_remember(*handle, description->of.fd);
		guard_leave(&guard);
	}
	return result;
}

/* Forgotten before the call: another thread may get the same handle. */
void cuFileHandleDeregister(cufile_handle handle)
{
	__typeof__(&cuFileHandleDeregister) real = REAL(cuFileHandleDeregister);
	struct guard guard;

	if (!real)
		return;
	cufile_forget(handle);
	call_enter(&guard);
	real(handle);
	call_leave(&guard);
}

/* Registered device memory is no more memory than before; what the library takes for itself, the driver's entries tell. */
struct cufile_error cuFileBufRegister(const void *base, size_t size, int flags)
{
	__typeof__(&cuFileBufRegister) real = REAL(cuFileBufRegister);
	struct cufile_error result = absent;
	struct guard guard;

	if (!real)
		return result;
	call_enter(&guard);
	result = real(base, size, flags);
	call_leave(&guard);
	return result;
}

struct cufile_error cuFileBufDeregister(const void *base)
{
	__typeof__(&cuFileBufDeregister) real = REAL(cuFileBufDeregister);
	struct cufile_error result = absent;
	struct guard guard;

	if (!real)
		return result;
	call_enter(&guard);
	result = real(base);
	call_leave(&guard);
	return result;
}

/* One read as it is noted. */
struct direct {
	cufile_handle handle;
	const char *to;
	off_t offset;
	size_t size;
	uint64_t took; /* ns, 0: it goes on after the call */
};

/* Bytes that were asked for and not yet come end where the file does. */
static uint64_t inside_file(const struct file *file, uint64_t offset, uint64_t size)
{
	uint64_t room = file->size > offset ? file->size - offset : 0;

	return size < room ? size : room;
}

/* A recording runs, and the guard is up. */
static void note_direct(const struct direct *direct, const struct file *file)
{
	uint64_t offset = (uint64_t)direct->offset, size = inside_file(file, offset, direct->size);

	if (!size)
		return;
	EVENT(read, .file = file->id, .offset = offset, .size = size, .addr = (uintptr_t)direct->to,
	      .how = ST_READ_CUFILE, .stack = stack_id(), .took = direct->took);
	if (offset + size >= file->size)
		load_ended(file->size);
}

static void note_read(const struct direct *direct)
{
	struct guard guard;
	struct file file;

	if (!guard_enter(&guard))
		return;
	if (cufile_file(direct->handle, &file) && load_seen(TOUCH_OPEN, &file))
		note_direct(direct, &file);
	guard_leave(&guard);
}

ssize_t cuFileRead(cufile_handle handle, void *base, size_t size, off_t offset, off_t base_offset)
{
	__typeof__(&cuFileRead) real = REAL(cuFileRead);
	uint64_t start = event_now();
	struct guard guard;
	ssize_t got;

	if (!real)
		return -CUFILE_NOT_INITIALIZED;
	call_enter(&guard);
	got = real(handle, base, size, offset, base_offset);
	call_leave(&guard);
	if (got > 0)
		note_read(&(struct direct){handle, (char *)base + base_offset, offset, (size_t)got,
		                           event_now() - start});
	return got;
}

/* One record a piece, until what came is used up. The time is that of the whole: it stands in the first. */
static void note_pieces(cufile_handle handle, const struct cufile_piece *pieces, size_t count, off_t offset,
                        size_t got, uint64_t took)
{
	for (; got && count; pieces++, count--) {
		size_t part = pieces->size < got ? pieces->size : got;

		note_read(&(struct direct){handle, pieces->base, offset, part, took});
		offset += (off_t)part;
		got -= part;
		took = 0;
	}
}

ssize_t cuFileReadv(cufile_handle handle, const struct cufile_piece *pieces, size_t count, off_t offset,
                    unsigned flags)
{
	__typeof__(&cuFileReadv) real = REAL(cuFileReadv);
	uint64_t start = event_now();
	struct guard guard;
	ssize_t got;

	if (!real)
		return -CUFILE_NOT_INITIALIZED;
	call_enter(&guard);
	got = real(handle, pieces, count, offset, flags);
	call_leave(&guard);
	if (got > 0)
		note_pieces(handle, pieces, count, offset, (size_t)got, event_now() - start);
	return got;
}

/* Noted when it was handed over, with what stands in its arguments then: the stream reads them later. */
struct cufile_error cuFileReadAsync(cufile_handle handle, void *base, size_t *size, off_t *offset,
                                    off_t *base_offset, ssize_t *got, void *stream)
{
	__typeof__(&cuFileReadAsync) real = REAL(cuFileReadAsync);
	struct cufile_error result = absent;
	struct guard guard;

	if (!real)
		return result;
	call_enter(&guard);
	result = real(handle, base, size, offset, base_offset, got, stream);
	call_leave(&guard);
	if (result.error == CUFILE_SUCCESS)
		note_read(&(struct direct){handle, (char *)base + *base_offset, *offset, *size, 0});
	return result;
}

/* Likewise: when a batch is over, the library tells the program's own words for its requests, and no addresses. */
struct cufile_error cuFileBatchIOSubmit(void *batch, unsigned count, struct cufile_request *requests,
                                        unsigned flags)
{
	__typeof__(&cuFileBatchIOSubmit) real = REAL(cuFileBatchIOSubmit);
	struct cufile_error result = absent;
	struct guard guard;

	if (!real)
		return result;
	call_enter(&guard);
	result = real(batch, count, requests, flags);
	call_leave(&guard);
	for (unsigned i = 0; result.error == CUFILE_SUCCESS && i < count; i++)
		if (requests[i].opcode == CUFILE_OPCODE_READ)
			note_read(&(struct direct){requests[i].handle,
			                           (char *)requests[i].batch.base +
			                                   requests[i].batch.base_offset,
			                           requests[i].batch.offset, requests[i].batch.size, 0});
	return result;
}

/* The library may read in here what was submitted before. */
struct cufile_error cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count, void *events,
                                           struct timespec *timeout)
{
	__typeof__(&cuFileBatchIOGetStatus) real = REAL(cuFileBatchIOGetStatus);
	struct cufile_error result = absent;
	struct guard guard;

	if (!real)
		return result;
	call_enter(&guard);
	result = real(batch, least, count, events, timeout);
	call_leave(&guard);
	return result;
}
