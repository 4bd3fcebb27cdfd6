/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_parts.h"
#include "measure_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct range range_in(struct change value)
{
	return (struct range){(uint64_t)(value.lo < 0 ? 0 : value.lo),
	                      value.hi == INT64_MAX ? UINT64_MAX : (uint64_t)(value.hi < 0 ? 0 : value.hi)};
}

/* In bytes where it differs and would read alike. */
char *diff_value_text(const struct diff_row *row, struct change value)
{
	const struct range values[] = {range_in(row->before), range_in(row->after)};
	enum metric metric = row->unit == METRIC_RATIO ? METRIC_FACTOR : METRIC_MODELLED;
	bool differ = row->state == DIFF_GREW || row->state == DIFF_SHRANK;
	char text[METRIC_TEXT];

	if (value.lo == INT64_MIN)
		return strdup("unknown");
	if (row->is_change) {
		struct emit_field field = emit_change(NULL, value.lo, value.hi);

		return emit_value_text(&field);
	}
	return strdup(
		value_print(metric, range_in(value), differ && values_look_alike(metric, values, 2), text));
}

static char *ratio_change_text(struct change change)
{
	double lo = (double)change.lo / METRIC_RATIO_ONE, hi = (double)change.hi / METRIC_RATIO_ONE;
	char *text = NULL;
	int length;

	if (change.lo == INT64_MIN && change.hi == INT64_MAX)
		return strdup("unknown");
	if (change.lo == INT64_MIN || change.hi == INT64_MAX)
		length = asprintf(&text, change.lo == INT64_MIN ? "at most %+.4f" : "at least %+.4f",
		                  change.lo == INT64_MIN ? hi : lo);
	else if (change.lo == change.hi)
		length = asprintf(&text, "%+.4f", lo);
	else
		length = asprintf(&text, "%+.4f to %+.4f", lo, hi);
	return length < 0 ? NULL : text;
}

char *diff_change_text(enum metric_unit unit, struct change change)
{
	struct emit_field field = emit_change(NULL, change.lo, change.hi);

	return unit == METRIC_RATIO ? ratio_change_text(change) : emit_value_text(&field);
}
