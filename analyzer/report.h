/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: sections in the order in which people ask. A new section is a row of the table in report.c
 * and a function in a file of its own.
 */
#ifndef SPARKTRACE_REPORT_H
#define SPARKTRACE_REPORT_H

#include "emit.h"
#include "ladder.h"
#include "model.h"
#include "reader.h"

struct report {
	const char *path; /* of the trace */
	const struct reader_summary *summary;
	const struct options *options;
	const struct model *model;
	struct budget budget;
	struct judgement judgement;
	struct ladder ladder;
};

typedef void report_section(struct emitter *e, const struct report *report);

report_section report_head, report_fit, report_peak, report_pool, report_failures, report_next,
	report_weights, report_trace;

/* From the program's start; ST_UNKNOWN stays. */
static inline uint64_t report_since(const struct report *report, uint64_t time)
{
	return time == ST_UNKNOWN ? ST_UNKNOWN : bytes_sub(time, report->model->begin);
}

static inline struct emit_field report_range(const char *key, struct range range)
{
	return emit_interval(key, !range.lo && range_is_open(range) ? UINT64_MAX : range.lo, range.hi);
}

static inline struct emit_field report_change(const char *key, struct change change)
{
	return change_is_known(change) ? emit_change(key, change.lo, change.hi)
	                               : emit_change(key, INT64_MIN, INT64_MAX);
}

/* As a share of `whole`, NaN when there is none. */
double report_share(uint64_t part, uint64_t whole);

/* Word for a phase: "start", "load", "settle", "steps", "end"; NULL beyond. */
const char *report_phase(enum phase phase);

/* Names of a file and a tensor, NULL where there is none. */
const char *report_file(const struct report *report, uint32_t file);
const char *report_tensor(const struct report *report, uint32_t tensor);

/* The file that made most of the trouble at the load's peak: most anonymous bytes, then most staged. */
const struct weight_file *report_culprit(const struct report *report);

/* A mapping in words: "private writable mapping", ... */
const char *report_mapping(const struct file_mapping *mapping);

/*
 * The call stack as `key`: an array of frames for JSON; a line `lead` + the innermost frames for text.
 * Nothing in text for an unknown stack.
 */
void report_stack(struct emitter *e, const struct report *report, const char *key, const char *lead,
                  uint32_t stack);

#endif
