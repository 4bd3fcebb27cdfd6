/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs do with SIGSEGV, around stores into mapped weights: stacks, threads, masks, children.
 * Prints what came of it; with SPARKTRACE_RELIEF it must be the same, and so must the way in which the program ends.
 *
 *	relief_around FILE before|after CASE	when the weights are mapped: before the case begins, or in its middle
 *	relief_around				the names of all cases
 */
#include "tests/victim/relief.h"

#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>

extern char **environ;

static const char self[] = "/proc/self/exe";

static void overflow(volatile char *before)
{
	volatile char room[1024];

	memset((char *)(uintptr_t)room, 1, sizeof(room));
	if (before && before[0])
		overflow(room);
	room[1]++;
}

static int on_other_stack(void)
{
	stack_t stack;

	sigaltstack(NULL, &stack);
	return (stack.ss_flags & SS_ONSTACK) != 0;
}

static void on_overflow(int number, siginfo_t *info, void *context)
{
	(void)context;
	store(1, 0);
	printf("overflow: %d, code > 0: %d, on the other stack: %d\n", number, info->si_code > 0,
	       on_other_stack());
	fflush(stdout);
	_exit(44);
}

static void own_stack(void)
{
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};

	sigaltstack(&stack, NULL);
}

static void case_stack_overflow(void)
{
	own_stack();
	set_action(SIGSEGV, on_overflow, SA_ONSTACK);
	store_somewhere();
	fflush(stdout);
	overflow((volatile char *)"x");
}

static void case_stack_overflow_without_stack(void)
{
	set_action(SIGSEGV, on_overflow, 0);
	store_somewhere();
	fflush(stdout);
	overflow((volatile char *)"x");
}

static void on_which_stack(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	store(1, (size_t)seen++);
	printf("on the other stack: %d\n", on_other_stack());
	siglongjmp(back, 1);
}

static void case_which_stack(void)
{
	own_stack();
	for (volatile int i = 0; i < 2; i++) {
		set_action(SIGSEGV, on_which_stack, i ? SA_ONSTACK : 0);
		store_somewhere();
		if (sigsetjmp(back, 1) == 0)
			crash();
	}
}

static void *all_blocked(void *arg)
{
	say_blocked("inherited");
	store((int)(intptr_t)arg, 20);
	return arg;
}

static void case_thread_inherits(void)
{
	pthread_t thread;
	sigset_t set, old;

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, &old);
	map_weights();
	pthread_create(&thread, NULL, all_blocked, NULL);
	pthread_join(thread, NULL);
	store_somewhere();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	say_blocked("as before");
}

static void *crash_elsewhere(void *arg)
{
	store(0, 30);
	crash();
	return arg;
}

static void case_thread_crashes(void)
{
	pthread_t thread;

	set_action(SIGSEGV, tell_and_exit, 0);
	map_weights();
	pthread_create(&thread, NULL, crash_elsewhere, NULL);
	pthread_join(thread, NULL);
}

static void on_alarm(int number)
{
	(void)number;
	if (seen < 50)
		store(1, (size_t)seen);
	seen++;
}

/* The handler blocks everything, and stores all the same. */
static void case_full_mask_in_handler(void)
{
	struct itimerval timer = {{0, 1000}, {0, 1000}};
	struct sigaction action = {.sa_handler = on_alarm};

	sigfillset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	store_somewhere();
	setitimer(ITIMER_REAL, &timer, NULL);
	for (size_t i = 1; seen < 60; i++)
		store(0, i % 40);
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
	sigaction(SIGALRM, NULL, &action);
	printf("mask has SIGSEGV %d\n", sigismember(&action.sa_mask, SIGSEGV));
}

static void say_status(const char *who, pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	printf("%s: exit %d, signal %d\n", who, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void case_children(void)
{
	pid_t pid;

	set_action(SIGSEGV, tell_and_exit, 0);
	store_somewhere();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		store(0, 40);
		fflush(stdout);
		crash();
	}
	say_status("with a handler", pid);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		store(0, 41);
		crash();
	}
	say_status("without", pid);
	store(0, 42);
}

/* What a program inherits over exec is what its parent wished. */
static void case_exec(void)
{
	char *const arguments[] = {(char *)self, (char *)(uintptr_t)path, (char *)"after",
	                           (char *)"inherited", NULL};
	sigset_t set, old;
	pid_t pid;

	sigfillset(&set);
	store_somewhere();
	signal(SIGSEGV, SIG_IGN);
	pthread_sigmask(SIG_SETMASK, &set, &old);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execv("/no/such/program", arguments);
		store(0, 43);
		execv(self, arguments);
		_exit(9);
	}
	say_status("exec", pid);
	fflush(stdout);
	posix_spawn(&pid, self, NULL, NULL, arguments, environ);
	say_status("spawn", pid);
	store(0, 44);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void case_inherited(void)
{
	struct sigaction old;

	sigaction(SIGSEGV, NULL, &old);
	printf("ignored: %d\n", old.sa_handler == SIG_IGN);
	say_blocked("inherited");
	store_somewhere();
}

static const struct relief_case cases[] = {
	{"stack_overflow", case_stack_overflow},
	{"stack_overflow_without_stack", case_stack_overflow_without_stack},
	{"which_stack", case_which_stack},
	{"thread_inherits", case_thread_inherits},
	{"thread_crashes", case_thread_crashes},
	{"full_mask_in_handler", case_full_mask_in_handler},
	{"children", case_children},
	{"exec", case_exec},
	{"inherited", case_inherited},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return cases_run(cases, argc, argv);
}
