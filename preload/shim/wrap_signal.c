/* SPDX-License-Identifier: Apache-2.0 */
/* What a program does to SIGSEGV and to its mask, while SPARKTRACE_RELIEF may need them (signals.h). Else only passed on. */
#include "export.h"
#include "real.h"
#include "relief.h"
#include "signals.h"

#include <pthread.h>
#include <signal.h>

#include "banned.h"

#define INTERRUPTS 0x20000000 /* SA_INTERRUPT: means nothing to the kernel, but is kept */

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *ret_old)
{
	if (!relief_on(RELIEF_READONLY))
		return real()->sigaction(number, action, ret_old);
	return signals_action(number, action, ret_old);
}

int __sigaction(int number, const struct sigaction *action, struct sigaction *ret_old) __THROW;
EXPORT int __sigaction(int number, const struct sigaction *action, struct sigaction *ret_old) __THROW
	__attribute__((alias("sigaction")));

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	if (!relief_on(RELIEF_READONLY))
		return real()->sigprocmask(how, set, ret_old);
	return signals_mask(real()->sigprocmask, how, set, ret_old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	if (!relief_on(RELIEF_READONLY))
		return real()->pthread_sigmask(how, set, ret_old);
	return signals_mask(real()->pthread_sigmask, how, set, ret_old);
}

/* The mask of a thread to come. */
EXPORT int pthread_attr_setsigmask_np(pthread_attr_t *attributes, const sigset_t *set)
{
	sigset_t hidden;

	if (!relief_on(RELIEF_READONLY) || !set)
		return real()->pthread_attr_setsigmask_np(attributes, set);
	signals_hide(set, &hidden);
	if (sigismember(&hidden, SIGNALS_STANDIN) == 1)
		signals_take();
	return real()->pthread_attr_setsigmask_np(attributes, &hidden);
}

static __sighandler_t handler_set(__sighandler_t handler, int flags, bool masked)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

	if (masked)
		sigaddset(&action.sa_mask, SIGSEGV);
	return signals_action(SIGSEGV, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

static bool concerns(int number, __sighandler_t handler)
{
	return relief_on(RELIEF_READONLY) && number == SIGSEGV && handler != SIG_ERR;
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
	if (!concerns(number, handler))
		return real()->signal(number, handler);
	return handler_set(handler, SA_RESTART, true);
}

__sighandler_t bsd_signal(int number, __sighandler_t handler) __THROW;
EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler) __THROW __attribute__((alias("signal")));
EXPORT __sighandler_t ssignal(int number, __sighandler_t handler) __attribute__((alias("signal")));

EXPORT __sighandler_t sysv_signal(int number, __sighandler_t handler)
{
	if (!concerns(number, handler))
		return real()->sysv_signal(number, handler);
	return handler_set(handler, (int)(SA_RESETHAND | SA_NODEFER | INTERRUPTS), false);
}

EXPORT __sighandler_t __sysv_signal(int number, __sighandler_t handler) __attribute__((alias("sysv_signal")));

/* SIG_HOLD: block it, change nothing. Otherwise it is unblocked too. */
EXPORT __sighandler_t sigset(int number, __sighandler_t handler)
{
	struct sigaction old;
	sigset_t set, before;

	if (!concerns(number, handler))
		return real()->sigset(number, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	if (signals_mask(real()->sigprocmask, handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before))
		return SIG_ERR;
	if (handler != SIG_HOLD)
		old.sa_handler = handler_set(handler, 0, false);
	else if (signals_action(SIGSEGV, NULL, &old))
		return SIG_ERR;
	return sigismember(&before, SIGSEGV) == 1 ? SIG_HOLD : old.sa_handler;
}
