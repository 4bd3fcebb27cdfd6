/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nesting guard of a thread, and the keeper of errno.
 *
 * Two levels. OWN is up while our own code runs: every wrapper then only passes through, so that the tool
 * never records itself. CALL is up while a wrapped call that may come back into us runs (a driver entry,
 * fread, somebody's malloc): wrappers of libc then pass through too, and driver wrappers mark their
 * record as nested. A libc call that cannot come back (mmap, read, open) is made with neither, so that
 * a signal handler, a cancellation or a longjmp out of it finds nothing raised.
 *
 *	void *p = real()->mmap(...);		the call
 *	struct guard guard;
 *	if (guard_enter(&guard)) {		errno is kept from here
 *		note_map(...);
 *		guard_leave(&guard);		to here
 *	}
 *	return p;
 *
 * A level is stored as the address of its struct guard, which lies in the wrapper's frame. When that frame was
 * left by longjmp or cancellation, the level would stay up for ever: it counts as fallen as soon as a wrapper's
 * frame begins above it, where the other frame can no longer be. (An exec in a vfork child, which runs in
 * its parent's memory, raises nothing.) A level is asked for before it is raised, or in a function called since.
 *
 * The thread-local storage is initial-exec (dynamic TLS allocates, and would call back into malloc).
 */
#ifndef SPARKTRACE_SHIM_GUARD_H
#define SPARKTRACE_SHIM_GUARD_H

#include "export.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct guard_thread {
	uintptr_t own, call;  /* address of the struct guard that raised the level, 0: down */
	uint32_t tid, tid_of; /* kernel thread id, and the process for which it was asked (event.c) */
	bool cufile;          /* a thread of libcufile's own: as inside a call for good (wrap_read.c) */
};

extern _Thread_local struct guard_thread guard_thread __attribute__((tls_model("initial-exec")));

struct guard {
	uintptr_t before; /* the level's value when it was raised, put back when it is lowered */
	int error;        /* errno, for the program */
};

/* Farther apart than this two addresses are taken to be of different stacks. */
#define GUARD_STACK (UINT64_C(64) << 20)

/* Always inlined: the frame is that of the wrapper, or of a function that it calls. */
#define GUARD_INLINE static inline __attribute__((always_inline))

GUARD_INLINE bool guard_up(uintptr_t level)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return unlikely(level != 0) && !(here > level && here - level < GUARD_STACK);
}

GUARD_INLINE bool guard_raise(uintptr_t *level, struct guard *guard)
{
	guard->error = errno;
	guard->before = guard_up(*level) ? *level : 0;
	*level = (uintptr_t)guard;
	return true;
}

/* Raises OWN, for a note of a libc call. False: one of the levels is up; pass through, do not leave. */
GUARD_INLINE bool guard_enter(struct guard *guard)
{
	if (guard_up(guard_thread.own) || guard_up(guard_thread.call))
		return false;
	return guard_raise(&guard_thread.own, guard);
}

/* The same for a note of a driver call, which is recorded inside another call as well. */
GUARD_INLINE bool guard_enter_nested(struct guard *guard)
{
	if (guard_up(guard_thread.own))
		return false;
	return guard_raise(&guard_thread.own, guard);
}

/* Lowers OWN and puts errno back to what it was at guard_enter(). */
GUARD_INLINE void guard_leave(struct guard *guard)
{
	guard_thread.own = guard->before;
	errno = guard->error;
}

/* Inside a wrapped call that may come back into us? */
GUARD_INLINE bool call_nested(void)
{
	return guard_up(guard_thread.call);
}

/* Raises CALL around such a call. errno is left alone on both sides: it is the call's. */
GUARD_INLINE void call_enter(struct guard *guard)
{
	guard->before = call_nested() ? guard_thread.call : 0;
	guard_thread.call = (uintptr_t)guard;
}

GUARD_INLINE void call_leave(struct guard *guard)
{
	guard_thread.call = guard->before;
}

#endif
