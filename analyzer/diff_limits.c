/* SPDX-License-Identifier: Apache-2.0 */
/* --fail-on: did it grow by more than that? What is noise never does. */
#include "commands.h"
#include "diff_parts.h"

#include <stdlib.h>
#include <string.h>

/* What is found outweighs what cannot be told. */
static void worsen(struct diff *diff, int status)
{
	if (diff->status != COMMAND_OVER && status != COMMAND_OK)
		diff->status = status;
}

static bool is_metric(int peak)
{
	return peak < METRIC_COUNT;
}

static const char *find_doubt(const struct diff *diff, int peak)
{
	if (diff->after->unusable || diff->before->unusable)
		return diff->after->unusable ? diff->after->unusable : diff->before->unusable;
	if (is_metric(peak) && metric_rows[peak].sampled)
		return "it is sampled, and one run of each is not enough";
	if (diff->peaks[peak].gap)
		return diff->peaks[peak].gap;
	if (is_metric(peak) && !(diff->after->finished && diff->before->finished))
		return "a load did not come to its end";
	return NULL;
}

/* Growth is proven by the lower end of `after`, unless `before` may have been more than was seen. */
static bool is_provable(const struct diff *diff, int peak)
{
	const struct measure *before = diff->before;

	if (before->unusable)
		return false;
	return !is_metric(peak) || (before->finished && !before->gaps[peak] && !metric_rows[peak].sampled);
}

static uint64_t own_tolerance(const struct diff *diff, enum metric metric)
{
	struct range before = diff->before->values[metric];

	return metric_tolerance(metric, range_is_open(before) ? before.lo : before.hi, &diff->before->scale);
}

static char *limit_text(const struct diff_row *row, uint64_t most)
{
	char text[METRIC_TEXT];

	return strdup(metric_print(row->unit == METRIC_RATIO ? METRIC_FACTOR : METRIC_MODELLED,
	                           range_of(most), text));
}

static int say_failure(struct diff *diff, const struct diff_row *row, uint64_t most, const char *doubt)
{
	char *change = diff_change_text(row->unit, row->change), *limit = limit_text(row, most);
	char *sentence = NULL;
	int length = -1;

	if (change && limit && doubt)
		length = asprintf(&sentence, "cannot tell whether %s grew by more than %s: %s", row->title,
		                  limit, doubt);
	else if (change && limit)
		length = asprintf(&sentence, "%s grew by more than %s: %s", row->title, limit, change);
	free(change);
	free(limit);
	return diff_sentence(&diff->failures, &diff->failure_count, length < 0 ? NULL : sentence);
}

static int check_limit(struct diff *diff, int peak, uint64_t most)
{
	const struct diff_row *row = &diff->peaks[peak];
	const char *doubt = find_doubt(diff, peak);
	int64_t bound = (int64_t)bytes_min(most, INT64_MAX);

	if (is_provable(diff, peak) && row->state == DIFF_GREW && row->change.lo > bound) {
		worsen(diff, COMMAND_OVER);
		return say_failure(diff, row, most, NULL);
	}
	if (!doubt && (row->state == DIFF_SAME || row->change.hi <= bound))
		return 0;
	worsen(diff, COMMAND_CANNOT_TELL);
	return say_failure(diff, row, most, doubt ? doubt : "the values are known only within bounds");
}

/* Every peak in bytes that does not come from samples. */
static int check_all(struct diff *diff, uint64_t most)
{
	int error = 0;

	for (int peak = 0; !error && peak < DIFF_PEAKS; peak++)
		if (diff->peaks[peak].unit == METRIC_BYTES && diff->peaks[peak].class != DIFF_POOL)
			error = check_limit(diff, peak, most);
	return error;
}

int diff_fail_on(struct diff *diff, const struct diff_limits *limits)
{
	int error = 0;

	for (size_t i = 0; !error && i < limits->count; i++) {
		const struct diff_limit *limit = &limits->limits[i];
		bool all = limit->metric == METRIC_COUNT;
		uint64_t most = limit->most == ST_UNKNOWN ? own_tolerance(diff, limit->metric) : limit->most;

		error = all ? check_all(diff, most) : check_limit(diff, (int)limit->metric, most);
	}
	return error;
}
