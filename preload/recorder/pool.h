/* SPDX-License-Identifier: Apache-2.0 */
/* Whether processor and GPU share one pool of memory, and by what that is known. */
#ifndef SPARKTRACE_RECORDER_POOL_H
#define SPARKTRACE_RECORDER_POOL_H

#include <sparktrace/format.h>
#include <stddef.h>

/* What names of machine and GPU (NULL or "": not known) make of it. */
enum st_pool_class pool_class(const char *machine, const char *gpu);

/*
 * Asks NVML for the name of the first GPU, in a child of ours: a wedged driver hangs whoever asks it.
 * `library_path`: folders to look in before the system's. Returns the reading end of a pipe on which the
 * name comes, or nothing; or negative errno.
 */
int pool_ask_gpu(const char *library_path);

#endif
