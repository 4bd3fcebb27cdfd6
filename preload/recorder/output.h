/* SPDX-License-Identifier: Apache-2.0 */
/* Where the trace goes, and which older one makes room for it. Nothing is ever overwritten. */
#ifndef SPARKTRACE_RECORDER_OUTPUT_H
#define SPARKTRACE_RECORDER_OUTPUT_H

#include "trace.h"
#include <sparktrace/ring.h>
#include <stdbool.h>

/* What a pattern may name. */
struct output_names {
	uint32_t pid;          /* %p */
	const char *host;      /* %h */
	const char *rank;      /* %r */
	const char *directory; /* relative patterns start here */
};

/*
 * SPARKTRACE_OUTPUT as an absolute path: %p %h %r %% replaced, a folder (there already, or with a
 * slash at its end) completed with run.zst. 0, or -ENAMETOOLONG.
 */
int output_expand(const char *pattern, const struct output_names *names, char *ret_path, size_t size);

/*
 * Creates the trace: at `path`; where a finished trace stands there (it has its trailer, or its
 * program is dead) that is first moved to the next free of run.1.zst, run.2.zst, ...; where a live
 * one, or something that is no trace, stands there, or unless `newest`, as run.PID.zst by the same rule.
 * ret_path: where it is. 0 or the error of the creation.
 */
int output_create(const char *path, bool newest, const struct st_file_head *head, struct trace **ret_trace,
                  char *ret_path, size_t size);

/* The same for the trace of a ring, by its settings. ret_path: after a failure where it should have been. */
int output_make(const struct st_ring *ring, bool newest, struct trace **ret_trace, char *ret_path,
                size_t size);

#endif
