/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that no interposed libc function sees. */
#include "tests/simcuda/driver/sim.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>

#define FD_HIGH 900 /* programs close low numbers wholesale; the usual limit is 1024 */

#if defined(__x86_64__)
long sim_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
	                 : "=a"(rc)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return rc;
}
#elif defined(__aarch64__)
long sim_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory");
	return x0;
}
#else
#error "the simulated driver knows x86_64 and aarch64"
#endif

int sim_fd_raise(int fd)
{
	long high = sim_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_HIGH, 0, 0, 0);

	if (high < 0)
		return fd;
	sim_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return (int)high;
}

uint64_t sim_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
