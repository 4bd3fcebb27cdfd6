/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufile.so.0, simulated: files to and from the memory of the simulated device.
 *
 * SIMCUDA_CUFILE says how bytes travel:
 *	compat	(and by default) as where the disk cannot reach the device, GB10 among it: read() of libc into a pinned
 *		buffer, then a copy by the driver, on the caller's thread
 *	threads	the same on a thread of the library's own
 *	direct	the disk writes to the device: a system call that nobody but the kernel sees
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define VERSION 1160 /* 1.16: thousands, then tens */
#define PIECE   ((size_t)1 << 20)
#define ALIGN   4096
#define FD_TYPE 1
#define READING 0

enum cufile_status {
	SUCCESS = 0,
	NOT_INITIALIZED = 5001,
	INVALID_FILE_TYPE = 5018,
	INVALID_VALUE = 5022,
	NOT_REGISTERED = 5027,
};

struct error {
	int status;
	CUresult driver;
};

struct description {
	int type;
	union {
		int fd;
		void *handle;
	} of;
	const void *operations;
};

struct piece {
	void *base;
	size_t size;
};

struct request {
	int mode;
	struct {
		void *base;
		off_t offset, base_offset;
		size_t size;
	} batch;
	void *handle;
	int opcode;
	void *cookie;
};

struct event {
	void *cookie;
	int status; /* 0x10: complete, 0x40: failed */
	size_t size;
};

struct properties {
	struct {
		unsigned major, minor;
		size_t poll_threshold, direct_size;
		unsigned status, control;
	} nvfs;
	unsigned features, device_cache, buffer_cache, pinned, batch, timeout;
};

struct handle {
	int fd;    /* the program's */
	int plain; /* the same file without O_DIRECT, for what is not aligned */
};

/* What was submitted is over at once; the events wait to be asked for. */
struct batch {
	unsigned count, room;
	struct event events[];
};

static __typeof__(&cuMemAllocHost) driver_pinned;
static __typeof__(&cuMemcpyHtoD) driver_copy;
static __typeof__(&cuCtxGetCurrent) driver_context;
static __typeof__(&cuCtxSetCurrent) driver_enter;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *bounce; /* one for all: calls take turns */

static void driver_find(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		return;
	driver_pinned = (__typeof__(driver_pinned))dlsym(driver, "cuMemAllocHost_v2");
	driver_copy = (__typeof__(driver_copy))dlsym(driver, "cuMemcpyHtoD_v2");
	driver_context = (__typeof__(driver_context))dlsym(driver, "cuCtxGetCurrent");
	driver_enter = (__typeof__(driver_enter))dlsym(driver, "cuCtxSetCurrent");
}

static bool mode_is(const char *name)
{
	const char *mode = getenv("SIMCUDA_CUFILE");

	return mode && strcmp(mode, name) == 0;
}

/* One range, and what came of it. */
struct transfer {
	const struct handle *handle;
	char *to;
	size_t size;
	off_t offset;
	ssize_t got;
	CUcontext context; /* the caller's */
};

static ssize_t piece_read(struct transfer *transfer, size_t done)
{
	size_t size = transfer->size - done < PIECE ? transfer->size - done : PIECE;
	off_t offset = transfer->offset + (off_t)done;
	bool aligned = size % ALIGN == 0 && offset % ALIGN == 0;
	ssize_t got = pread(aligned ? transfer->handle->fd : transfer->handle->plain, bounce, size, offset);

	if (got <= 0)
		return got;
	return driver_copy((CUdeviceptr)(transfer->to + done), bounce, (size_t)got) == CUDA_SUCCESS ? got
	                                                                                            : -1;
}

static void *transfer_buffered(void *data)
{
	struct transfer *transfer = data;
	ssize_t got = 1;
	size_t done = 0;

	while (done < transfer->size && (got = piece_read(transfer, done)) > 0)
		done += (size_t)got;
	transfer->got = got < 0 ? -1 : (ssize_t)done;
	return NULL;
}

static void *transfer_thread(void *data)
{
	struct transfer *transfer = data;

	driver_enter(transfer->context);
	return transfer_buffered(transfer);
}

static void transfer_elsewhere(struct transfer *transfer)
{
	pthread_t thread;

	driver_context(&transfer->context);
	if (pthread_create(&thread, NULL, transfer_thread, transfer) == 0)
		pthread_join(thread, NULL);
}

static void transfer_direct(struct transfer *transfer)
{
	size_t done = 0;
	long got = 1;

	while (done < transfer->size && got > 0) {
		got = syscall(SYS_pread64, transfer->handle->plain, transfer->to + done,
		              transfer->size - done, transfer->offset + (off_t)done);
		done += got > 0 ? (size_t)got : 0;
	}
	transfer->got = got < 0 ? -1 : (ssize_t)done;
}

static void transfer_run(struct transfer *transfer)
{
	if (mode_is("direct")) {
		transfer_direct(transfer);
		return;
	}
	pthread_mutex_lock(&lock);
	if (bounce || driver_pinned(&bounce, PIECE) == CUDA_SUCCESS) {
		if (mode_is("threads"))
			transfer_elsewhere(transfer);
		else
			transfer_buffered(transfer);
	}
	pthread_mutex_unlock(&lock);
}

static ssize_t read_range(struct handle *handle, void *base, size_t size, off_t offset, off_t base_offset)
{
	struct transfer transfer = {
		.to = (char *)base + base_offset, .size = size, .offset = offset, .got = -1};

	if (!handle)
		return -NOT_REGISTERED;
	if (!base || offset < 0)
		return -INVALID_VALUE;
	transfer.handle = handle;
	transfer_run(&transfer);
	return transfer.got;
}

EXPORT struct error cuFileDriverOpen(void)
{
	pthread_once(&once, driver_find);
	return (struct error){driver_copy ? SUCCESS : NOT_INITIALIZED, CUDA_SUCCESS};
}

EXPORT struct error cuFileDriverClose(void)
{
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

EXPORT struct error cuFileDriverGetProperties(struct properties *properties)
{
	*properties = (struct properties){.device_cache = 128 << 10, .buffer_cache = 1 << 10, .batch = 128};
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

EXPORT struct error cuFileDriverSetMaxDirectIOSize(size_t size)
{
	return (struct error){size ? SUCCESS : INVALID_VALUE, CUDA_SUCCESS};
}

EXPORT struct error cuFileDriverSetMaxPinnedMemSize(size_t size)
{
	return (struct error){size ? SUCCESS : INVALID_VALUE, CUDA_SUCCESS};
}

EXPORT struct error cuFileGetVersion(int *version)
{
	*version = VERSION;
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

static int plain_open(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* As the real one, it opens the driver where that was not done. */
EXPORT struct error cuFileHandleRegister(void **handle, struct description *description)
{
	struct handle *made;
	struct stat status;

	if (!handle || !description || description->type != FD_TYPE)
		return (struct error){INVALID_VALUE, CUDA_SUCCESS};
	if (cuFileDriverOpen().status)
		return (struct error){NOT_INITIALIZED, CUDA_SUCCESS};
	if (fstat(description->of.fd, &status) || !S_ISREG(status.st_mode))
		return (struct error){INVALID_FILE_TYPE, CUDA_SUCCESS};
	made = malloc(sizeof(*made));
	if (!made)
		return (struct error){INVALID_VALUE, CUDA_SUCCESS};
	made->fd = description->of.fd;
	made->plain = plain_open(description->of.fd);
	*handle = made;
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

EXPORT void cuFileHandleDeregister(void *data)
{
	struct handle *handle = data;

	close(handle->plain);
	free(handle);
}

EXPORT struct error cuFileBufRegister(const void *base, size_t size, int flags)
{
	(void)flags;
	return (struct error){base && size ? SUCCESS : INVALID_VALUE, CUDA_SUCCESS};
}

EXPORT struct error cuFileBufDeregister(const void *base)
{
	return (struct error){base ? SUCCESS : INVALID_VALUE, CUDA_SUCCESS};
}

EXPORT ssize_t cuFileRead(void *handle, void *base, size_t size, off_t offset, off_t base_offset)
{
	return read_range(handle, base, size, offset, base_offset);
}

EXPORT ssize_t cuFileWrite(void *handle, const void *base, size_t size, off_t offset, off_t base_offset)
{
	struct handle *to = handle;

	return to ? pwrite(to->fd, (const char *)base + base_offset, size, offset) : -NOT_REGISTERED;
}

EXPORT ssize_t cuFileReadv(void *handle, const struct piece *pieces, size_t count, off_t offset,
                           unsigned flags)
{
	ssize_t sum = 0;

	if (flags)
		return -INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		ssize_t got = read_range(handle, pieces[i].base, pieces[i].size, offset + sum, 0);

		if (got < 0)
			return got;
		sum += got;
		if ((size_t)got < pieces[i].size)
			break;
	}
	return sum;
}

/* The simulated streams are never behind: it is over when it returns. */
EXPORT struct error cuFileReadAsync(void *handle, void *base, size_t *size, off_t *offset, off_t *base_offset,
                                    ssize_t *got, CUstream stream)
{
	(void)stream;
	if (!size || !offset || !base_offset || !got)
		return (struct error){INVALID_VALUE, CUDA_SUCCESS};
	*got = read_range(handle, base, *size, *offset, *base_offset);
	return (struct error){*got < 0 ? INVALID_VALUE : SUCCESS, CUDA_SUCCESS};
}

EXPORT struct error cuFileBatchIOSetUp(void **batch, unsigned room)
{
	struct batch *made = calloc(1, sizeof(*made) + room * sizeof(made->events[0]));

	if (!made)
		return (struct error){INVALID_VALUE, CUDA_SUCCESS};
	made->room = room;
	*batch = made;
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

EXPORT struct error cuFileBatchIOSubmit(void *handle, unsigned count, struct request *requests,
                                        unsigned flags)
{
	struct batch *batch = handle;

	(void)flags;
	if (!batch || count > batch->room - batch->count)
		return (struct error){INVALID_VALUE, CUDA_SUCCESS};
	for (struct request *at = requests; at < requests + count; at++) {
		ssize_t got = at->opcode == READING ? read_range(at->handle, at->batch.base, at->batch.size,
		                                                 at->batch.offset, at->batch.base_offset)
		                                    : -INVALID_VALUE;

		batch->events[batch->count++] =
			(struct event){at->cookie, got < 0 ? 0x40 : 0x10, (size_t)got};
	}
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

EXPORT struct error cuFileBatchIOGetStatus(void *handle, unsigned least, unsigned *count,
                                           struct event *events, struct timespec *timeout)
{
	struct batch *batch = handle;
	unsigned given = batch->count < *count ? batch->count : *count;

	(void)least, (void)timeout;
	memcpy(events, batch->events, given * sizeof(*events));
	memmove(batch->events, batch->events + given, (batch->count - given) * sizeof(*events));
	batch->count -= given;
	*count = given;
	return (struct error){SUCCESS, CUDA_SUCCESS};
}

EXPORT void cuFileBatchIODestroy(void *batch)
{
	free(batch);
}
