/* SPDX-License-Identifier: Apache-2.0 */
/* syscall(): what libunwind writes through it (nopipe.h), and the one call whose reads nobody here can see. */
#include "export.h"
#include "nopipe.h"
#include "real.h"
#include "uring.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "banned.h"

/* Six arguments are handed on unseen, as libc's own does. */
EXPORT long syscall(long number, ...)
{
	long word[6], result;
	va_list more;

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(more, long);
	va_end(more);
	if (unlikely(number == SYS_write && nopipe_owns((int)word[0], __builtin_return_address(0))))
		return nopipe_try((const void *)word[1]);
	result = real()->syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
	if (unlikely(number == SYS_io_uring_setup && result >= 0))
		uring_seen();
	return result;
}
