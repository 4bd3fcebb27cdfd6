/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of a check: its lines in order, its status, its verdict. */
#include <analyzer/baseline.h>
#include <analyzer/check_parts.h>
#include <analyzer/commands.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <stdlib.h>
#include <string.h>

static bool is_sum(enum metric metric)
{
	return metric == METRIC_MODELLED || metric >= METRIC_COUNT ||
	       metric_rows[metric].unit == METRIC_RATIO;
}

/* By how much it is above what it is compared with, at least. */
static uint64_t excess(const struct check_line *line)
{
	uint64_t from = line->against == AGAINST_BASELINE ? line->before.hi : line->limit;

	return bytes_sub(line->value.lo, from);
}

/*
 * Worst first. Of what is over: one kind of memory before sums of several, since it says more; then by bytes. Two lines are
 * never equal but in the baseline and a limit of one metric.
 */
static int compare_lines(const void *left, const void *right)
{
	const struct check_line *a = left, *b = right;

	if (a->state != b->state)
		return a->state > b->state ? -1 : 1;
	if (a->state == CHECK_OVER) {
		uint64_t x = excess(a), y = excess(b);

		if (is_sum(a->metric) != is_sum(b->metric))
			return is_sum(a->metric) ? 1 : -1;
		if (!is_sum(a->metric) && x != y)
			return x > y ? -1 : 1;
	}
	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	return (int)a->against - (int)b->against;
}

static size_t count_state(const struct check_result *result, enum check_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < result->line_count; i++)
		count += result->lines[i].state == state;
	return count;
}

static int find_status(const struct check_result *result)
{
	if (count_state(result, CHECK_OVER))
		return COMMAND_OVER;
	return result->reason_count || count_state(result, CHECK_CANNOT_TELL) ? COMMAND_CANNOT_TELL
	                                                                      : COMMAND_OK;
}

/* --- the verdict -------------------------------------------------------------------------------------- */

/* Names of what is over beside the first line, ", " before each; none where there are no more. */
static char *others_over(struct check *check, size_t count)
{
	char *text = check_format(check, "%s", "");

	for (size_t i = 1; text && i < count; i++) {
		const struct check_line *line = &check->result->lines[i];
		char *longer =
			check_format(check, "%s%s%s", text, i > 1 ? ", " : "; also above: ",
		                     line->metric < METRIC_COUNT ? metric_rows[line->metric].name : "--fit");

		free(text);
		text = longer;
	}
	return text;
}

static char *verdict_over(struct check *check, size_t count)
{
	char *others = others_over(check, count), *verdict = NULL;

	if (others)
		verdict = check_format(check, "%s%s", check->result->lines[0].sentence, others);
	free(others);
	return verdict;
}

static uint64_t bytes_of(const struct check_line *line)
{
	bool bytes = line->metric < METRIC_COUNT && metric_rows[line->metric].unit == METRIC_BYTES;

	return bytes ? line->value.hi : 0;
}

/* The gate stands for all, where it was judged; of a load that never came to the device what there was most of. */
static const struct check_line *main_line(const struct check_result *result)
{
	const struct check_line *main = NULL;

	for (size_t i = 0; i < result->line_count; i++) {
		const struct check_line *line = &result->lines[i];

		if (line->state != CHECK_OK)
			continue;
		if (line->metric == METRIC_MODELLED && line->value.hi)
			return line;
		if (!main || bytes_of(line) > bytes_of(main))
			main = line;
	}
	return main;
}

static char *verdict_ok(struct check *check)
{
	const struct check_line *line = main_line(check->result);
	size_t count = count_state(check->result, CHECK_OK);

	if (count == 1)
		return check_format(check, "ok: %s", line->sentence);
	return check_format(check, "ok: %s; all %zu are within their limits", line->sentence, count);
}

/* How many values the new baseline has otherwise. */
static char *verdict_update(struct check *check)
{
	const struct check_result *r = check->result;
	size_t changed = 0;

	if (r->reason_count)
		return check_format(check, "the baseline was not written: %s", r->reasons[0]);
	if (!check->baseline)
		return check_format(check, "wrote a new baseline: %s", check->options->baseline);
	for (size_t i = 0; i < r->line_count; i++) {
		const struct check_line *line = &r->lines[i];

		changed += line->against == AGAINST_NOTHING && check_known(line->before) &&
		           (line->value.lo != line->before.lo || line->value.hi != line->before.hi);
	}
	return check_format(check, "wrote the baseline: %zu of its metrics changed: %s", changed,
	                    check->options->baseline);
}

static char *find_verdict(struct check *check)
{
	const struct check_result *r = check->result;
	size_t over = count_state(r, CHECK_OVER);

	if (over)
		return verdict_over(check, over);
	if (check->options->update)
		return verdict_update(check);
	if (r->reason_count)
		return check_format(check, "cannot tell: %s", r->reasons[0]);
	if (r->line_count && r->lines[0].state > CHECK_OK)
		return check_format(check, "%s", r->lines[0].sentence);
	return verdict_ok(check);
}

/* --- all of it ---------------------------------------------------------------------------------------- */

/* "--budget 100MB" is said back in bytes, in groups of three digits. */
static void say_back(struct check *check, const char *option, const char *given, uint64_t bytes)
{
	char digits[32], grouped[48];
	size_t length, to = 0;

	if (!given || bytes == ST_UNKNOWN)
		return;
	length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, bytes);
	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			grouped[to++] = ',';
		grouped[to++] = digits[i];
	}
	grouped[to] = 0;
	check_note(check, check_format(check, "--%s%s is %s bytes", option, given, grouped));
}

static void say_options_back(struct check *check)
{
	const struct check_options *options = check->options;

	say_back(check, "budget ", options->budget_given, options->budget);
	say_back(check, "fit ", options->fit_given, options->fit);
	for (size_t i = 0; i < options->limit_count; i++) {
		const struct check_limit *limit = &options->limits[i];
		char *option = check_format(check, "metric %s=", metric_rows[limit->metric].name);

		if (option && metric_rows[limit->metric].unit == METRIC_BYTES)
			say_back(check, option, limit->given, limit->limit);
		free(option);
	}
}

/* What a growth or a failed program brought must not become a baseline by an advice of ours. */
static bool is_better(const struct check *check)
{
	return count_state(check->result, CHECK_IMPROVED) && !find_status(check->result) && !check->failed;
}

static void say_update(struct check *check)
{
	bool file = check->baseline && baseline_is_file(check->baseline);

	if (file && is_better(check))
		check_note(check,
		           check_format(check, "update the baseline, so that it stays as good: the same "
		                               "command with --update"));
	if (check->options->update && count_state(check->result, CHECK_OVER))
		check_note(check, check_format(check, "the baseline was not written"));
}

/* Nothing that was judged is nothing that is known. */
static void need_a_line(struct check *check)
{
	const struct check_result *r = check->result;

	if (!r->reason_count && count_state(r, CHECK_SHOWN) == r->line_count)
		check_reason(check, check_format(check, "no metric could be compared with anything"));
}

int check_compare(const struct measures *measures, const struct measure *baseline,
                  const struct check_options *options, struct check_result *ret_result)
{
	struct check_result result = {.update = options->update,
	                              .baseline = baseline ? baseline->path : NULL,
	                              .measures = measures};
	struct check check = {
		.measures = measures, .baseline = baseline, .options = options, .result = &result};

	check_runs(&check);
	check_lines(&check);
	say_options_back(&check);
	if (options->update)
		check_update_reasons(&check);
	else
		need_a_line(&check);
	say_update(&check);
	if (result.line_count)
		qsort(result.lines, result.line_count, sizeof(*result.lines), compare_lines);
	result.status = find_status(&result);
	if (!check.error)
		result.verdict = find_verdict(&check);
	if (check.error) {
		check_release(&result);
		return check.error;
	}
	*ret_result = result;
	return 0;
}

static void release_texts(char **texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(texts[i]);
	free(texts);
}

void check_release(struct check_result *result)
{
	for (size_t i = 0; i < result->line_count; i++) {
		free(result->lines[i].sentence);
		for (int j = 0; j < CHECK_GROWN; j++)
			free(result->lines[i].details[j]);
	}
	free(result->lines);
	free(result->verdict);
	release_texts(result->reasons, result->reason_count);
	release_texts(result->notes, result->note_count);
	*result = (struct check_result){0};
}
