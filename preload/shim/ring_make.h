/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's file and its mapping, made aside, so that no descriptor appears in the program. */
#ifndef SPARKTRACE_SHIM_RING_MAKE_H
#define SPARKTRACE_SHIM_RING_MAKE_H

#include <sparktrace/ring.h>

/*
 * Makes and maps a ring whose head is filled in: NAME is sparktrace-UID-PID-START in SPARKTRACE_RING_DIR, or else in
 * /dev/shm, or else beside the trace. Its room is allocated on the file system before anything is written, so that
 * a full one is an error here and never a SIGBUS later. Errors: those of open, fallocate, mmap at the last folder
 * that was tried, of clone.
 */
int ring_make(struct st_ring **ret_ring);

#endif
