/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dl_iterate_phdr: nothing is recorded of it, but its callback runs under a lock that libunwind waits for while it
 * holds one of its own. A note in there must not walk the stack with libunwind, or two threads wait for each other:
 * the level CALL is up, and wrappers pass through.
 */
#include "export.h"
#include "guard.h"
#include "real.h"
#include "unwind.h"

#include "banned.h"

EXPORT int dl_iterate_phdr(int (*see)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct guard guard;
	int r;

	unwind_enter();
	call_enter(&guard);
	r = real()->dl_iterate_phdr(see, data);
	call_leave(&guard);
	unwind_leave();
	return r;
}
