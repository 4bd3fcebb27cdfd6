/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program comes from: what tells a trace which others are of the same run. Two facts:
 *
 *	run=PID.TICKS NAME	the topmost of its ancestors, itself included, that have our library loaded, each the
 *				parent of the next: where LD_PRELOAD was given. TICKS is its start (field 22 of
 *				/proc/PID/stat), NAME its command name
 *	forked_from=PID		it is a copy of its parent that never called exec: most of its memory is the parent's
 *
 * Both as they are when the recording begins; neither is written where /proc does not tell it.
 */
#ifndef SPARKTRACE_RECORDER_ANCESTRY_H
#define SPARKTRACE_RECORDER_ANCESTRY_H

#include "out.h"
#include <sparktrace/ring.h>

void ancestry_write(const struct st_ring *ring, struct out *out);

#endif
