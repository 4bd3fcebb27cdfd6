/* SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include "fault.h"
#include "life.h"
#include "real.h"
#include "relief.h"
#include "signal_wish.h"
#include "sys.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "banned.h"

#define PATIENCE 100000

enum state { STATE_FREE, STATE_TAKING, STATE_TAKEN };
static _Atomic uint32_t state; /* enum state */

bool signals_taken(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) != STATE_FREE;
}

/* --- masks ----------------------------------------------------------------------------------- */

/* Only the kernel's 64 signals: a program may hand over a set that is no longer than those. */
static uint64_t set_word(const sigset_t *set)
{
	uint64_t word;

	memcpy(&word, set, sizeof(word));
	return word;
}

static void set_write(sigset_t *set, uint64_t word)
{
	memcpy(set, &word, sizeof(word));
}

void signals_hide(const sigset_t *set, sigset_t *ret_hidden)
{
	memset(ret_hidden, 0, sizeof(*ret_hidden));
	set_write(ret_hidden, mask_hidden(set_word(set)));
}

static void set_show(sigset_t *set)
{
	set_write(set, mask_shown(set_word(set)));
}

void signals_prepare(void)
{
	uint64_t mask;

	sys_sigmask(SIG_BLOCK, NULL, &mask);
	if (!(mask & SIGNAL_BIT(SIGSEGV)))
		return;
	mask = mask_hidden(mask);
	sys_sigmask(SIG_SETMASK, &mask, NULL);
	signals_take();
}

/* A fault while SIGSEGV is blocked kills: from now on that is for our handler to see to. */
int signals_mask(int (*call)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
                 sigset_t *ret_old)
{
	sigset_t hidden;
	int r;

	if (set) {
		signals_hide(set, &hidden);
		if (how != SIG_UNBLOCK && sigismember(&hidden, SIGNALS_STANDIN) == 1)
			signals_take();
	}
	r = call(how, set ? &hidden : NULL, ret_old);
	if (r == 0 && ret_old)
		set_show(ret_old);
	return r;
}

/* --- delivering ------------------------------------------------------------------------------ */

static void action_default(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	real()->sigaction(SIGSEGV, &action, NULL);
}

/* To this thread, with all that its sender said. */
static void requeue(int number, const siginfo_t *info)
{
	uint32_t pid = sys_getpid(), tid = sys_gettid();

	if (sys_call4(SYS_rt_tgsigqueueinfo, pid, tid, number, (long)info) < 0)
		sys_call3(SYS_tgkill, pid, tid, number);
}

/* The fault repeats itself when the handler returns, and finds the default; what was sent is sent once more. */
static void die(const siginfo_t *info, bool sent)
{
	action_default();
	if (sent)
		requeue(SIGSEGV, info);
}

/* The program's handler, with the mask that it would have had, and the interrupted one as it knows it. */
static void call_handler(const struct sigaction *wish, siginfo_t *info, ucontext_t *context)
{
	uint64_t mask = set_word(&context->uc_sigmask) | mask_hidden(set_word(&wish->sa_mask));

	if (!(wish->sa_flags & SA_NODEFER))
		mask |= SIGNAL_BIT(SIGNALS_STANDIN);
	set_show(&context->uc_sigmask);
	sys_sigmask(SIG_SETMASK, &mask, NULL);
	wish->sa_sigaction(SIGSEGV, info, context);
	set_write(&context->uc_sigmask, mask_hidden(set_word(&context->uc_sigmask)));
}

static void deliver(siginfo_t *info, ucontext_t *context, bool sent)
{
	struct sigaction wish;

	info->si_signo = SIGSEGV;
	wish_take(&wish);
	if (wish.sa_handler == SIG_IGN && sent)
		return;
	if (wish.sa_handler == SIG_IGN || wish.sa_handler == SIG_DFL)
		die(info, sent);
	else
		call_handler(&wish, info, context);
}

static void on_signal(int number, siginfo_t *info, void *context);

/* Sent while the program has it blocked: it waits as the stand-in, until that is unblocked in whatever way. */
static __attribute__((noinline)) bool defer(const siginfo_t *info)
{
	struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK}, was;

	if (real()->sigaction(SIGNALS_STANDIN, NULL, &was) ||
	    (was.sa_handler != SIG_DFL && was.sa_sigaction != on_signal))
		return false;
	set_write(&ours.sa_mask, UINT64_MAX);
	real()->sigaction(SIGNALS_STANDIN, &ours, NULL);
	requeue(SIGNALS_STANDIN, info);
	return true;
}

/* A positive code is the kernel's own: a fault. Those that were sent never look at addresses. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	bool sent = number != SIGSEGV || info->si_code <= 0;
	bool blocked = sigismember(&at->uc_sigmask, SIGNALS_STANDIN) == 1;
	bool done = !sent && relief_fault((uintptr_t)info->si_addr,
	                                  info->si_code == SEGV_ACCERR && fault_is_write(at));

	for (int i = 0; i < PATIENCE && atomic_load(&state) == STATE_TAKING; i++)
		sys_yield();
	if (done)
		return;
	if (!blocked)
		deliver(info, at, sent);
	else if (!sent)
		die(info, false);
	else if (!defer(info))
		deliver(info, at, true);
}

/* --- the program's action -------------------------------------------------------------------- */

/*
 * What the kernel shall do. All signals wait while our handler looks; the program's is then given its own mask. Its
 * stack is the one that the program wants for its handler; where it has none, whatever the thread has.
 */
static void action_ours(struct sigaction *ret_action)
{
	struct sigaction wish;

	wish_read(&wish);
	*ret_action = (struct sigaction){.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	set_write(&ret_action->sa_mask, UINT64_MAX); /* sigfillset leaves out those that cancel threads */
	if (wish.sa_handler == SIG_DFL || wish.sa_handler == SIG_IGN)
		ret_action->sa_flags |= SA_ONSTACK | SA_RESTART;
	else
		ret_action->sa_flags |= wish.sa_flags & (SA_ONSTACK | SA_RESTART);
}

/* Several threads may change it at once: the last one to look has seen the last change. */
static int action_install(void)
{
	struct sigaction ours;
	uint32_t seen;
	int r;

	do {
		seen = wish_number();
		action_ours(&ours);
		r = real()->sigaction(SIGSEGV, &ours, NULL);
	} while (r == 0 && seen != wish_number());
	return r ? -errno : 0;
}

/* What the kernel had is taken out as ours goes in, and becomes the program's wish. */
static int take(void)
{
	struct sigaction ours, was;

	action_ours(&ours);
	if (real()->sigaction(SIGSEGV, &ours, &was))
		return -errno;
	if (was.sa_sigaction == on_signal)
		return 0;
	set_show(&was.sa_mask);
	wish_set(&was, NULL);
	return action_install();
}

int signals_take(void)
{
	const uint64_t all = UINT64_MAX;
	uint32_t none = STATE_FREE;
	int error = errno, r = 0;
	uint64_t mask;

	if (atomic_load(&state) == STATE_TAKEN)
		return 0;
	sys_sigmask(SIG_SETMASK, &all, &mask);
	if (atomic_compare_exchange_strong(&state, &none, STATE_TAKING)) {
		r = take();
		atomic_store(&state, r ? STATE_FREE : STATE_TAKEN);
	}
	sys_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return r;
}

/* A vfork child is another process in this memory: its actions are its own, and end with its exec. */
static bool other_process(void)
{
	struct life *life = life_get();

	return life && life->pid != sys_getpid();
}

/* As the kernel keeps it, and libc hands it to the kernel: who asks for it must find it so. */
#if defined(__x86_64__)
#define ADDED_FLAGS 0x04000000 /* SA_RESTORER */
#else
#define ADDED_FLAGS 0
#endif

static int wish_change(const struct sigaction *action, struct sigaction *ret_old)
{
	struct sigaction wish;

	if (!action) {
		if (ret_old)
			wish_read(ret_old);
		return 0;
	}
	wish = *action;
	wish.sa_flags |= ADDED_FLAGS;
	set_write(&wish.sa_mask, set_word(&wish.sa_mask) & ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP)));
	wish_set(&wish, ret_old);
	return action_install() ? -1 : 0;
}

int signals_action(int number, const struct sigaction *action, struct sigaction *ret_old)
{
	struct sigaction hidden;
	int r;

	/* While a handler runs, the kernel blocks its signal: it must be the stand-in that it blocks. */
	if (number == SIGSEGV && action && !other_process())
		signals_take();
	if (number == SIGSEGV && signals_taken() && !other_process())
		return wish_change(action, ret_old);
	if (action) {
		hidden = *action;
		signals_hide(&action->sa_mask, &hidden.sa_mask);
	}
	r = real()->sigaction(number, action ? &hidden : NULL, ret_old);
	if (r == 0 && ret_old)
		set_show(&ret_old->sa_mask);
	if (r == 0 && action && number == SIGSEGV && signals_taken() && !other_process())
		return take() ? -1 : 0; /* it was taken meanwhile, and now is not any more */
	return r;
}

/* --- around exec ----------------------------------------------------------------------------- */

void signals_bare(uint64_t *ret_mask)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction wish;
	uint64_t mask;

	sys_sigmask(SIG_BLOCK, NULL, ret_mask);
	mask = mask_shown(*ret_mask);
	wish_read(&wish);
	if (signals_taken() && wish.sa_handler == SIG_IGN)
		real()->sigaction(SIGSEGV, &ignore, NULL);
	if (mask != *ret_mask)
		sys_sigmask(SIG_SETMASK, &mask, NULL);
}

void signals_cover(const uint64_t *mask)
{
	int error = errno;

	sys_sigmask(SIG_SETMASK, mask, NULL);
	if (signals_taken())
		action_install();
	errno = error;
}
