/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to walk the calling thread's stack. Neither takes a lock of ours or allocates in our name. */
#ifndef SPARKTRACE_SHIM_UNWIND_H
#define SPARKTRACE_SHIM_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

struct walk {
	uintptr_t *frame; /* return addresses, innermost first */
	unsigned count, room;
	bool cut;    /* there are more, or the walk lost its way */
	bool frames; /* went along frame pointers: frame_check() is due */
};

/* Around what may take a lock of libunwind, or the loader's lock on its list of objects, which libunwind takes too. */
void unwind_enter(void);
void unwind_leave(void);

/* In a fork child, before its first walk. True: such a lock may be held there for ever, libunwind must not be used. */
bool libunwind_forked(void);

/* Opens libunwind. False: there is none, or it must not be used. Calls dlopen. */
bool libunwind_open(void);

/*
 * A signal handler's own stack, on which there may be no room for libunwind_walk(): that one takes some 9 KB (measured
 * with libunwind 1.6.2 on x86_64), and MINSIGSTKSZ is 2 KB.
 */
bool stack_is_small(void);

/* From the tables of the loaded objects. Only after libunwind_open(). */
void libunwind_walk(struct walk *walk);

/*
 * Along the frame pointers. A step must lead up, be aligned and stay in readable memory; what a function without
 * frame pointer leaves in the register ends the walk. Return addresses come unsigned, but otherwise as found.
 */
void frame_walk(struct walk *walk);

/* Cuts the walk before the first address that lies in no loaded object. */
void frame_check(struct walk *walk);

#endif
