/* SPDX-License-Identifier: Apache-2.0 */
/* The one function that programs call on purpose (include/sparktrace/sparktrace.h). */
#include "event.h"
#include "export.h"
#include "guard.h"

#include <string.h>

#include "banned.h"

void sparktrace_mark(const char *name);

EXPORT void sparktrace_mark(const char *name)
{
	struct guard guard;

	if (!name || !guard_enter_nested(&guard))
		return;
	EVENT_TAIL(mark, name, strlen(name));
	EVENT(moment, .what = ST_MOMENT_MARK, .size = 0);
	guard_leave(&guard);
}
