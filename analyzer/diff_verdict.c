/* SPDX-License-Identifier: Apache-2.0 */
/* What changed most, in one line. */
#include "breakdown_names.h"
#include "diff_parts.h"
#include "emit_back.h"
#include "measure_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_SAID 2

/*
 * Who is named first, the next group only where nothing of the one before changed: memory; sums of it, and what the whole
 * run had; address space and traffic.
 */
static const unsigned char groups[][6] = {
	{METRIC_DEVICE, METRIC_STAGING, METRIC_ANON, METRIC_HOST, DIFF_PEAKS},
	{METRIC_MODELLED, DIFF_RUN_DEVICE, DIFF_RUN_PINNED, DIFF_PEAKS},
	{METRIC_MAPPED, DIFF_PEAKS},
	{METRIC_READ, METRIC_FACTOR, DIFF_PEAKS},
};

static bool differs(const struct diff_row *row)
{
	return row->state == DIFF_GREW || row->state == DIFF_SHRANK;
}

/* Bytes that a row is known to have changed by. */
static uint64_t certain(const struct diff_row *row)
{
	return row->state == DIFF_GREW ? (uint64_t)row->change.lo : -(uint64_t)row->change.hi;
}

static const struct diff_row *find_most(const struct diff *diff)
{
	const struct diff_row *most = NULL;

	for (size_t g = 0; !most && g < sizeof(groups) / sizeof(groups[0]); g++) {
		for (size_t i = 0; groups[g][i] != DIFF_PEAKS; i++) {
			const struct diff_row *row = &diff->peaks[groups[g][i]];

			if (!differs(row))
				continue;
			if (!most || certain(row) > certain(most) ||
			    (certain(row) == certain(most) && row->state == DIFF_GREW &&
			     most->state == DIFF_SHRANK))
				most = row;
		}
	}
	return most;
}

/* What only samples tell of: the demand of the run, NULL: it is as it was. */
static const struct diff_row *find_sampled(const struct diff *diff)
{
	const struct diff_layers *peak = &diff->layers[DIFF_DEMAND_PEAK];

	for (size_t i = 0; i < peak->count; i++)
		if (!strcmp(peak->rows[i].key, "demand"))
			return differs(&peak->rows[i]) ? &peak->rows[i] : NULL;
	return NULL;
}

/* The frames of a stack that say most: the innermost ones. */
static size_t said_length(const struct growth *growth)
{
	return growth->kind == PART_STACK ? content_innermost(growth->name, FRAMES_SAID)
	                                  : strlen(growth->name);
}

static void say_part(FILE *out, const struct diff_row *row, const struct diff_part *part, size_t more)
{
	const struct growth *growth = part->growth;
	uint64_t share = part->state == DIFF_GREW ? (uint64_t)part->change.lo : -(uint64_t)part->change.hi;
	bool most = share >= certain(row) - certain(row) / 8;
	char *text;

	/* Many small tensors are their file; and an unknown stack says nothing. */
	if ((!most && growth->kind == PART_TENSOR) || *growth->name == '(')
		return;
	text = most ? NULL : diff_change_text(METRIC_BYTES, part->change);
	fprintf(out, "; %s %.*s", part_kind_names[growth->kind], (int)said_length(growth), growth->name);
	if (text)
		fprintf(out, " (%s)", text);
	if (!most && more)
		fprintf(out, " and %zu more", more);
	free(text);
}

/* Of each kind the part that changed most the same way. */
static void say_parts(FILE *out, const struct diff *diff, const struct diff_row *row)
{
	size_t which = (size_t)(row - diff->peaks), metric = which == DIFF_RUN_DEVICE ? METRIC_DEVICE : which;
	const struct diff_parts *parts = which == DIFF_RUN_DEVICE ? &diff->run : &diff->load;

	for (int kind = 0; kind < PART_KINDS; kind++) {
		const struct diff_part *first = NULL;
		size_t more = 0;

		for (size_t i = 0; i < parts->count; i++) {
			const struct diff_part *part = &parts->parts[i];

			if (part->growth->metric != metric || part->growth->kind != (enum part_kind)kind ||
			    part->state != row->state)
				continue;
			more += first != NULL;
			first = first ? first : part;
		}
		if (first)
			say_part(out, row, first, more);
	}
}

static void say_row(FILE *out, const struct diff_row *row)
{
	char *change = diff_change_text(row->unit, row->change);
	char *before = diff_value_text(row, row->before), *after = diff_value_text(row, row->after);

	if (change && before && after)
		fprintf(out, "%s %s: %s -> %s", change, row->title, before, after);
	free(change);
	free(before);
	free(after);
}

/* What nothing can be said of, and why, where that is known. */
static void say_unclear(FILE *out, const struct diff *diff)
{
	const char *lead = "; cannot tell of ";

	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct diff_row *row = &diff->peaks[i];

		if (i == METRIC_POOL || (row->state != DIFF_CANNOT_TELL && !row->gap))
			continue;
		fprintf(out, "%s%s", lead, row->title);
		lead = ", ";
	}
}

/* Of a peak that is the same within the noise, the part that changed most; NULL: none. */
static const struct diff_part *find_only_part(const struct diff *diff)
{
	const struct diff_parts *load = &diff->load;

	for (size_t i = 0; i < load->count; i++)
		if (diff->peaks[load->parts[i].growth->metric].state == DIFF_SAME)
			return &load->parts[i];
	return NULL;
}

/* No peak changed, but what it consists of. */
static void say_only_part(FILE *out, const struct diff_part *part)
{
	const struct growth *growth = part->growth;
	char *change = diff_change_text(METRIC_BYTES, part->change);
	const struct range values[] = {growth->before, growth->after};
	bool exact = values_look_alike(METRIC_MODELLED, values, 2);
	char before[METRIC_TEXT], after[METRIC_TEXT];

	fprintf(out, "%s %s %.*s: %s -> %s of %s, which is the same within the noise", change ? change : "",
	        part_kind_names[growth->kind], (int)said_length(growth), growth->name,
	        value_print(METRIC_MODELLED, growth->before, exact, before),
	        value_print(METRIC_MODELLED, growth->after, exact, after), metric_rows[growth->metric].name);
	free(change);
}

static void say_nothing(FILE *out, const struct diff *diff)
{
	const struct diff_row *sampled = find_sampled(diff);
	const struct measure *bad = diff->after->unusable ? diff->after : diff->before;

	if (bad->unusable) {
		fputs("cannot tell: ", out);
		emit_clean(out, bad->path, "\\");
		fputs(": ", out);
		emit_clean(out, bad->unusable, "\\");
		return;
	}
	if (sampled) {
		say_row(out, sampled);
		fputs(", by samples; no exact number changed above the noise", out);
	} else {
		fputs("nothing changed above the noise", out);
	}
	say_unclear(out, diff);
}

int diff_verdict(struct diff *diff)
{
	const struct diff_row *most = find_most(diff);
	const struct diff_part *part = find_only_part(diff);
	size_t size;
	FILE *out = open_memstream(&diff->verdict, &size);

	if (!out)
		return -ENOMEM;
	if (most) {
		say_row(out, most);
		say_parts(out, diff, most);
	} else if (part) {
		say_only_part(out, part);
	} else {
		say_nothing(out, diff);
	}
	return fclose(out) ? -ENOMEM : 0;
}
