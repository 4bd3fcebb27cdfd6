/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences. The one of a line that is over is what a build log shows, to somebody who has never seen this tool: by how
 * much first, then what it is, then its name.
 */
#include <analyzer/array.h>
#include <analyzer/check_parts.h>
#include <analyzer/check_words.h>
#include <sparktrace/format.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const check_state_names[CHECK_STATES] = {
	[CHECK_SHOWN] = "shown",
	[CHECK_OK] = "ok",
	[CHECK_IMPROVED] = "improved",
	[CHECK_WARNED] = "warning",
	[CHECK_CANNOT_TELL] = "cannot tell",
	[CHECK_OVER] = "over",
};

static const char *const nouns[METRIC_COUNT] = {
	[METRIC_DEVICE] = "device memory",
	[METRIC_STAGING] = "pinned and staging memory",
	[METRIC_ANON] = "anonymous copies of the weights",
	[METRIC_HOST] = "other host memory",
	[METRIC_MODELLED] = "memory for loading",
	[METRIC_FACTOR] = "memory for loading, per byte of weights,",
	[METRIC_MAPPED] = "mapped weight files",
	[METRIC_READ] = "bytes read per byte of weights",
	[METRIC_POOL] = "the fall of available memory",
};

static const char *noun_of(enum metric metric)
{
	return metric < METRIC_COUNT ? nouns[metric] : "the need of the run";
}

char *check_format(struct check *check, const char *format, ...)
{
	va_list list;
	char *text;
	int length;

	va_start(list, format);
	length = vasprintf(&text, format, list);
	va_end(list);
	if (length >= 0)
		return text;
	check->error = check->error ? check->error : -ENOMEM;
	return NULL;
}

/* Takes `text`; what was said once is not said again. */
static void append(struct check *check, char ***texts, size_t *count, size_t *room, char *text)
{
	bool said = !text;

	for (size_t i = 0; !said && i < *count; i++)
		said = !strcmp((*texts)[i], text);
	if (!said && array_reserve(texts, sizeof(**texts), *count, room)) {
		check->error = check->error ? check->error : -ENOMEM;
		said = true;
	}
	if (said)
		free(text);
	else
		(*texts)[(*count)++] = text;
}

void check_reason(struct check *check, char *text)
{
	struct check_result *r = check->result;

	append(check, &r->reasons, &r->reason_count, &check->reason_room, text);
}

void check_note(struct check *check, char *text)
{
	struct check_result *r = check->result;

	append(check, &r->notes, &r->note_count, &check->note_room, text);
}

void check_add_line(struct check *check, const struct check_line *line)
{
	struct check_result *r = check->result;

	if (!line->sentence ||
	    array_reserve(&r->lines, sizeof(*r->lines), r->line_count, &check->line_room)) {
		check->error = check->error ? check->error : -ENOMEM;
		free(line->sentence);
		for (int i = 0; i < CHECK_GROWN; i++)
			free(line->details[i]);
		return;
	}
	r->lines[r->line_count++] = *line;
}

/* --- lines -------------------------------------------------------------------------------------------- */

/* The figures of a line as text. */
struct figures {
	char value[METRIC_TEXT], before[METRIC_TEXT], limit[METRIC_TEXT], by[METRIC_TEXT];
	const char *at_least; /* in front of `by` */
};

/* By how much, at least: above what it is compared with; of an improvement below. */
static uint64_t distance(const struct check_line *line, bool *ret_exact)
{
	struct range before = line->against == AGAINST_BASELINE ? line->before : range_of(line->limit);
	struct range high = line->value, low = before;

	if (line->state == CHECK_IMPROVED) {
		high = before;
		low = line->value;
	}
	*ret_exact = range_is_exact(high) && range_is_exact(low);
	return bytes_sub(high.lo, low.hi);
}

static struct figures figures_of(const struct check_line *line)
{
	enum metric metric = line->metric < METRIC_COUNT ? line->metric : METRIC_MODELLED;
	struct figures f;
	bool exact;
	uint64_t by = distance(line, &exact);

	check_value_text(line, line->value, f.value);
	check_value_text(line, line->before, f.before);
	check_value_text(line, range_of(line->limit), f.limit);
	metric_print(metric, range_of(by), f.by);
	f.at_least = exact ? "" : "at least ";
	return f;
}

static char *say_beside_baseline(struct check *check, const struct check_line *line, const char *why)
{
	const struct figures f = figures_of(line);
	const char *name = metric_rows[line->metric].name, *noun = noun_of(line->metric);

	switch (line->state) {
	case CHECK_OVER:
		return check_format(check, "%s+%s: %s grew from %s to %s, above the limit of %s (%s)",
		                    f.at_least, f.by, noun, f.before, f.value, f.limit, name);
	case CHECK_WARNED:
		return check_format(check, "%s+%s: %s grew from %s to %s; the limit is %s (%s)", f.at_least,
		                    f.by, noun, f.before, f.value, f.limit, name);
	case CHECK_IMPROVED:
		return check_format(check, "%s-%s: %s fell from %s to %s%s (%s)", f.at_least, f.by, noun,
		                    f.before, f.value, check->failed ? "" : ", update the baseline", name);
	case CHECK_CANNOT_TELL:
		return check_format(check, "%s (%s): %s, %s in the baseline: %s", noun, name, f.value,
		                    f.before, why ? why : "the limit lies inside what is known");
	case CHECK_SHOWN:
	case CHECK_OK:
	case CHECK_STATES:
		break;
	}
	return check_format(check, "%s (%s): %s, %s in the baseline, %s at most", noun, name, f.value,
	                    f.before, f.limit);
}

/* A limit, a budget: the option that gave it is said with it. */
static char *say_beside_limit(struct check *check, const struct check_line *line, const char *why)
{
	const struct figures f = figures_of(line);
	const char *name = metric_rows[line->metric].name, *noun = noun_of(line->metric);
	bool budget = line->against == AGAINST_BUDGET;
	char *option = budget ? check_format(check, "--budget %s", line->given)
	                      : check_format(check, "--metric %s=%s", name, line->given);
	const char *word = budget ? "budget" : "limit";
	char *text = NULL;

	if (!option)
		return NULL;
	if (line->state == CHECK_OVER)
		text = check_format(check, "%s+%s: %s came to %s, above the %s of %s (%s)", f.at_least, f.by,
		                    noun, f.value, word, f.limit, option);
	else if (line->state == CHECK_CANNOT_TELL)
		text = check_format(check, "%s (%s): %s, the %s is %s: %s", noun, option, f.value, word,
		                    f.limit, why ? why : "it lies inside what is known");
	else
		text = check_format(check, "%s (%s): %s, the %s is %s", noun, option, f.value, word, f.limit);
	free(option);
	return text;
}

static char *say_fit(struct check *check, const struct check_line *line, const char *why)
{
	const struct figures f = figures_of(line);

	if (line->state == CHECK_OVER)
		return check_format(check,
		                    "%s+%s: the run needs %s; one pool of %s has %s for it, the rest is kept "
		                    "for the system (--fit)",
		                    f.at_least, f.by, f.value, line->given, f.limit);
	if (line->state == CHECK_CANNOT_TELL)
		return check_format(check,
		                    "whether the run fits into one pool of %s cannot be told (--fit): %s",
		                    line->given, why ? why : "its need is not known");
	return check_format(check, "the run needs %s; one pool of %s has %s for it%s (--fit)", f.value,
	                    line->given, f.limit, line->state == CHECK_WARNED ? ": that is tight" : "");
}

static char *say_shown(struct check *check, const struct check_line *line)
{
	const struct figures f = figures_of(line);
	const char *name = metric_rows[line->metric].name, *noun = noun_of(line->metric);
	bool same = line->before.lo == line->value.lo && line->before.hi == line->value.hi;

	if (!check->options->update || !check_known(line->before) || same)
		return check_format(check, "%s (%s): %s", noun, name, f.value);
	return check_format(check, "%s (%s): %s -> %s", noun, name, f.before, f.value);
}

char *check_sentence(struct check *check, const struct check_line *line, const char *why)
{

	switch (line->against) {
	case AGAINST_BASELINE:
		return say_beside_baseline(check, line, why);
	case AGAINST_LIMIT:
	case AGAINST_BUDGET:
		return say_beside_limit(check, line, why);
	case AGAINST_FIT:
		return say_fit(check, line, why);
	case AGAINST_NOTHING:
		break;
	}
	return say_shown(check, line);
}
