/* SPDX-License-Identifier: Apache-2.0 */
#include "aside.h"

#include "sys.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "banned.h"

long aside_clone(void *stack_top, int (*run)(void *), void *arg)
{
	return sys_clone_run(CLONE_VM | CLONE_VFORK, stack_top, run, arg);
}

static int clone_and_wait(char *stack, int (*run)(void *), void *arg)
{
	long pid = aside_clone(stack + ASIDE_STACK, run, arg);

	if (pid == -EINVAL) {
		run(arg);
		return 0;
	}
	if (pid < 0)
		return (int)pid;
	while (sys_call4(SYS_wait4, pid, 0, __WALL, 0) == -EINTR)
		;
	return 0;
}

/*
 * After unshare(CLONE_NEWPID) a thread's next child is the init of a new namespace, which is over when that ends: no
 * fork of the program would ever succeed again (tried: ENOMEM). Where /proc does not tell, nothing is unshared.
 */
static bool next_child_elsewhere(void)
{
	char own[64], next[64];
	long length = sys_readlink("/proc/thread-self/ns/pid", own, sizeof(own));

	if (length <= 0)
		return false;
	return sys_readlink("/proc/thread-self/ns/pid_for_children", next, sizeof(next)) != length ||
	       memcmp(own, next, (size_t)length) != 0;
}

int aside_run(int (*run)(void *), void *arg)
{
	const uint64_t all = UINT64_MAX;
	char *stack;
	uint64_t old = 0;
	int r;

	if (next_child_elsewhere())
		return -ECHILD;
	stack = sys_mmap_anonymous(ASIDE_STACK);
	if (sys_failed(stack))
		return -ENOMEM;
	sys_sigmask(SIG_BLOCK, &all, &old);
	r = clone_and_wait(stack, run, arg);
	sys_sigmask(SIG_SETMASK, &old, NULL);
	sys_munmap(stack, ASIDE_STACK);
	return r;
}
