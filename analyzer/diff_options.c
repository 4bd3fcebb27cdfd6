/* SPDX-License-Identifier: Apache-2.0 */
#include "diff.h"
#include "option_table.h"
#include "units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A size, or of a ratio a plain number. */
static int parse_most(enum metric metric, const char *text, uint64_t *ret_most)
{
	char *end;
	double ratio;

	if (metric_rows[metric].unit == METRIC_BYTES)
		return option_size(text, ret_most);
	ratio = strtod(text, &end);
	if (end == text || *end || !(ratio >= 0) || ratio > 1e9)
		return -EINVAL;
	*ret_most = (uint64_t)lround(ratio * METRIC_RATIO_ONE);
	return 0;
}

static int parse_metric(const char *text, struct diff_limit *ret_limit)
{
	size_t length = strcspn(text, "=");
	char *name = strndup(text, length);

	ret_limit->metric = name ? metric_find(name) : METRIC_COUNT;
	free(name);
	if (ret_limit->metric == METRIC_COUNT)
		return -EINVAL;
	return text[length] ? parse_most(ret_limit->metric, text + length + 1, &ret_limit->most) : 0;
}

/* May be given more than once. */
static int parse_fail_on(const char *text, void *at)
{
	struct diff_limits *limits = at;
	struct diff_limit limit = {METRIC_COUNT, ST_UNKNOWN};

	if (limits->count == DIFF_LIMITS)
		return -EINVAL;
	if (option_size(text, &limit.most) && parse_metric(text, &limit))
		return -EINVAL;
	limits->limits[limits->count++] = limit;
	return 0;
}

static const struct option_row rows[] = {
	{"json", NULL, NULL, offsetof(struct diff_options, json), "print JSON instead of text"},
	{"fail-on", "SIZE|METRIC[=SIZE]", parse_fail_on, offsetof(struct diff_options, fail_on),
         "exit 1 if a peak in bytes, or this metric, grew by more; may be repeated"},
	{"help", NULL, NULL, offsetof(struct diff_options, help), "this text"},
};

static const struct option_table table = {rows, sizeof(rows) / sizeof(rows[0])};

int diff_options_parse(int argc, char **argv, struct diff_options *ret_options, int *ret_first)
{
	struct diff_options options = {0};
	int error = option_table_parse(&table, argc, argv, &options, ret_first);

	if (!error)
		*ret_options = options;
	return error;
}

void diff_options_print(FILE *out)
{
	option_table_print(&table, out);
}
