/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `check` found: one result, which all outputs say in their own form (check_text.c, check_junit.c, check_github.c,
 * check_benchmark.c). Nothing but check.c decides.
 */
#ifndef SPARKTRACE_CHECK_H
#define SPARKTRACE_CHECK_H

#include <analyzer/measure.h>
#include <stdio.h>

/* From the best to the worst. */
enum check_state {
	CHECK_SHOWN, /* nothing to compare with, or too few runs of a sampled metric */
	CHECK_OK,
	CHECK_IMPROVED, /* by more than the tolerance: update the baseline */
	CHECK_WARNED,
	CHECK_CANNOT_TELL, /* not measured, not comparable, or the limit lies inside the interval */
	CHECK_OVER,
	CHECK_STATES
};

extern const char *const
	check_state_names[CHECK_STATES]; /* "shown", "ok", "improved", "warning", "cannot tell", "over" */

/* What a value is compared with. */
enum check_against {
	AGAINST_NOTHING,
	AGAINST_BASELINE,
	AGAINST_LIMIT,  /* --metric name=limit */
	AGAINST_BUDGET, /* --budget: of load_modelled_peak */
	AGAINST_FIT,    /* --fit: of the run's needed peak, by the report's verdict */
};

#define CHECK_GROWN 5

struct check_line {
	enum metric metric; /* METRIC_COUNT: AGAINST_FIT */
	enum check_against against;
	enum check_state state;
	struct range value, before; /* before: RANGE_UNKNOWN where there is no baseline */
	uint64_t limit;             /* the most that passes, in the metric's unit; ST_UNKNOWN: none */
	const char *given;          /* limit or budget as it was typed, NULL */
	struct range spread; /* smallest and largest value among several runs (hull of their intervals) */
	char *sentence; /* "+1.00 GiB: load_anonymous_copy_peak is 1.00 GiB, the baseline 0, the limit 64 MiB" */
	struct growth grown
		[CHECK_GROWN]; /* of an `over` line: what grew, most first, without what says the same twice;
		                 without a baseline what there is, `before` RANGE_UNKNOWN */
	size_t grown_count;
	char *details[CHECK_GROWN]; /* those of grown that were made for it, NULL */
};

struct check_result {
	bool update;          /* the lines are those of a new baseline, `before` those of the old one */
	const char *baseline; /* path, NULL */
	const struct measures *measures;
	int status; /* enum command_status */
	char *verdict; /* one line: the worst line's sentence, or why nothing can be compared, or that all is well */
	struct check_line
		*lines; /* worst first; of `over` ones those of one kind of memory before sums, by bytes */
	size_t line_count;
	char **reasons; /* why not comparable: one sentence each */
	size_t reason_count;
	char **notes; /* versions that differ, "update the baseline", units said back, ...: one sentence each */
	size_t note_count;
};

struct check_limit {
	enum metric metric;
	uint64_t limit;
	const char *given;
};

/* What is asked for. ST_UNKNOWN: not given. */
struct check_options {
	bool json, update, help;
	const char *baseline, *junit, *benchmark; /* paths, NULL */
	uint64_t budget, fit;
	const char *budget_given, *fit_given;
	struct check_limit limits[METRIC_COUNT]; /* one for each metric at most */
	size_t limit_count;
};

/*
 * `baseline` may be NULL. With options->update nothing is compared with it: `before` is what it has, and the verdict and
 * the status say whether these runs are to be its next values. 0 or a negative errno.
 */
int check_compare(const struct measures *measures, const struct measure *baseline,
                  const struct check_options *options, struct check_result *ret_result);
void check_release(struct check_result *result);

/* Writes the baseline of these runs, which a check with `update` found fit for it. 0 or a negative errno. */
int check_update(const char *path, const struct measures *measures);

/* Each writes the whole result; 0 or a negative errno. */
int check_write_text(FILE *out, const struct check_result *result);
int check_write_json(FILE *out, const struct check_result *result);
int check_write_junit(FILE *out, const struct check_result *result);
int check_write_benchmark(FILE *out, const struct check_result *result);
/* Workflow commands (few, ranked) for GitHub's runner; the job summary in Markdown. */
int check_write_annotations(FILE *out, const struct check_result *result);
int check_write_summary(FILE *out, const struct check_result *result);

#endif
