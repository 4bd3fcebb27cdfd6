/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a check among themselves. */
#ifndef SPARKTRACE_CHECK_PARTS_H
#define SPARKTRACE_CHECK_PARTS_H

#include <analyzer/check.h>

/* A metric over all runs: the largest value, of sampled ones the smallest. */
struct check_sum {
	struct range value; /* open above where some load did not come to its end */
	struct range spread;
	const struct measure *run; /* whose value it is */
	const struct measure *gap; /* the first run in which it cannot be compared, NULL */
};

/* A check that is being made. */
struct check {
	const struct measures *measures;
	const struct measure *baseline; /* NULL */
	const struct check_options *options;
	struct check_sum sums[METRIC_COUNT];
	const struct measure *unusable;   /* the first run of no use at all, NULL */
	const struct measure *unfinished; /* the first whose load did not end, NULL */
	struct metric_scale scale;        /* of tolerances beside the baseline */
	bool failed;                      /* some program came to a bad end: a note is there */
	bool apart;                       /* nothing can be compared with the baseline: a reason is there */
	struct check_result *result;
	size_t line_room, reason_room, note_room;
	int error; /* first; what comes after it is dropped */
};

static inline bool check_known(struct range value)
{
	return value.lo || !range_is_open(value);
}

/* --- check_runs.c --------------------------------------------------------------------------------- */

/* Adds the runs up; reasons and notes about them, among themselves and beside the baseline. */
void check_runs(struct check *check);

/* The value that counts of several runs of one metric. */
struct range check_combine(enum metric metric, struct range a, struct range b);

/* --- check_judge.c -------------------------------------------------------------------------------- */

/* Beside a limit, exact. */
enum check_state check_judge_limit(struct range value, uint64_t limit);
/* Beside a baseline; `limit`: its upper end and the tolerance. */
enum check_state check_judge_baseline(enum metric metric, struct range value, struct range before,
                                      uint64_t limit);
uint64_t check_limit(enum metric metric, struct range before, const struct metric_scale *scale);

/* Judges each metric: the lines, in no order yet. */
void check_lines(struct check *check);
/* The line of --fit (check_fit.c). */
void check_fit(struct check *check);

/* --- check_say.c ---------------------------------------------------------------------------------- */

/* Formatted text, to be freed; NULL after an error. */
__attribute__((format(printf, 2, 3))) char *check_format(struct check *check, const char *format, ...);
/* Take `text`, which may be NULL after an error. A reason or note that is there already is not said again. */
void check_reason(struct check *check, char *text);
void check_note(struct check *check, char *text);
void check_add_line(struct check *check, const struct check_line *line);

/* The sentence of a line; `why` it cannot be told, or NULL. */
char *check_sentence(struct check *check, const struct check_line *line, const char *why);

/* --- check_grown.c -------------------------------------------------------------------------------- */

/* Fills in what a line's growth consists of; with no baseline its value. */
void check_grown(struct check *check, struct check_line *line);

/* --- check_update.c ------------------------------------------------------------------------------- */

/* Why no baseline is written from these runs. */
void check_update_reasons(struct check *check);

/* Does a baseline of these runs have that metric? Sampled ones take several runs. */
bool check_is_written(const struct measures *measures, enum metric metric);

#endif
