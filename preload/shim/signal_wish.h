/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The action that the program wishes for SIGSEGV. Read by the handler at any instant, changed by any thread and in
 * handlers: no lock, a change is one exchange of a number, which a fork cannot cut in half.
 */
#ifndef SPARKTRACE_SHIM_SIGNAL_WISH_H
#define SPARKTRACE_SHIM_SIGNAL_WISH_H

#include <signal.h>
#include <stdint.h>

/* The wish. SIG_DFL until one is set. */
void wish_read(struct sigaction *ret_wish);

/* The same for a delivery: with SA_RESETHAND it becomes SIG_DFL. */
void wish_take(struct sigaction *ret_wish);

/* Sets another one. ret_old: the one that it replaces; NULL: not wanted. */
void wish_set(const struct sigaction *wish, struct sigaction *ret_old);

/* Changes with every wish. */
uint32_t wish_number(void);

#endif
