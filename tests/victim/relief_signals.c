/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs do with SIGSEGV, around stores into mapped weights: handlers, crashes, what is sent.
 * Prints what came of it; with SPARKTRACE_RELIEF it must be the same, and so must the way in which the program ends.
 *
 *	relief_signals FILE before|after CASE	when the weights are mapped: before the case begins, or in its middle
 *	relief_signals				the names of all cases
 */
#include "tests/victim/relief.h"

#include <errno.h>

/* sigset, which programs of old still call. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static volatile unsigned char *locked; /* a page that handlers open */

/* A program that manages pages of its own: the fault is its normal life. */
static void unlock_page(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	if ((volatile unsigned char *)info->si_addr < locked ||
	    (volatile unsigned char *)info->si_addr >= locked + PAGE)
		_exit(43);
	mprotect((void *)(uintptr_t)locked, PAGE, PROT_READ | PROT_WRITE);
	store(1, (size_t)seen++);
}

static void old_style(int number)
{
	printf("old style: %d\n", number);
	say_blocked("in the handler");
	siglongjmp(back, 1);
}

static void case_crash(void)
{
	store_somewhere();
	crash();
}

static void case_raise(void)
{
	store_somewhere();
	raise(SIGSEGV);
}

static void case_handler_exits(void)
{
	set_action(SIGSEGV, tell_and_exit, 0);
	store_somewhere();
	crash();
}

static void case_handler_jumps(void)
{
	set_action(SIGSEGV, tell_and_jump, 0);
	for (int i = 0; i < 3; i++) {
		if (sigsetjmp(back, 1) == 0)
			crash();
		store_somewhere();
		say_blocked("behind the jump");
	}
}

/* Without the mask: SIGSEGV stays blocked behind the jump, and the next fault kills. */
static void case_jump_without_mask(void)
{
	set_action(SIGSEGV, tell_and_jump, 0);
	if (sigsetjmp(back, 0) == 0)
		crash();
	store_somewhere();
	say_blocked("behind the jump");
	crash();
}

static void case_nodefer(void)
{
	set_action(SIGSEGV, tell_and_jump, SA_NODEFER);
	for (int i = 0; i < 2; i++) {
		if (sigsetjmp(back, 0) == 0)
			crash();
		store_somewhere();
		say_blocked("behind the jump");
	}
}

static void case_resethand(void)
{
	struct sigaction old;

	set_action(SIGSEGV, tell_and_jump, (int)(SA_RESETHAND | SA_NODEFER));
	if (sigsetjmp(back, 0) == 0)
		crash();
	store_somewhere();
	sigaction(SIGSEGV, NULL, &old);
	printf("now default: %d\n", old.sa_handler == SIG_DFL);
	crash();
}

static void case_sent(void)
{
	set_action(SIGSEGV, tell, 0);
	store_somewhere();
	raise(SIGSEGV);
	kill(getpid(), SIGSEGV);
	store_somewhere();
	printf("seen %d\n", (int)seen);
}

static void case_sent_while_blocked(void)
{
	sigset_t set;

	set_action(SIGSEGV, tell, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	store_somewhere();
	raise(SIGSEGV);
	store_somewhere();
	printf("seen %d\n", (int)seen);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("seen %d\n", (int)seen);
}

static void case_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	store_somewhere();
	raise(SIGSEGV);
	store_somewhere();
	printf("alive\n");
	crash();
}

static void case_blocked_fault(void)
{
	sigset_t set;

	set_action(SIGSEGV, tell_and_exit, 0);
	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	store_somewhere();
	say_blocked("all");
	crash();
}

static void crash_in_handler(int number)
{
	(void)number;
	store(1, 1);
	crash();
}

static void case_fault_in_handler(void)
{
	set_action(SIGSEGV, tell_and_exit, 0);
	signal(SIGUSR1, crash_in_handler);
	store_somewhere();
	raise(SIGUSR1);
}

static void case_own_pages(void)
{
	set_action(SIGSEGV, unlock_page, 0);
	store_somewhere();
	locked = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 5; i++) {
		mprotect((void *)(uintptr_t)locked, PAGE, PROT_READ);
		locked[i * 4096] = (unsigned char)i;
		store_somewhere();
	}
	printf("faults %d, last %d\n", (int)seen, locked[4 * 4096]);
}

/* A mapping of weights that the program itself made read-only: a store is its own affair. */
static void case_own_protection(void)
{
	set_action(SIGSEGV, unlock_page, 0);
	store_somewhere();
	locked = weights[0] + 8 * PAGE;
	mprotect((void *)(uintptr_t)locked, PAGE, PROT_READ);
	locked[1] = 7;
	printf("faults %d, %d\n", (int)seen, locked[1]);
	mprotect((void *)(uintptr_t)weights[0], 4 * PAGE, PROT_READ);
	printf("untouched %d\n", weights[0][PAGE] == weights[1][PAGE]);
	signal(SIGSEGV, SIG_DFL);
	fflush(stdout);
	weights[0][5] = 1;
}

static void case_old_calls(void)
{
	void (*old)(int);

	old = signal(SIGSEGV, old_style);
	printf("was default: %d\n", old == SIG_DFL);
	store_somewhere();
	if (sigsetjmp(back, 1) == 0)
		crash();
	old = sigset(SIGSEGV, SIG_HOLD);
	printf("is ours: %d\n", old == old_style);
	say_blocked("held");
	store_somewhere();
	old = sigset(SIGSEGV, SIG_DFL);
	printf("was held: %d\n", old == SIG_HOLD);
	say_blocked("released");
	sysv_signal(SIGSEGV, old_style);
	if (sigsetjmp(back, 1) == 0)
		crash();
	old = signal(SIGSEGV, SIG_DFL);
	printf("was default again: %d\n", old == SIG_DFL);
}

static void case_answers(void)
{
	struct sigaction old;

	set_action(SIGSEGV, tell, SA_ONSTACK | SA_RESTART);
	store_somewhere();
	sigaction(SIGSEGV, NULL, &old);
	printf("ours: %d, flags %x, blocks SIGUSR1 %d\n", old.sa_sigaction == tell, (unsigned)old.sa_flags,
	       sigismember(&old.sa_mask, SIGUSR1));
	old.sa_flags |= SA_NODEFER;
	sigfillset(&old.sa_mask);
	sigaction(SIGSEGV, &old, NULL);
	sigaction(SIGSEGV, NULL, &old);
	printf("flags %x, mask %d %d %d\n", (unsigned)old.sa_flags, sigismember(&old.sa_mask, SIGSEGV),
	       sigismember(&old.sa_mask, SIGKILL), sigismember(&old.sa_mask, SIGRTMAX));
	printf("wrong: %d %d\n", sigaction(SIGKILL, &old, NULL), errno);
	printf("wrong: %d %d\n", sigaction(SIGSEGV + 1000, &old, NULL), errno);
}

static const struct relief_case cases[] = {
	{"crash", case_crash},
	{"raise", case_raise},
	{"handler_exits", case_handler_exits},
	{"handler_jumps", case_handler_jumps},
	{"jump_without_mask", case_jump_without_mask},
	{"nodefer", case_nodefer},
	{"resethand", case_resethand},
	{"sent", case_sent},
	{"sent_while_blocked", case_sent_while_blocked},
	{"ignored", case_ignored},
	{"blocked_fault", case_blocked_fault},
	{"fault_in_handler", case_fault_in_handler},
	{"own_pages", case_own_pages},
	{"own_protection", case_own_protection},
	{"old_calls", case_old_calls},
	{"answers", case_answers},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return cases_run(cases, argc, argv);
}
