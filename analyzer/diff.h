/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs side by side: metrics, the pool's layers at two peaks, and what they consisted of by file, tensor and stack,
 * matched by the names of breakdown.h.
 *
 * A value is an interval, and so is what became of it: [after.lo - before.hi, after.hi - before.lo]. It is a difference
 * only where all of that is beyond the noise on one side, "same" only where none of it is; everything else cannot be told.
 * The noise of a row:
 *
 *	exact		1 MiB, or 0.1 % of what it was before, whichever is more (ratios: 0.001, or 0.1 %)
 *	scheduling	and, where threads load, what may be there at the same instant or not: of staging and host blocks
 *			the largest tensor for each thread, of mappings and copies the largest file that is let go, of device
 *			memory a segment of the allocator; at most the smaller one of both, once for each thread more
 *			(diff_scheduling.c)
 *	sampled		DIFF_ALLOWANCE more, or 5 %: what comes from samples and not from calls (other host memory, demand), and
 *			only at the demand peak: at another one its instant does not depend on them
 *	pool		never judged: depends on what was cached before, and on who else runs; pool_peak has its metric's
 *			own tolerance
 */
#ifndef SPARKTRACE_DIFF_H
#define SPARKTRACE_DIFF_H

#include <analyzer/emit.h>
#include <analyzer/measure.h>

#define DIFF_ALLOWANCE (UINT64_C(64) << 20)

enum diff_class { DIFF_EXACT, DIFF_SCHEDULING, DIFF_SAMPLED, DIFF_POOL };
enum diff_state { DIFF_SAME, DIFF_GREW, DIFF_SHRANK, DIFF_CANNOT_TELL, DIFF_SHOWN, DIFF_STATES };

extern const char *const diff_state_names[DIFF_STATES]; /* "same", "grew", "shrank", "cannot tell", "shown" */

/* One number of both. Unknown: CHANGE_UNKNOWN; without an upper bound: `hi` INT64_MAX. */
struct diff_row {
	const char *key, *title; /* for scripts, for people */
	enum diff_class class;
	enum metric_unit unit;
	bool is_change; /* the value itself has a sign: it is a rise since the first sample */
	bool hidden;    /* 0 on both sides: for scripts only */
	struct change before, after, change;
	uint64_t noise;
	enum diff_state state;
	const char *gap; /* why it is doubtful, NULL */
};

/* A part that differs. */
struct diff_part {
	const struct growth *growth;
	struct change change;
	enum diff_state state; /* not DIFF_SAME */
};

/* Parts of both. */
struct diff_parts {
	struct growth *growths;  /* all of them */
	struct diff_part *parts; /* those that differ, by bytes of change */
	size_t count;
	size_t small, unclear; /* left out: below the noise, not known well enough */
	size_t moved; /* left out: threads load, and the whole is the same: who had it when is scheduling */
	struct breakdown before, after; /* of `run`: the parts' names are theirs */
};

#define DIFF_ROWS 16

enum diff_moment { DIFF_LOAD_PEAK, DIFF_DEMAND_PEAK, DIFF_MOMENTS };

struct diff_layers {
	bool before, after; /* that run came to it */
	struct diff_row rows[DIFF_ROWS];
	size_t count;
};

struct diff_limit {
	enum metric metric; /* METRIC_COUNT: every peak in bytes that is not sampled, of the run as well */
	uint64_t most;      /* ST_UNKNOWN: the metric's own tolerance */
};

#define DIFF_LIMITS 32

struct diff_limits {
	struct diff_limit limits[DIFF_LIMITS];
	size_t count;
};

struct diff_options {
	bool json, help;
	struct diff_limits fail_on;
};

#define DIFF_RUN_DEVICE METRIC_COUNT
#define DIFF_RUN_PINNED (METRIC_COUNT + 1)
#define DIFF_PEAKS      (METRIC_COUNT + 2)

struct diff {
	const struct measure *before, *after;
	uint64_t scheduling[METRIC_COUNT]; /* part of the noise, in the metric's unit */
	struct diff_row peaks[DIFF_PEAKS]; /* the metrics, then the exact peaks of the whole run */
	struct diff_layers layers[DIFF_MOMENTS];
	struct diff_parts load, run; /* `run`: device memory at the run's demand peak, by stack */
	char *verdict;               /* one line; what changed most, with its number first */
	char **notes;                /* what makes it doubtful, and what else is not alike: a sentence each */
	size_t note_count;
	char **failures; /* what --fail-on found, a sentence each */
	size_t failure_count;
	int status; /* enum command_status, by --fail-on */
};

/* 0 or -ENOMEM. Both measures stay the caller's, and are there as long as the result is. */
int diff_compare(const struct measure *before, const struct measure *after,
                 const struct diff_options *options, struct diff *ret_diff);
void diff_release(struct diff *diff);

/* 0 or a negative errno. */
int diff_write(FILE *out, const struct diff *diff, enum emit_format format);

/* As option_table_parse(). */
int diff_options_parse(int argc, char **argv, struct diff_options *ret_options, int *ret_first);
void diff_options_print(FILE *out);

#endif
