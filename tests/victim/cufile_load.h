/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load by GPUDirect Storage, for load_cufile.c (linked with libcufile) and load_cufile_dlsym.c (which opens it, as
 * fastsafetensors does). One block of device memory for the whole file, read by one of
 *
 *	read	cuFileRead, 4 MiB at a time and past the file's end, as a loader that rounds to pages does
 *	readv	cuFileReadv into halves of the block
 *	async	cuFileReadAsync on the NULL stream
 *	batch	cuFileBatchIOSubmit, and its status
 */
#ifndef CUFILE_LOAD_H
#define CUFILE_LOAD_H

#include "victim.h"

#include <errno.h>
#include <time.h>

struct cufile_error {
	int status, driver;
};

struct cufile_description {
	int type; /* 1: a descriptor */
	union {
		int fd;
		void *handle;
	} of;
	const void *operations;
};

struct cufile_piece {
	void *base;
	size_t size;
};

struct cufile_request {
	int mode; /* 1 */
	struct {
		void *base;
		off_t offset, base_offset;
		size_t size;
	} batch;
	void *handle;
	int opcode; /* 0: read */
	void *cookie;
};

struct cufile_event {
	void *cookie;
	int status;
	size_t size;
};

struct cufile_error cuFileDriverOpen(void);
struct cufile_error cuFileHandleRegister(void **handle, struct cufile_description *description);
void cuFileHandleDeregister(void *handle);
struct cufile_error cuFileBufRegister(const void *base, size_t size, int flags);
struct cufile_error cuFileBufDeregister(const void *base);
ssize_t cuFileRead(void *handle, void *base, size_t size, off_t offset, off_t base_offset);
ssize_t cuFileReadv(void *handle, const struct cufile_piece *pieces, size_t count, off_t offset,
                    unsigned flags);
struct cufile_error cuFileReadAsync(void *handle, void *base, size_t *size, off_t *offset, off_t *base_offset,
                                    ssize_t *got, void *stream);
struct cufile_error cuFileBatchIOSetUp(void **batch, unsigned room);
struct cufile_error cuFileBatchIOSubmit(void *batch, unsigned count, struct cufile_request *requests,
                                        unsigned flags);
struct cufile_error cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count,
                                           struct cufile_event *events, struct timespec *timeout);
void cuFileBatchIODestroy(void *batch);

/* clang-format off */
#define CUFILE_ENTRIES(E) \
	E(cuFileDriverOpen) \
	E(cuFileHandleRegister) \
	E(cuFileHandleDeregister) \
	E(cuFileBufRegister) \
	E(cuFileBufDeregister) \
	E(cuFileRead) \
	E(cuFileReadv) \
	E(cuFileReadAsync) \
	E(cuFileBatchIOSetUp) \
	E(cuFileBatchIOSubmit) \
	E(cuFileBatchIOGetStatus) \
	E(cuFileBatchIODestroy)
/* clang-format on */

struct cufile {
#define E(name) __typeof__(&name) name;
	CUFILE_ENTRIES(E)
#undef E
};

#define CUFILE_PIECE (4 * MIB)
#define CUFILE_PAGE  ((size_t)4096)

struct load {
	const struct cufile *api;
	void *handle;
	char *device;
	size_t size; /* of the file */
};

static inline void load_read(const struct load *load)
{
	size_t end = (load->size + CUFILE_PAGE - 1) / CUFILE_PAGE * CUFILE_PAGE;

	for (size_t at = 0; at < end; at += CUFILE_PIECE) {
		size_t ask = end - at < CUFILE_PIECE ? end - at : CUFILE_PIECE;
		size_t come = load->size - at < ask ? load->size - at : ask;

		MUST(load->api->cuFileRead(load->handle, load->device, ask, (off_t)at, (off_t)at) !=
		     (ssize_t)come);
	}
}

static inline void load_readv(const struct load *load)
{
	size_t half = load->size / 2;
	struct cufile_piece pieces[] = {{load->device, half}, {load->device + half, load->size - half}};

	MUST(load->api->cuFileReadv(load->handle, pieces, 2, 0, 0) != (ssize_t)load->size);
}

static inline void load_async(const struct load *load)
{
	size_t size = load->size;
	off_t offset = 0, base_offset = 0;
	ssize_t got = 0;

	MUST(load->api->cuFileReadAsync(load->handle, load->device, &size, &offset, &base_offset, &got, NULL)
	             .status);
	MUST(cuStreamSynchronize(NULL));
	MUST(got != (ssize_t)load->size);
}

static inline void load_batch(const struct load *load)
{
	size_t half = load->size / 2;
	struct cufile_request requests[] = {
		{.mode = 1, .batch = {load->device, 0, 0, half}, .handle = load->handle},
		{.mode = 1,
	         .batch = {load->device, (off_t)half, (off_t)half, load->size - half},
	         .handle = load->handle},
	};
	struct cufile_event events[2];
	unsigned count = 2;
	void *batch;

	MUST(load->api->cuFileBatchIOSetUp(&batch, 2).status);
	MUST(load->api->cuFileBatchIOSubmit(batch, 2, requests, 0).status);
	MUST(load->api->cuFileBatchIOGetStatus(batch, 2, &count, events, NULL).status);
	MUST(count != 2 || events[0].size + events[1].size != load->size);
	load->api->cuFileBatchIODestroy(batch);
}

/* Adler-32 of what is on the device. */
static inline unsigned load_sum(const struct load *load)
{
	unsigned char *bytes = malloc(load->size);
	unsigned low = 1, high = 0;

	MUST(cuMemcpyDtoH(bytes, (CUdeviceptr)load->device, load->size));
	for (size_t i = 0; i < load->size; i++) {
		low = (low + bytes[i]) % 65521;
		high = (high + low) % 65521;
	}
	free(bytes);
	return high << 16 | low;
}

static inline unsigned long long load_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static const struct load_way {
	const char *name;
	void (*run)(const struct load *load);
} load_ways[] = {{"read", load_read}, {"readv", load_readv}, {"async", load_async}, {"batch", load_batch}};

static inline void load_run(const struct load *load, const char *way)
{
	for (size_t i = 0; i < sizeof(load_ways) / sizeof(load_ways[0]); i++) {
		if (strcmp(load_ways[i].name, way) == 0) {
			load_ways[i].run(load);
			return;
		}
	}
	exit(2);
}

/* WAY FILE: prints the times of the load, and a sum of the bytes that came. */
static inline int cufile_main(int argc, char **argv, const struct cufile *api)
{
	struct cufile_description description = {.type = 1};
	struct load load = {.api = api};
	struct weights weights;
	CUdeviceptr block;

	if (argc < 3)
		return 2;
	device_open();
	printf("begin %llu\n", load_clock());
	weights_open(argv[2], &weights);
	load.size = weights.size;
	description.of.fd = weights.fd;
	MUST(cuMemAlloc(&block, (load.size + CUFILE_PAGE - 1) / CUFILE_PAGE * CUFILE_PAGE));
	load.device = (char *)block;
	MUST(api->cuFileDriverOpen().status);
	MUST(api->cuFileHandleRegister(&load.handle, &description).status);
	MUST(api->cuFileBufRegister(load.device, load.size, 0).status);
	load_run(&load, argv[1]);
	printf("loaded %llu count %zu bytes %zu sha256 -\n", load_clock(), weights.count, load.size);
	printf("sum %u\n", load_sum(&load));
	MUST(api->cuFileBufDeregister(load.device).status);
	api->cuFileHandleDeregister(load.handle);
	MUST(cuMemFree(block));
	printf("dropped %llu\n", load_clock());
	return 0;
}

#endif
