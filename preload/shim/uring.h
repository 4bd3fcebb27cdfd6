/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring: what a program reads through it is in no call that could be wrapped. The trace says so, once. */
#ifndef SPARKTRACE_SHIM_URING_H
#define SPARKTRACE_SHIM_URING_H

/* The program has made an io_uring. The guard must be down. Keeps errno. */
void uring_seen(void);

/*
 * Looks whether it has one: liburing makes its system calls itself. For the opens of weight files, 20 us; a ring is
 * among the first descriptors of a program. The guard must be up.
 */
void uring_look(void);

/* The same at copies to the device, a few times after each such open: the ring may have been made since. */
void uring_look_again(void);

#endif
