/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real functions: the definitions that the program would have got without us.
 *
 * They are found once, at the first call of any wrapper (which may come before our constructor), by reading
 * the symbol tables of the loaded objects behind ours: no dlsym, no lock, no allocation, so that it may happen
 * inside malloc, inside the loader and in a signal handler. A row of real.def is one pointer here.
 */
#ifndef SPARKTRACE_SHIM_REAL_H
#define SPARKTRACE_SHIM_REAL_H

#include "export.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct real {
#define REAL(ret, name, ...) ret (*name)(__VA_ARGS__);
#include "real.def"
#undef REAL
};

extern struct real real_functions;
extern _Atomic bool real_ready;

/* Fills real_functions. Idempotent, and safe in several threads at once. */
void real_init(void);

static inline const struct real *real(void)
{
	if (unlikely(!atomic_load_explicit(&real_ready, memory_order_acquire)))
		real_init();
	return &real_functions;
}

/* The first definition of `name` in the objects that come after ours, or NULL. */
void *real_next(const char *name);

/* The loaded object whose file name (behind the last '/') is `soname`, or NULL; "" is never found. */
struct link_map *real_object(const char *soname);

/* This library's own entry in the list. */
struct link_map *real_own(void);

#endif
