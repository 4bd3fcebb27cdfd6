/* SPDX-License-Identifier: Apache-2.0 */
/* syscall(): what libunwind writes through it (nopipe.h), and the one call whose reads nobody here can see. */
#include "event.h"
#include "export.h"
#include "guard.h"
#include "real.h"
#include "nopipe.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "banned.h"

static __attribute__((noinline)) void note_uring(void)
{
	static const char text[] = "io_uring: what the program reads through it is not seen";
	static atomic_flag noted = ATOMIC_FLAG_INIT;
	struct guard guard;

	if (atomic_flag_test_and_set(&noted) || !guard_enter(&guard))
		return;
	EVENT_TAIL(coverage, text, strlen(text));
	guard_leave(&guard);
}

/* Six arguments are handed on unseen, as libc's own does. */
EXPORT long syscall(long number, ...)
{
	long word[6];
	va_list more;

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(more, long);
	va_end(more);
	if (unlikely(number == SYS_write && nopipe_owns((int)word[0], __builtin_return_address(0))))
		return nopipe_try((const void *)word[1]);
	if (unlikely(number == SYS_io_uring_setup))
		note_uring();
	return real()->syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
