/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that needs descriptors, done where the program cannot see them.
 *
 * clone(CLONE_VM | CLONE_VFORK) without CLONE_FILES: the child has this process's memory (what it maps is mapped
 * here) and a copy of the descriptor table, which ends with it. No exit signal, so that no SIGCHLD comes and wait()
 * does not know it. All signals are blocked meanwhile: a handler must not run in the child. Tried: 0.1-2 ms.
 */
#ifndef SPARKTRACE_SHIM_ASIDE_H
#define SPARKTRACE_SHIM_ASIDE_H

#define ASIDE_STACK (64u << 10)

/*
 * Calls run(arg) aside and waits for it; it may use raw system calls and memory, no libc that has a state. Where the
 * clone is refused with EINVAL (qemu-user) it runs in the caller itself. 0, or a negative errno: it did not run
 * (ECHILD: children of this thread go to another pid namespace).
 */
int aside_run(int (*run)(void *), void *arg);

/* The same, started from inside such a child, which must give the stack; never waits for more than exec or exit. */
long aside_clone(void *stack_top, int (*run)(void *), void *arg);

#endif
