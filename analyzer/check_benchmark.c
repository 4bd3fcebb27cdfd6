/* SPDX-License-Identifier: Apache-2.0 */
/*
 * customSmallerIsBetter of github-action-benchmark: an array of {name, unit, value, range, extra}. It has one number a
 * benchmark: of an interval that is its middle, and `range`, in the form that the action reads ("± 5"), how far either
 * end is from it. Nothing is written of what is not known, or was not measured properly: a chart cannot tell 0 from that.
 */
#include <analyzer/check_words.h>
#include <inttypes.h>

/* Every run measured it, and nothing speaks against comparing it. */
static bool is_sound(const struct check_result *result, const struct check_line *line)
{
	const struct measures *measures = result->measures;

	if (line->metric == METRIC_COUNT || range_is_open(line->value))
		return false;
	for (size_t i = 0; i < measures->count; i++)
		if (measures->runs[i].unusable || measures->runs[i].gaps[line->metric])
			return false;
	return true;
}

/* A metric that is judged twice, by baseline and limit, is one benchmark. */
static bool is_first(const struct check_result *result, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (result->lines[i].metric == result->lines[at].metric)
			return false;
	return true;
}

static void print_number(FILE *out, enum metric metric, uint64_t value)
{
	if (metric_rows[metric].unit == METRIC_RATIO)
		fprintf(out, "%" PRIu64 ".%04" PRIu64, value / METRIC_RATIO_ONE, value % METRIC_RATIO_ONE);
	else
		fprintf(out, "%" PRIu64, value);
}

static void print_versions(FILE *out, const struct measure *run)
{
	for (size_t i = 0; i < run->version_count; i++) {
		fputs("\\n", out);
		escape_text(out, ESCAPE_JSON, run->versions[i].name);
		fputc(' ', out);
		escape_text(out, ESCAPE_JSON, run->versions[i].version);
	}
}

static void print_entry(FILE *out, const struct check_result *result, const struct check_line *line)
{
	struct range all =
		check_has_spread(result, line) ? range_hull(line->value, line->spread) : line->value;
	uint64_t middle = line->value.lo + (line->value.hi - line->value.lo) / 2;
	uint64_t off = bytes_max(middle - all.lo, all.hi - middle);
	char text[METRIC_TEXT];

	fprintf(out, "{\"name\": \"%s\", \"unit\": \"%s\", \"value\": ", check_line_name(line),
	        metric_rows[line->metric].unit == METRIC_RATIO ? "ratio" : "bytes");
	print_number(out, line->metric, middle);
	if (off) {
		fputs(", \"range\": \"\xc2\xb1 ", out);
		print_number(out, line->metric, off);
		fputc('"', out);
	}
	fputs(", \"extra\": \"", out);
	escape_text(out, ESCAPE_JSON, check_value_text(line, line->value, text));
	if (result->measures->count)
		print_versions(out, &result->measures->runs[0]);
	fputs("\"}", out);
}

int check_write_benchmark(FILE *out, const struct check_result *result)
{
	const char *before = "\n";

	fputc('[', out);
	for (size_t i = 0; i < result->line_count; i++) {
		if (!is_sound(result, &result->lines[i]) || !is_first(result, i))
			continue;
		fputs(before, out);
		print_entry(out, result, &result->lines[i]);
		before = ",\n";
	}
	fputs("\n]\n", out);
	return check_stream_error(out);
}
