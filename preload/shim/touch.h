/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The touch: the first use of the driver or of a weight file. It makes the ring, starts the recorder, and
 * puts what the early buffer holds in front.
 */
#ifndef SPARKTRACE_SHIM_TOUCH_H
#define SPARKTRACE_SHIM_TOUCH_H

#include "export.h"
#include "event.h"

enum touch_place {
	TOUCH_INSIDE, /* in a wrapper of malloc, mmap, read: the loader or an allocator may be half-way */
	TOUCH_OPEN,   /* open of a weight file, first driver call: dlopen (of libunwind) is allowed */
};

/*
 * Call before the first event of a kind that starts a recording. The guard must be up. True: a recording runs.
 * The first call takes milliseconds, each later one a load and a compare. Takes no lock but its own; raw system
 * calls only, but for stack_prepare(), which it calls once, at the first TOUCH_OPEN.
 */
bool shim_touch(enum touch_place place);

/* The driver is tests/simcuda: said in the ring, whenever it becomes known. */
void shim_simulated(void);

#endif
