/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a comparison doubtful, and what else is not alike. */
#include "baseline.h"
#include "diff_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static int note(struct diff *diff, const char *format, ...)
{
	char *sentence;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&sentence, format, arguments);
	va_end(arguments);
	return diff_sentence(&diff->notes, &diff->note_count, length < 0 ? NULL : sentence);
}

static int note_measure(struct diff *diff, const struct measure *measure)
{
	int error = 0;

	if (measure->unusable)
		error = note(diff, "%s: %s", measure->path, measure->unusable);
	else if (!measure->finished)
		error = note(diff, "%s: the load did not come to its end, its peaks may have been higher",
		             measure->path);
	/* Each of them says no more than that then. */
	for (int i = 0; !error && !measure->unusable && i < METRIC_COUNT; i++)
		if (measure->gaps[i])
			error = note(diff, "%s of %s: %s", metric_rows[i].name, measure->path,
			             measure->gaps[i]);
	return error;
}

static int note_circumstance(struct diff *diff, const struct fingerprint_row *row)
{
	const struct fingerprint *old = &diff->before->fingerprint, *new = &diff->after->fingerprint;
	char *before, *after;
	int error = -ENOMEM;

	if (fingerprint_equal(row, old, new))
		return 0;
	before = fingerprint_text(row, old);
	after = fingerprint_text(row, new);
	if (before && after)
		error = note(diff, "another %s: %s -> %s", row->label, before, after);
	free(before);
	free(after);
	return error;
}

static int note_circumstances(struct diff *diff)
{
	int error = 0;

	for (size_t i = 0; !error && i < FINGERPRINT_ROWS; i++)
		error = note_circumstance(diff, &fingerprint_rows[i]);
	return error;
}

/* Both are sorted by name. */
static int note_versions(struct diff *diff)
{
	const struct measure *old = diff->before, *new = diff->after;
	size_t o = 0, n = 0;
	int error = 0;

	while (!error && (o < old->version_count || n < new->version_count)) {
		const struct measure_version *a = o < old->version_count ? &old->versions[o] : NULL;
		const struct measure_version *b = n < new->version_count ? &new->versions[n] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);

		if (a && order < 0)
			error = note(diff, "%s %s loaded before, and no more", a->name, a->version);
		else if (b && order > 0)
			error = note(diff, "%s %s loads now, and did not before", b->name, b->version);
		else if (a && b && strcmp(a->version, b->version) != 0)
			error = note(diff, "%s %s -> %s", a->name, a->version, b->version);
		o += order <= 0;
		n += order >= 0;
	}
	return error;
}

static int note_weights(struct diff *diff)
{
	char old[METRIC_TEXT], new[METRIC_TEXT];

	if (diff->before->weights == diff->after->weights)
		return 0;
	metric_print(METRIC_MODELLED, range_of(diff->before->weights), old);
	metric_print(METRIC_MODELLED, range_of(diff->after->weights), new);
	return note(diff, "the weights are not the same: %s -> %s", old, new);
}

/* load_host_peak is of large blocks. */
static int note_uncounted(struct diff *diff)
{
	uint64_t grown = bytes_sub(diff->after->uncounted, diff->before->uncounted);
	char text[METRIC_TEXT];

	if (grown <= DIFF_ALLOWANCE)
		return 0;
	metric_print(METRIC_MODELLED, range_of(grown), text);
	return note(diff,
	            "by samples, %s more came with the load in memory that no metric counts (host blocks "
	            "below SPARKTRACE_HEAP_THRESHOLD)",
	            text);
}

int diff_notes(struct diff *diff)
{
	int error = note_measure(diff, diff->before);

	error = error ? error : note_measure(diff, diff->after);
	error = error ? error : note_circumstances(diff);
	error = error ? error : note_versions(diff);
	error = error ? error : note_weights(diff);
	return error ? error : note_uncounted(diff);
}
