/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No descriptors for the unwinder. libunwind makes a pipe at its first walk, and later tries an address by writing a
 * byte from there into it: two descriptors that the program would see, and that libunwind would go on using when
 * the program's closerange() has given their numbers to a file of its own. So libunwind gets numbers that no file can
 * have, and what it writes there only looks whether the byte can be read. (It also reads from the pipe, to empty it;
 * that fails, it makes another pipe, and gets the same numbers.)
 */
#ifndef SPARKTRACE_SHIM_NOPIPE_H
#define SPARKTRACE_SHIM_NOPIPE_H

#include <stdbool.h>

/* Does the unwinder, called by us and at `address`, mean its pipe? */
bool nopipe_owns(int fd, void *address);

/* 1, or -1 and EFAULT: the byte cannot be read. */
long nopipe_try(const void *byte);

#endif
