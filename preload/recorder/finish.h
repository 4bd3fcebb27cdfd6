/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of dead programs whose recorder died too: what their rings still hold is written, then they go. */
#ifndef SPARKTRACE_RECORDER_FINISH_H
#define SPARKTRACE_RECORDER_FINISH_H

/*
 * Finishes the trace of the ring at `path`, if its program is dead and no other recorder is at work
 * on it: rest of the ring, end unknown, trailer; then removes the ring. 0: done, nothing is left to
 * do; -EBUSY: not dead, or in work; or why the trace could not be written (the ring stays).
 */
int finish_ring(const char *path);

/* The same for all rings that lie beside `path` and are named like it, except it. */
void finish_beside(const char *path);

#endif
