/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"
#include "guard.h"
#include "real.h"
#include "sys.h"
#include "nopipe.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "banned.h"

#define END_READ  (INT_MAX - 1)
#define END_WRITE INT_MAX

/* It is the caller that decides: a signal handler of the program may have come in between. */
static bool is_unwinder(void *address)
{
	struct dl_find_object found;

	if (_dl_find_object(address, &found) != 0 || !found.dlfo_link_map->l_name)
		return false;
	return strstr(found.dlfo_link_map->l_name, "/libunwind") != NULL;
}

bool nopipe_owns(int fd, void *address)
{
	return fd == END_WRITE && guard_thread.own && is_unwinder(address);
}

/* The kernel reads a signal set before it refuses the unknown operation. */
long nopipe_try(const void *byte)
{
	uintptr_t word = (uintptr_t)byte & ~(uintptr_t)7;

	if (sys_call4(SYS_rt_sigprocmask, -1, (long)word, 0, 8) != -EFAULT)
		return 1;
	errno = EFAULT;
	return -1;
}

EXPORT int pipe2(int ends[2], int flags)
{
	if (likely(!guard_thread.own) || !is_unwinder(__builtin_return_address(0)))
		return real()->pipe2(ends, flags);
	ends[0] = END_READ;
	ends[1] = END_WRITE;
	return 0;
}
