/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/breakdown_names.h>
#include <analyzer/check_words.h>
#include <analyzer/measure_words.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *check_line_name(const struct check_line *line)
{
	return line->metric < METRIC_COUNT ? metric_rows[line->metric].name : "fit";
}

/* What a machine must have to fit a run is bytes, as modelled peaks are. Of what is well nobody asks for the last page. */
char *check_value_text(const struct check_line *line, struct range value, char text[METRIC_TEXT])
{
	const struct range values[] = {line->value, line->before, range_of(line->limit)};
	enum metric metric = line->metric < METRIC_COUNT ? line->metric : METRIC_MODELLED;

	return value_print(metric, value, line->state != CHECK_OK && values_look_alike(metric, values, 3),
	                   text);
}

bool check_has_spread(const struct check_result *result, const struct check_line *line)
{
	return result->measures && result->measures->count > 1 && !range_is_open(line->spread);
}

static bool is_same(const struct growth *a, const struct growth *b)
{
	return a->kind == b->kind && !strcmp(a->name, b->name) && a->before.lo == b->before.lo &&
	       a->before.hi == b->before.hi && a->after.lo == b->after.lo && a->after.hi == b->after.hi;
}

static bool grown_alike(const struct check_line *a, const struct check_line *b)
{
	for (size_t i = 0; i < a->grown_count; i++)
		if (a->grown_count != b->grown_count || !is_same(&a->grown[i], &b->grown[i]))
			return false;
	return true;
}

bool check_grown_is_new(const struct check_result *result, size_t at)
{
	const struct check_line *line = &result->lines[at];

	if (!line->grown_count)
		return false;
	for (size_t i = 0; i < at; i++)
		if (grown_alike(line, &result->lines[i]))
			return false;
	return true;
}

/* Parts are bytes, also those of a ratio. */
static void print_bytes(FILE *out, enum escape how, struct range bytes, bool exact)
{
	char text[METRIC_TEXT];

	escape_text(out, how, value_print(METRIC_MODELLED, bytes, exact, text));
}

/* Of a stack with a detail, which names its frames, the innermost one: so that both stay in what a line may be long. */
static void print_name(FILE *out, enum escape how, const struct growth *growth)
{
	bool brief = growth->kind == PART_STACK && growth->detail;
	char *name = brief ? strndup(growth->name, content_innermost(growth->name, 1)) : NULL;

	escape_text(out, how, name ? name : growth->name);
	free(name);
}

void check_print_growth(FILE *out, enum escape how, const struct growth *growth)
{
	const struct range values[] = {growth->before, growth->after};
	bool exact = values_look_alike(METRIC_MODELLED, values, 2);

	fprintf(out, "%s ", part_kind_names[growth->kind]);
	print_name(out, how, growth);
	fputs(": ", out);
	if (growth->before.lo || !range_is_open(growth->before)) {
		print_bytes(out, how, growth->before, exact);
		escape_text(out, how, " -> ");
	}
	print_bytes(out, how, growth->after, exact);
	if (growth->detail) {
		fputs(" (", out);
		escape_text(out, how, growth->detail);
		fputc(')', out);
	}
}

int check_stream_error(FILE *out)
{
	return ferror(out) ? -EIO : 0;
}
