/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <stdatomic.h>

#include "banned.h"

static _Atomic bool first_seen;

bool load_seen(enum touch_place place, const struct file *file)
{
	if (!shim_touch(place))
		return false;
	if (!atomic_load_explicit(&first_seen, memory_order_relaxed) && !atomic_exchange(&first_seen, true))
		EVENT(moment, .what = ST_MOMENT_FIRST_WEIGHT, .size = file->size);
	return true;
}

void load_ended(uint64_t size)
{
	if (event_recording())
		EVENT(moment, .what = ST_MOMENT_LAST_WEIGHT, .size = size);
}

void load_refused(uint64_t size)
{
	if (event_recording())
		EVENT(moment, .what = ST_MOMENT_FAILED, .size = size);
}

void load_reset(void)
{
	atomic_store(&first_seen, false);
}
