/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGSEGV, when SPARKTRACE_RELIEF has made pages read-only that the program believes to be writable (relief.h).
 *
 * The kernel's action is ours from the first need on: a mapping that is relieved, a handler of the program, a mask with
 * SIGSEGV in it. The program's own is kept here, is what sigaction answers, and gets every signal that is not ours, as
 * the kernel would have delivered it: flags, mask, stack, the death of a fault that nobody wants. Before that need, and
 * always when relief is off, calls only pass through.
 *
 * SIGSEGV is never really blocked, since a store must be able to fault in every thread at every time. Its place in the
 * kernel's mask is taken by SIGSTKFLT, which no kernel sends and no program uses: so threads, forks, siglongjmp,
 * swapcontext and the return from a handler carry the program's wish as they carry any mask, and a fault meets in it
 * what the program wanted. A mask is hidden on its way to the kernel and shown on its way back.
 *
 * Not followed: raw system calls, the masks of sigsuspend, ppoll, pselect and epoll_pwait, which hold for a handler's
 * time, and waits for a SIGSEGV that is sent (sigwait, signalfd).
 */
#ifndef SPARKTRACE_SHIM_SIGNALS_H
#define SPARKTRACE_SHIM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))
#define SIGNALS_STANDIN    SIGSTKFLT

/* A mask as the kernel gets it, and as the program sees it. Pure functions. */
static inline uint64_t mask_hidden(uint64_t mask)
{
	uint64_t rest = mask & ~(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGNALS_STANDIN));

	return mask & SIGNAL_BIT(SIGSEGV) ? rest | SIGNAL_BIT(SIGNALS_STANDIN) : rest;
}

static inline uint64_t mask_shown(uint64_t mask)
{
	return mask & SIGNAL_BIT(SIGNALS_STANDIN) ? mask | SIGNAL_BIT(SIGSEGV) : mask;
}

/* In the constructor: a mask that the program was started with. */
void signals_prepare(void);

/* Makes the kernel's action ours. 0 or a negative errno. */
int signals_take(void);
bool signals_taken(void);

/* sigaction() and pthread_sigmask() while relief may be needed; `call` is the function that the program called. */
int signals_action(int number, const struct sigaction *action, struct sigaction *ret_old);
int signals_mask(int (*call)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
                 sigset_t *ret_old);
void signals_hide(const sigset_t *set, sigset_t *ret_hidden);

/*
 * What a program inherits over exec: around one, mask and action are really what the program wishes. *ret_mask is for
 * signals_cover(), when the exec failed or was another process's.
 */
void signals_bare(uint64_t *ret_mask);
void signals_cover(const uint64_t *mask);

#endif
