/* SPDX-License-Identifier: Apache-2.0 */
/* Clearing up behind dead programs whose recorders died, or never were. */
#ifndef SPARKTRACE_RECORDER_FINISH_H
#define SPARKTRACE_RECORDER_FINISH_H

/*
 * rest_finish(); where there never was a trace, one is made for what the ring holds. 0: nothing is left;
 * -EBUSY: the program lives, or a recorder is at work; or why the trace cannot be written: for want of
 * room the ring stays, else it goes.
 */
int finish_ring(const char *path);

/* The same for all rings that lie beside `path` and are named like it, except it. */
void finish_beside(const char *path);

#endif
