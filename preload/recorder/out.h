/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's own records, on their way into the trace. */
#ifndef SPARKTRACE_RECORDER_OUT_H
#define SPARKTRACE_RECORDER_OUT_H

#include "trace.h"

#define OUT_TAIL_MAX (64u << 10) /* bytes of a tail; longer ones are cut by their makers */

struct out {
	struct trace *trace;
	uint64_t records; /* taken so far */
	uint64_t dropped; /* records that found no room since the trace last took one */
};

/*
 * Appends one record: `record` is a struct of format.h with its kind set, `bytes` its size; the tail
 * is padded with NUL. A time of 0 becomes now. What finds no room is counted, and said in a
 * `coverage` record as soon as there is room again.
 */
void out_put(struct out *out, struct st_record *record, size_t bytes, const void *tail, size_t tail_bytes);

/* OUT(out, cached, .file = 1, ...): one record without tail. */
#define OUT(out_, kind_, ...) OUT_TAIL(out_, kind_, NULL, 0, __VA_ARGS__)
#define OUT_TAIL(out_, kind_, tail_, bytes_, ...)                                             \
	out_put(out_, &(struct st_ev_##kind_){.r = {.kind = ST_KIND_##kind_}, __VA_ARGS__}.r, \
	        sizeof(struct st_ev_##kind_), tail_, bytes_)

/* An `info` record name=value, and a `coverage` record. */
void out_info(struct out *out, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void out_coverage(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
