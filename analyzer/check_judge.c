/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which state a value has. What is proven counts first: a lower end above a limit is above it, whatever else is not known.
 * What is not proven passes only with its upper end, and only where nothing is missing.
 */
#include <analyzer/baseline.h>
#include <analyzer/check_parts.h>
#include <sparktrace/format.h>
#include <stdlib.h>

enum check_state check_judge_limit(struct range value, uint64_t limit)
{
	if (value.lo > limit)
		return CHECK_OVER;
	return value.hi <= limit && !range_is_open(value) ? CHECK_OK : CHECK_CANNOT_TELL;
}

uint64_t check_limit(enum metric metric, struct range before, const struct metric_scale *scale)
{
	if (range_is_open(before))
		return UINT64_MAX;
	return bytes_add(before.hi, metric_tolerance(metric, before.hi, scale));
}

/* Above the share of the baseline from which on a metric warns. */
static bool is_warned(enum metric metric, struct range value, struct range before)
{
	double warn = metric_rows[metric].warn;

	return warn > 0 && (double)value.hi > (double)before.hi * (1 + warn);
}

enum check_state check_judge_baseline(enum metric metric, struct range value, struct range before,
                                      uint64_t limit)
{
	enum check_state state = check_judge_limit(value, limit);

	if (range_is_open(before))
		return CHECK_CANNOT_TELL;
	if (state != CHECK_OK)
		return state;
	if (is_warned(metric, value, before))
		return CHECK_WARNED;
	return bytes_add(value.hi, limit - before.hi) < before.lo ? CHECK_IMPROVED : CHECK_OK;
}

/* --- why a value cannot be compared -------------------------------------------------------------------- */

static bool too_few(const struct check *check, enum metric metric)
{
	return metric_rows[metric].sampled && check->measures->count < METRIC_RUNS;
}

/* To be freed; NULL: nothing speaks against it. Said among the reasons where it is not there yet. */
static char *doubt_about(struct check *check, enum metric metric)
{
	const struct measure *gap = check->sums[metric].gap;
	const struct measure *run = check->unusable ? check->unusable : gap ? gap : check->unfinished;
	const char *why = check->unusable     ? run->unusable
	                  : gap               ? gap->gaps[metric]
	                  : check->unfinished ? "the load did not come to its end"
	                                      : NULL;

	if (!why)
		return NULL;
	if (gap && !check->unusable)
		check_reason(check, check_format(check, "%s: %s", run->path, why));
	return check_format(check, "%s: %s", run->path, why);
}

static char *doubt_beside_baseline(struct check *check, enum metric metric)
{
	const struct measure *baseline = check->baseline;
	char *doubt;

	if (check->apart)
		return check_format(check, "the runs are not comparable");
	doubt = doubt_about(check, metric);
	if (doubt || !baseline->gaps[metric])
		return doubt;
	check_reason(check,
	             check_format(check, "the baseline %s: %s", baseline->path, baseline->gaps[metric]));
	return check_format(check, "the baseline %s: %s", baseline->path, baseline->gaps[metric]);
}

/* A growth smaller than what is not known of the value would pass unseen. */
static void note_width(struct check *check, enum metric metric, struct range value, uint64_t tolerance)
{
	char text[METRIC_TEXT];

	if (!range_is_open(value) && value.hi - value.lo > tolerance)
		check_note(check, check_format(check, "%s is known only as %s: a growth inside is not seen",
		                               metric_rows[metric].name, metric_print(metric, value, text)));
}

/*
 * Host blocks below the threshold are in no metric. Samples see that they came, and samples must not gate: it is said, and
 * a limit that they would break is not called kept.
 */
static uint64_t uncounted(const struct check *check, enum metric metric)
{
	uint64_t most = 0;

	for (size_t i = 0; metric == METRIC_HOST && i < check->measures->count; i++)
		most = bytes_max(most, check->measures->runs[i].uncounted);
	return most > metric_rows[METRIC_HOST].least ? most : 0;
}

static void note_uncounted(struct check *check, enum metric metric)
{
	uint64_t bytes = uncounted(check, metric);
	char text[METRIC_TEXT];

	if (bytes)
		check_note(check,
		           check_format(check,
		                        "the load brought at least %s of host memory that %s does not count: "
		                        "blocks below SPARKTRACE_HEAP_THRESHOLD, or what the program maps "
		                        "by itself",
		                        metric_print(METRIC_HOST, range_of(bytes), text),
		                        metric_rows[metric].name));
}

/* --- lines ---------------------------------------------------------------------------------------------- */

static struct check_line new_line(const struct check *check, enum metric metric, enum check_against against)
{
	const struct check_sum *sum = &check->sums[metric];

	return (struct check_line){.metric = metric,
	                           .against = against,
	                           .value = sum->value,
	                           .before =
	                                   check->baseline ? check->baseline->values[metric] : RANGE_UNKNOWN,
	                           .limit = ST_UNKNOWN,
	                           .spread = sum->spread};
}

static void finish_line(struct check *check, struct check_line *line, char *doubt)
{
	line->sentence = check_sentence(check, line, doubt);
	if (line->state == CHECK_CANNOT_TELL && !doubt && line->sentence)
		check_reason(check, check_format(check, "%s", line->sentence));
	if (line->state == CHECK_OVER)
		check_grown(check, line);
	check_add_line(check, line);
	free(doubt);
}

static void line_shown(struct check *check, enum metric metric)
{
	struct check_line line = new_line(check, metric, AGAINST_NOTHING);

	line.state = CHECK_SHOWN;
	finish_line(check, &line, NULL);
}

/*
 * A loader that stages what it copied in another way before needs less in all. Where the sum, of which staging is a part, is
 * proven to have fallen, the growth of the part is said and fails nothing.
 */
static bool is_made_up_for(struct check *check, enum metric metric)
{
	const struct check_sum *sum = &check->sums[METRIC_MODELLED];
	struct range before = check->baseline->values[METRIC_MODELLED];

	if (metric != METRIC_STAGING || sum->gap || !check_known(before) || sum->value.hi >= before.lo)
		return false;
	check_note(check, check_format(check,
	                               "%s is above its limit, but %s, of which it is a part, fell: that "
	                               "is no failure",
	                               metric_rows[metric].name, metric_rows[METRIC_MODELLED].name));
	return true;
}

static void line_beside_baseline(struct check *check, enum metric metric)
{
	struct check_line line = new_line(check, metric, AGAINST_BASELINE);
	char *doubt = doubt_beside_baseline(check, metric);

	line.limit = check_limit(metric, line.before, &check->scale);
	line.state = check_judge_baseline(metric, line.value, line.before, line.limit);
	if (doubt && (line.state != CHECK_OVER || check->apart || check->unusable))
		line.state = CHECK_CANNOT_TELL;
	if (line.state == CHECK_OVER && is_made_up_for(check, metric))
		line.state = CHECK_WARNED;
	if (line.state < CHECK_CANNOT_TELL) {
		note_width(check, metric, line.value, line.limit - line.before.hi);
		note_width(check, metric, line.before, line.limit - line.before.hi);
	}
	note_uncounted(check, metric);
	finish_line(check, &line, doubt);
}

/* Why a limit cannot be said to be kept; NULL: it can. */
static char *doubt_beside_limit(struct check *check, const struct check_line *line)
{
	char *doubt = doubt_about(check, line->metric), text[METRIC_TEXT];
	uint64_t more = uncounted(check, line->metric);

	if (doubt)
		return doubt;
	if (too_few(check, line->metric))
		doubt = check_format(
			check, "it is judged by the smallest of %d runs or more, and there %s %zu",
			METRIC_RUNS, check->measures->count == 1 ? "is" : "are", check->measures->count);
	else if (line->state != CHECK_OVER && more && bytes_add(line->value.hi, more) > line->limit)
		doubt = check_format(check, "at least %s more came with the load, which it does not count",
		                     metric_print(METRIC_HOST, range_of(more), text));
	if (doubt)
		check_reason(check, check_format(check, "%s: %s", metric_rows[line->metric].name, doubt));
	return doubt;
}

static void line_beside_limit(struct check *check, enum metric metric, enum check_against against,
                              uint64_t limit, const char *given)
{
	struct check_line line = new_line(check, metric, against);
	char *doubt;

	line.limit = limit;
	line.given = given;
	line.state = check_judge_limit(line.value, limit);
	doubt = doubt_beside_limit(check, &line);
	if (doubt && (line.state != CHECK_OVER || too_few(check, metric)))
		line.state = CHECK_CANNOT_TELL;
	note_uncounted(check, metric);
	finish_line(check, &line, doubt);
}

/* Is there something in the baseline for it? Says so where there is not. */
static bool is_compared(struct check *check, enum metric metric)
{
	const struct measure *baseline = check->baseline;
	bool sampled = metric_rows[metric].sampled;

	if (!baseline || check->options->update || (sampled && !baseline_is_file(baseline)))
		return false;
	if (!check_known(baseline->values[metric]) && baseline_is_file(baseline)) {
		if (!sampled)
			check_note(check, check_format(check, "%s is not in the baseline, and not compared",
			                               metric_rows[metric].name));
		return false;
	}
	if (!too_few(check, metric))
		return true;
	check_note(check, check_format(check, "%s is compared from %d runs on: give as many traces",
	                               metric_rows[metric].name, METRIC_RUNS));
	return false;
}

static size_t lines_beside_limits(struct check *check, enum metric metric)
{
	const struct check_options *options = check->options;
	size_t count = 0;

	for (size_t i = 0; i < options->limit_count; i++)
		if (options->limits[i].metric == metric) {
			line_beside_limit(check, metric, AGAINST_LIMIT, options->limits[i].limit,
			                  options->limits[i].given);
			count++;
		}
	if (metric == METRIC_MODELLED && options->budget != ST_UNKNOWN) {
		line_beside_limit(check, metric, AGAINST_BUDGET, options->budget, options->budget_given);
		count++;
	}
	return count;
}

void check_lines(struct check *check)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		enum metric metric = (enum metric)i;
		size_t limits = lines_beside_limits(check, metric);

		if (is_compared(check, metric))
			line_beside_baseline(check, metric);
		else if (!limits && (!check->options->update || check_is_written(check->measures, metric)))
			line_shown(check, metric);
	}
	if (check->options->fit != ST_UNKNOWN)
		check_fit(check);
}
