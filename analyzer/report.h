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

struct run_card;
struct run_total;
struct report_beside;

struct report {
	const char *path; /* of the trace */
	const struct reader_summary *summary;
	const struct options *options;
	const struct model *model;
	const struct run_total
		*run; /* of several processes: `model` is theirs together, `summary` NULL; else NULL */
	const struct report_beside *beside; /* NULL: nothing is known of it */
	struct budget budget;
	struct judgement judgement;
	struct ladder ladder;
};

typedef void report_section(struct emitter *e, const struct report *report);

report_section report_run, report_head, report_fit, report_peak, report_pool, report_failures, report_next,
	report_at, report_weights, report_weight_files, report_tensors, report_relief, report_stages,
	report_transients, report_trace;

/* The report of one trace; of several of one run and machine. The exit status. */
int report_single(const char *path, const struct options *options, const struct report_beside *beside);
int report_run_of(struct run_card *const *cards, size_t count, const struct options *options,
                  const struct report_beside *beside);

/* What every document begins with. */
void report_version(struct emitter *e, const char *path);

/* Who loaded the weights; what would make that take less (report_loader.c). */
void report_loaders(struct emitter *e, const struct report *report);
void report_repairs(struct emitter *e, const struct report *report);
void report_say_repairs(struct emitter *e, const struct report *report); /* for people */

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

/* Word for a stage of the load, NULL beyond. */
const char *report_stage(enum stage stage);

/* The layers of the pool as a table; NULL: an empty one. */
void report_layers(struct emitter *e, const struct report *report, const struct layers *layers);

/* Cached bytes of a file at some moment, or of a part of it; unknown where nobody could look. */
struct range report_cached(const struct weight_file *file, const struct residency_at *at);

/* A mapping in words: "private writable mapping", ... */
const char *report_mapping(const struct file_mapping *mapping);

/*
 * The call stack. JSON: an array of native frames as `key`, one of Python frames as `python_key`, innermost first,
 * each with the distribution (package, version) that its file belongs to. Text: a line `lead` + the innermost
 * frames, the interpreter's own left out where there are Python frames; nothing for an unknown stack.
 */
void report_stack(struct emitter *e, const struct report *report, const char *key, const char *lead,
                  uint32_t stack);

/*
 * In one line, to be freed (NULL: an unknown stack, or no memory). Of Python only where there is any: the innermost frames
 * and the program's own outermost one, which is never cut. A loader, its line, who called it.
 */
char *report_stack_brief(const struct names *names, uint32_t stack);
char *report_loader_words(const struct loader *loader);

#endif
