/* SPDX-License-Identifier: Apache-2.0 */
/* syscall(): what libunwind writes through it (nopipe.h), and the one call whose reads nobody here can see. */
#include "export.h"
#include "nopipe.h"
#include "real.h"
#include "uring.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "banned.h"

/* Its prototype has an ellipsis; six words are handed on unseen, as libc's own does. */
EXPORT long syscall_six(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

static __attribute__((noinline)) long syscall_uring(long number, long a, long b)
{
	long result = real()->syscall(number, a, b);

	if (result >= 0)
		uring_seen();
	return result;
}

/*
 * By a jump: libc's own leaves nothing on the stack on aarch64, so that a program may call clone with CLONE_VFORK there
 * and return twice. With a frame of ours in between, the child would write over it.
 */
long syscall_six(long number, long a, long b, long c, long d, long e, long f)
{
	if (unlikely(number == SYS_write && nopipe_owns((int)a, __builtin_return_address(0))))
		return nopipe_try((const void *)b);
	if (unlikely(number == SYS_io_uring_setup))
		return syscall_uring(number, a, b);
	return real()->syscall(number, a, b, c, d, e, f);
}
