/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks: taken, recognised, written to the ring once each.
 *
 * x86_64 uses libunwind's unw_backtrace, opened when the program first touches the pool (80-180 ns a stack);
 * aarch64 walks frame pointers, which its compilers keep. Every frame of this library is left out.
 */
#ifndef SPARKTRACE_SHIM_STACK_H
#define SPARKTRACE_SHIM_STACK_H

#include <stdint.h>

/* Frames of a recorded stack at most; a longer one is marked as cut. */
#define STACK_FRAMES 64

/*
 * Call once when recording starts, from the open of a weight file or the first driver call: it calls dlopen,
 * and therefore never from a malloc or mmap wrapper. The guard must be up. Setting SPARKTRACE_UNWIND.
 */
void stack_prepare(void);

/*
 * The stack of the calling thread, as an identifier for the fields of type STACK; writes the `stack` record
 * when it is new. The guard must be up. Takes no lock, allocates nothing. 0: recording does not run,
 * or there was no room.
 */
uint32_t stack_id(void);

/* A fork child starts a trace of its own: forget what the parent's trace defined. */
void stack_reset(void);

/* The walk alone, as the settings say, without frames of this library; walk->frame moves past those. */
struct walk;
void stack_take(struct walk *walk);

/* Addresses from start to end are ours and left out; stack_prepare() sets the library's own. */
void stack_own(const void *start, const void *end);

#endif
