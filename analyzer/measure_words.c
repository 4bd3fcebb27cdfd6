/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/measure_words.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_unknown(struct range value)
{
	return range_is_open(value) && (!value.lo || value.lo == UINT64_MAX);
}

bool values_look_alike(enum metric metric, const struct range *values, size_t count)
{
	char left[METRIC_TEXT], right[METRIC_TEXT];

	for (size_t i = 0; i < count; i++) {
		metric_print(metric, values[i], left);
		for (size_t k = 0; k < i; k++) {
			bool equal = values[i].lo == values[k].lo && values[i].hi == values[k].hi;

			if (equal || is_unknown(values[i]) || is_unknown(values[k]))
				continue;
			if (!strcmp(left, metric_print(metric, values[k], right)))
				return true;
		}
	}
	return false;
}

char *value_print(enum metric metric, struct range value, bool exact, char text[METRIC_TEXT])
{
	if (!exact || metric_rows[metric].unit != METRIC_BYTES || (!value.lo && range_is_open(value)))
		return metric_print(metric, value, text);
	if (range_is_exact(value))
		snprintf(text, METRIC_TEXT, "%" PRIu64 " bytes", value.lo);
	else if (range_is_open(value))
		snprintf(text, METRIC_TEXT, "at least %" PRIu64 " bytes", value.lo);
	else if (!value.lo)
		snprintf(text, METRIC_TEXT, "up to %" PRIu64 " bytes", value.hi);
	else
		snprintf(text, METRIC_TEXT, "%" PRIu64 " to %" PRIu64 " B", value.lo, value.hi);
	return text;
}
