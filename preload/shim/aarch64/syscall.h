/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_SHIM_AARCH64_SYSCALL_H
#define SPARKTRACE_SHIM_AARCH64_SYSCALL_H

static inline long sys_call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory", "cc");
	return x0;
}

/*
 * clone(flags) whose child calls run(arg) on its own stack and ends with the value returned. Only for the
 * parent does this return: the child's pid, or a negative errno.
 */
static inline long sys_clone_run(unsigned long flags, void *stack_top, int (*run)(void *), void *arg)
{
	register long x8 __asm__("x8") = 220; /* clone */
	register long x0 __asm__("x0") = (long)flags;
	register void *x1 __asm__("x1") = stack_top;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register int (*x16)(void *) __asm__("x16") = run;
	register void *x19 __asm__("x19") = arg;

	__asm__ volatile("svc #0\n\t"
	                 "cbnz x0, 1f\n\t"
	                 "mov x29, #0\n\t"
	                 "mov x30, #0\n\t"
	                 "mov x0, x19\n\t"
	                 "blr x16\n\t"
	                 "mov x8, #93\n\t" /* exit */
	                 "svc #0\n\t"
	                 "brk #1\n\t"
	                 "1:"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x16), "r"(x19)
	                 : "memory", "cc");
	return x0;
}

#endif
