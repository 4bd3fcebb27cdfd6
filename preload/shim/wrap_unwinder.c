/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No descriptors for the unwinder. libunwind makes a pipe at its first walk, and later tries an address by writing a
 * byte from there into it: two descriptors that the program would see, and that libunwind would go on using when
 * the program's closerange() has given their numbers to a file of its own. So libunwind gets numbers that no file can
 * have, and what it writes there only looks whether the byte can be read. (It also reads from the pipe, to empty it;
 * that fails, it makes another pipe, and gets the same numbers.)
 */
#include "export.h"
#include "guard.h"
#include "real.h"
#include "sys.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "banned.h"

#define END_READ  (INT_MAX - 1)
#define END_WRITE INT_MAX

/* It is the caller that decides: a signal handler of the program may have come in between. */
static bool is_unwinder(void *address)
{
	struct dl_find_object found;

	if (!guard_thread.own || _dl_find_object(address, &found) != 0 || !found.dlfo_link_map->l_name)
		return false;
	return strstr(found.dlfo_link_map->l_name, "/libunwind") != NULL;
}

EXPORT int pipe2(int ends[2], int flags)
{
	if (likely(!guard_thread.own) || !is_unwinder(__builtin_return_address(0)))
		return real()->pipe2(ends, flags);
	ends[0] = END_READ;
	ends[1] = END_WRITE;
	return 0;
}

/* The kernel reads a signal set before it refuses the unknown operation. */
static long try_byte(const void *byte)
{
	uintptr_t word = (uintptr_t)byte & ~(uintptr_t)7;

	if (sys_call4(SYS_rt_sigprocmask, -1, (long)word, 0, 8) != -EFAULT)
		return 1;
	errno = EFAULT;
	return -1;
}

/* libunwind writes by number. Six arguments are handed on unseen, as libc's own does. */
EXPORT long syscall(long number, ...)
{
	long word[6];
	va_list more;

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(more, long);
	va_end(more);
	if (unlikely(number == SYS_write && word[0] == END_WRITE) && is_unwinder(__builtin_return_address(0)))
		return try_byte((const void *)word[1]);
	return real()->syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
