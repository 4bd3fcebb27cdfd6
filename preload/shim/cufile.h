/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUDirect Storage: libcufile.so.0, which brings bytes of a file to the device in one call. Which library it is, where
 * its entries are, and which file is behind which of its handles.
 *
 * As with the driver, only an address that the library itself gave is replaced: where there is no libcufile,
 * dlsym fails as it would without us.
 */
#ifndef SPARKTRACE_SHIM_CUFILE_H
#define SPARKTRACE_SHIM_CUFILE_H

#include "export.h"
#include "file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The library's interface as far as we touch it (cufile.h of CUDA 12 and 13); enums are ints there. */
#define CUFILE_SUCCESS         0
#define CUFILE_NOT_INITIALIZED 5001
#define CUFILE_FD              1 /* type of a description that holds a descriptor */
#define CUFILE_OPCODE_READ     0

typedef void *cufile_handle;

struct cufile_error {
	int error;  /* CUFILE_* */
	int driver; /* CUresult */
};

struct cufile_description {
	int type;
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
	int mode;
	struct {
		void *base;
		off_t offset, base_offset; /* in the file, from base */
		size_t size;
	} batch;
	cufile_handle handle;
	int opcode;
	void *cookie;
};

/* Declared nowhere else. */
EXPORT struct cufile_error cuFileHandleRegister(cufile_handle *handle,
                                                struct cufile_description *description);
EXPORT void cuFileHandleDeregister(cufile_handle handle);
EXPORT struct cufile_error cuFileBufRegister(const void *base, size_t size, int flags);
EXPORT struct cufile_error cuFileBufDeregister(const void *base);
EXPORT ssize_t cuFileRead(cufile_handle handle, void *base, size_t size, off_t offset, off_t base_offset);
EXPORT ssize_t cuFileReadv(cufile_handle handle, const struct cufile_piece *pieces, size_t count,
                           off_t offset, unsigned flags);
EXPORT struct cufile_error cuFileReadAsync(cufile_handle handle, void *base, size_t *size, off_t *offset,
                                           off_t *base_offset, ssize_t *got, void *stream);
EXPORT struct cufile_error cuFileBatchIOSubmit(void *batch, unsigned count, struct cufile_request *requests,
                                               unsigned flags);
EXPORT struct cufile_error cuFileBatchIOGetStatus(void *batch, unsigned least, unsigned *count, void *events,
                                                  struct timespec *timeout);

enum cufile_entry {
#define C(name) CUFILE_##name,
#include "cufile.def"
#undef C
	CUFILE_COUNT
};

/* Is `name` one of ours? NULL is not. */
bool cufile_owns(const char *name);

bool cufile_is_wrapper(const void *address);

/* What to hand out instead of `address`, which the real dlsym gave for the owned `name`; NULL stays NULL. */
void *cufile_wrapped(const char *name, void *address);

/*
 * The real entry for a wrapper that `caller` called: the one known, else what the caller would have got without us.
 * NULL: there is none.
 */
void *cufile_real(enum cufile_entry entry, void *caller);

/*
 * Is `caller`, a return address, in the library itself? It reads with calls of libc where it cannot do otherwise, in
 * threads of its own too; those bytes are told by its entries.
 */
bool cufile_inside(const void *caller);

/* The file behind a handle, from its registration until it is forgotten. The guard must be up. */
void cufile_remember(cufile_handle handle, int fd);
bool cufile_file(cufile_handle handle, struct file *ret_file);
void cufile_forget(cufile_handle handle);

#endif
