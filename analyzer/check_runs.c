/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known of the runs before anything is compared: are they of use, do they belong together? */
#include <analyzer/baseline.h>
#include <analyzer/check_parts.h>
#include <errno.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <stdlib.h>
#include <string.h>

struct range check_combine(enum metric metric, struct range a, struct range b)
{
	if (!metric_rows[metric].sampled)
		return range_max(a, b);
	return (struct range){bytes_min(a.lo, b.lo), bytes_min(a.hi, b.hi)};
}

/* What a run had at least; no more is known of a load that did not come to its end. */
static struct range value_of(const struct measure *run, enum metric metric)
{
	struct range value = run->values[metric];

	if (!run->finished)
		value.hi = UINT64_MAX;
	return value;
}

static void sum_up(struct check *check, enum metric metric)
{
	const struct measures *all = check->measures;
	struct check_sum *sum = &check->sums[metric];

	for (size_t i = 0; i < all->count; i++) {
		const struct measure *run = &all->runs[i];
		struct range value = value_of(run, metric), before = sum->value;

		sum->value = i ? check_combine(metric, before, value) : value;
		sum->spread = i ? range_hull(sum->spread, value) : value;
		if (!i || sum->value.hi != before.hi || (value.hi == before.hi && sum->value.lo != before.lo))
			sum->run = run;
		if (run->gaps[metric] && !sum->gap)
			sum->gap = run;
	}
}

/* What comes after a bad end is in no trace; the load may have been over before, or not. */
static void say_end(struct check *check, const char *path, const struct model *model)
{
	bool killed = model && model->exit_how == ST_EXIT_SIGNALED;

	if (!model || !model->exited || !model->exit_status || (!killed && model->exit_how != ST_EXIT_EXITED))
		return;
	check->failed = true;
	check_note(check,
	           check_format(check,
	                        "%s: the program ended %s %" PRId64 "; only what it loaded before is known",
	                        path, killed ? "by signal" : "with status", model->exit_status));
}

static void look_at_ends(struct check *check, const struct measure *run)
{
	if (!run->total)
		say_end(check, run->path, run->model);
	for (size_t i = 0; run->total && i < run->total->part_count; i++)
		say_end(check, run->total->parts[i].card->path, run->total->parts[i].model);
}

static void look_at_runs(struct check *check)
{
	for (size_t i = 0; i < check->measures->count; i++) {
		const struct measure *run = &check->measures->runs[i];

		if (run->unusable)
			check_reason(check, check_format(check, "%s: %s", run->path, run->unusable));
		else if (!run->finished)
			check_reason(check,
			             check_format(check,
			                          "%s: the load did not come to its end, so its values are "
			                          "lower bounds",
			                          run->path));
		if (run->unusable && !check->unusable)
			check->unusable = run;
		if (!run->finished && !check->unfinished)
			check->unfinished = run;
		look_at_ends(check, run);
	}
}

/* --- fingerprints ------------------------------------------------------------------------------------- */

/* What --update is about to replace need not be alike. */
static bool is_replaced(const struct check *check, const struct measure *measure)
{
	return check->options->update && measure == check->baseline;
}

static void say_apart(struct check *check, const struct fingerprint_row *row, const struct measure *a,
                      const struct measure *b)
{
	char *before = fingerprint_text(row, &a->fingerprint),
	     *after = fingerprint_text(row, &b->fingerprint);
	const char *where = a == check->baseline ? "the baseline" : a->path;

	if (!before || !after)
		check->error = check->error ? check->error : -ENOMEM;
	else if (is_replaced(check, a))
		check_note(check, check_format(check, "%s: %s -> %s", row->label, before, after));
	else
		check_reason(check, check_format(check, "not comparable, the %s differs: %s in %s, %s in %s",
		                                 row->label, before, where, after, b->path));
	free(before);
	free(after);
}

static void say_way_out(struct check *check, const struct measure *before)
{
	if (before == check->baseline && baseline_is_file(before) && !check->options->update &&
	    !check->unusable)
		check_note(check,
		           check_format(check,
		                        "if that is meant: the same command with --update writes a new "
		                        "baseline"));
}

static void say_unknown(struct check *check, const struct fingerprint_row *row)
{
	check_note(check, check_format(check, "the %s is unknown on both sides, and was taken to be the same",
	                               row->label));
}

/*
 * Which threads come to load small tensors is the scheduler's choice. Their number matters where the staging that they
 * may have at once is above what is passed over anyway.
 */
static bool threads_alike(const struct measure *a, const struct measure *b)
{
	uint64_t threads = bytes_max(a->fingerprint.threads, b->fingerprint.threads);
	uint64_t tensor = bytes_max(a->scale.largest_tensor, b->scale.largest_tensor), bytes;

	return threads != ST_UNKNOWN && tensor != ST_UNKNOWN &&
	       !__builtin_mul_overflow(threads, tensor, &bytes) && bytes <= metric_rows[METRIC_STAGING].least;
}

static bool is_alike(const struct fingerprint_row *row, const struct measure *a, const struct measure *b)
{
	if (row->offset == offsetof(struct fingerprint, threads) && threads_alike(a, b))
		return true;
	return fingerprint_equal(row, &a->fingerprint, &b->fingerprint);
}

static void compare_fingerprints(struct check *check, const struct measure *a, const struct measure *b)
{
	for (size_t i = 0; i < FINGERPRINT_ROWS; i++) {
		const struct fingerprint_row *row = &fingerprint_rows[i];

		if (!is_alike(row, a, b)) {
			say_apart(check, row, a, b);
			say_way_out(check, a);
			check->apart |= !is_replaced(check, a);
		} else if (!fingerprint_known(row, &a->fingerprint) && !is_replaced(check, a)) {
			say_unknown(check, row);
		}
	}
}

/* --- versions, weights: said, and compared all the same ----------------------------------------------- */

static const char *version_of(const struct measure *measure, const char *name)
{
	for (size_t i = 0; i < measure->version_count; i++)
		if (!strcmp(measure->versions[i].name, name))
			return measure->versions[i].version;
	return NULL;
}

static void compare_versions(struct check *check, const struct measure *a, const struct measure *b)
{
	/* As of a program that was killed before anybody looked. */
	if (a->version_count && !b->version_count) {
		check_note(check, check_format(check, "%s: which packages loaded is not known", b->path));
		return;
	}
	for (size_t i = 0; i < a->version_count; i++) {
		const char *name = a->versions[i].name, *before = a->versions[i].version;
		const char *after = version_of(b, name);

		if (!after)
			check_note(check,
			           check_format(check, "%s %s is not seen in loading, as it was before", name,
			                        before));
		else if (strcmp(before, after) != 0)
			check_note(check, check_format(check, "%s %s -> %s", name, before, after));
	}
	for (size_t i = 0; i < b->version_count; i++)
		if (!version_of(a, b->versions[i].name))
			check_note(check,
			           check_format(check, "%s %s is seen in loading, as it was not before",
			                        b->versions[i].name, b->versions[i].version));
}

static void compare_weights(struct check *check, const struct measure *a, const struct measure *b)
{
	char before[METRIC_TEXT], after[METRIC_TEXT];

	if (a->weights == b->weights)
		return;
	check_note(check, check_format(check, "the weights are %s, %s before",
	                               metric_print(METRIC_MODELLED, range_of(b->weights), after),
	                               metric_print(METRIC_MODELLED, range_of(a->weights), before)));
}

static void compare_pair(struct check *check, const struct measure *a, const struct measure *b)
{
	compare_fingerprints(check, a, b);
	compare_versions(check, a, b);
	compare_weights(check, a, b);
}

/* A trace in the baseline's place may be of no use as well. */
static void look_at_baseline(struct check *check)
{
	const struct measure *baseline = check->baseline;
	const char *why = baseline->unusable    ? baseline->unusable
	                  : !baseline->finished ? "its load did not come to its end"
	                                        : NULL;

	if (why) {
		check_reason(check, check_format(check, "the baseline %s: %s", baseline->path, why));
		check->apart = true;
	}
	compare_pair(check, baseline, &check->measures->runs[0]);
}

/* Tolerances depend on what the baseline has; of what the scheduler decides it is the most of all. */
static void find_scale(struct check *check)
{
	struct metric_scale *scale = &check->scale;

	*scale = check->baseline->scale;
	for (size_t i = 0; i < check->measures->count; i++) {
		scale->threads = bytes_max(scale->threads, check->measures->runs[i].scale.threads);
		scale->released = bytes_max(scale->released, check->measures->runs[i].scale.released);
	}
}

void check_runs(struct check *check)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		sum_up(check, (enum metric)i);
	look_at_runs(check);
	for (size_t i = 1; i < check->measures->count; i++)
		compare_pair(check, &check->measures->runs[0], &check->measures->runs[i]);
	if (check->baseline) {
		find_scale(check);
		look_at_baseline(check);
	}
}
