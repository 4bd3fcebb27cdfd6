/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_SHIM_X86_64_SYSCALL_H
#define SPARKTRACE_SHIM_X86_64_SYSCALL_H

static inline long sys_call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

/*
 * clone(flags) whose child calls run(arg) on its own stack and ends with the value returned. Only for the
 * parent does this return: the child's pid, or a negative errno.
 */
static inline long sys_clone_run(unsigned long flags, void *stack_top, int (*run)(void *), void *arg)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	register int (*r12)(void *) __asm__("r12") = run;
	register void *r13 __asm__("r13") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
	                 "test %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "xor %%ebp, %%ebp\n\t"
	                 "mov %%r13, %%rdi\n\t"
	                 "call *%%r12\n\t"
	                 "mov %%eax, %%edi\n\t"
	                 "mov $60, %%eax\n\t" /* exit */
	                 "syscall\n\t"
	                 "hlt\n\t"
	                 "1:"
	                 : "=a"(ret)
	                 : "0"(56L), "D"(flags), "S"(stack_top), "d"(0L), "r"(r10), "r"(r8), "r"(r12),
	                   "r"(r13)
	                 : "rcx", "r11", "memory");
	return ret;
}

#endif
