/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead program, whose recorder died too, has left in its ring: into its trace. */
#ifndef SPARKTRACE_RECORDER_REST_H
#define SPARKTRACE_RECORDER_REST_H

#include "out.h"
#include <sparktrace/ring.h>

/*
 * Writes all that the ring of a dead program still holds, why it is written only now, an exit of which
 * nothing is known, and the trailer. 0 or the error of the trace.
 */
int rest_write(struct st_ring *ring, struct out *out, const char *why);

/*
 * Finishes the trace that the ring at `path` names, if its program is dead and no recorder is at work on
 * it, and removes the ring. 0: nothing is left to do; -EBUSY: not dead, or in work; -ENODATA: it names none;
 * or why the trace cannot be written (the ring stays).
 */
int rest_finish(const char *path);

/* The trace with this head, whose ring may still be there, was moved to `path`: that is where its rest belongs. */
void rest_moved(const struct st_file_head *head, const char *path);

#endif
