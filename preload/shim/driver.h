/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver: which library it is, where its real entries are, and which wrapper stands for which address.
 *
 * What is wrapped is decided by the address that the driver itself hands out, never by a name alone: one name
 * means different arguments at different versions, and only the driver knows which.
 */
#ifndef SPARKTRACE_SHIM_DRIVER_H
#define SPARKTRACE_SHIM_DRIVER_H

#include "export.h"

/* All entries by their exported names, none renamed by a macro. */
#define __CUDA_API_VERSION_INTERNAL
#include <cudaTypedefs.h>
#undef __CUDA_API_VERSION_INTERNAL

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum driver_entry {
#define D(name, base, version, twin) DRIVER_##name,
#define N(name, type)
#include "driver.def"
#undef N
	DRIVER_OWNED, /* entries below are ours */
	DRIVER_GO_ON = DRIVER_OWNED - 1,
#undef D
#define D(name, base, version, twin)
#define N(name, type) DRIVER_##name,
#include "driver.def"
#undef N
#undef D
	DRIVER_COUNT
};

#define D(name, base, version, twin) EXPORT extern __typeof__(*(PFN_##base##_v##version##twin)0) name;
#define N(name, type)                extern __typeof__(*(type)0) name;
#include "driver.def"
#undef N
#undef D

/* The driver's own addresses; NULL: no driver yet, or it has no such entry. Each changes once, from NULL. */
extern _Atomic(void *) driver_address[DRIVER_COUNT];

/*
 * The definition of `name` that `caller`, an address in the calling object, would have got without us: in the
 * global scope behind us, else among the caller's own objects. NULL, and dlerror(): none.
 */
void *driver_beyond(const char *name, void *caller);

/*
 * The slow way to a real entry, for an exported wrapper that is called before the driver was seen: the loaded
 * libcuda.so.1; else driver_beyond() (trampolines that open the driver themselves are exported by whole
 * families of libraries); else one that answers CUDA_ERROR_NOT_INITIALIZED. Never NULL.
 */
void *driver_find(enum driver_entry entry, void *caller);

static inline void *driver_real(enum driver_entry entry, void *caller)
{
	void *real = atomic_load_explicit(&driver_address[entry], memory_order_acquire);

	return likely(real != NULL) ? real : driver_find(entry, caller);
}

/* The real entry, of its type. Directly in the wrapper only: the return address tells the caller. */
#define DRIVER(name) ((__typeof__(&name))driver_real(DRIVER_##name, __builtin_return_address(0)))

/* An entry that is called for our own sake and may be missing: its address, or NULL. */
#define OPTIONAL(name) \
	((__typeof__(&name))atomic_load_explicit(&driver_address[DRIVER_##name], memory_order_acquire))

/* Is `name` the export of an owned entry? NULL is not. */
bool driver_owns(const char *name);

/* Is it one of our own exports? */
bool driver_is_wrapper(const void *address);

/*
 * What to hand out instead of `address`, which the real dlsym gave for an owned name: the wrapper when it is
 * an entry of the driver, `address` itself otherwise. Makes the driver known when it was not yet.
 * May leave dlerror() changed only to "no error".
 */
void *driver_wrapped(void *address);

/*
 * The same for an address that the real resolver gave for (`symbol`, `flags`). An address that is not an
 * export is recognised by asking the resolver what it answers for each version that we own.
 */
void *driver_resolved(void *address, const char *symbol, cuuint64_t flags);

/* At the end of the recording: says so when there is a driver of which nothing was seen. */
void driver_finish(void);

#endif
