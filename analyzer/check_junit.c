/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JUnit XML as Jenkins' schema has it (junit-10.xsd) and GitLab reads it: one test suite, a test case a line of the
 * result and one that says whether the runs are comparable at all.
 *
 * GitLab shows class name and name of a case, keeps only the first of those alike, and old versions of it the body of a
 * failure only: names are unique and the same in every run, and message and body say both what is wrong. There are no
 * times: how long a load took is no business of this check.
 */
#include <analyzer/check_words.h>
#include <string.h>

#define SUITE "sparktrace.load"

enum junit_outcome { PASSED, FAILURE, ERROR, SKIPPED, OUTCOMES };

static const char *const elements[] = {
	[FAILURE] = "failure",
	[ERROR] = "error",
	[SKIPPED] = "skipped",
};

static const enum junit_outcome outcomes[CHECK_STATES] = {
	[CHECK_SHOWN] = SKIPPED, [CHECK_OK] = PASSED,         [CHECK_IMPROVED] = PASSED,
	[CHECK_WARNED] = PASSED, [CHECK_CANNOT_TELL] = ERROR, [CHECK_OVER] = FAILURE,
};

static const char *const suffixes[] = {
	[AGAINST_NOTHING] = "",        [AGAINST_BASELINE] = "", [AGAINST_LIMIT] = ", limit",
	[AGAINST_BUDGET] = ", budget", [AGAINST_FIT] = "",
};

/* The case "comparable": an exit status that no line explains shows here. */
static enum junit_outcome comparable(const struct check_result *result)
{
	if (result->reason_count)
		return ERROR;
	for (size_t i = 0; i < result->line_count; i++)
		if (outcomes[result->lines[i].state] == ERROR || outcomes[result->lines[i].state] == FAILURE)
			return PASSED;
	return result->status ? ERROR : PASSED;
}

static void print_attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	escape_text(out, ESCAPE_XML, value);
	fputc('"', out);
}

/* How many lines before this one have its name: two limits of one metric. */
static unsigned alike(const struct check_result *result, size_t at)
{
	const struct check_line *lines = result->lines;
	unsigned count = 0;

	for (size_t i = 0; i < at; i++)
		count += lines[i].metric == lines[at].metric &&
		         !strcmp(suffixes[lines[i].against], suffixes[lines[at].against]);
	return count;
}

static void print_grown(FILE *out, const struct check_line *line)
{
	for (size_t i = 0; i < line->grown_count; i++) {
		fputc('\n', out);
		check_print_growth(out, ESCAPE_XML, &line->grown[i]);
	}
}

static void print_case(FILE *out, const struct check_result *result, size_t at)
{
	const struct check_line *line = &result->lines[at];
	enum junit_outcome outcome = outcomes[line->state];
	const char *element = outcome == PASSED ? "system-out" : elements[outcome];

	fprintf(out, "<testcase classname=\"" SUITE "\" name=\"%s%s", check_line_name(line),
	        suffixes[line->against]);
	if (alike(result, at))
		fprintf(out, " (%u)", alike(result, at) + 1);
	fprintf(out, "\">\n<%s", element);
	if (outcome != PASSED) {
		print_attribute(out, "type", check_state_names[line->state]);
		print_attribute(out, "message", line->sentence);
	}
	fputc('>', out);
	escape_text(out, ESCAPE_XML, line->sentence);
	print_grown(out, line);
	fprintf(out, "</%s>\n</testcase>\n", element);
}

static void print_sentences(FILE *out, char *const *sentences, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		escape_text(out, ESCAPE_XML, sentences[i]);
		fputc('\n', out);
	}
}

static void print_comparable(FILE *out, const struct check_result *result)
{
	fputs("<testcase classname=\"" SUITE "\" name=\"comparable\">\n", out);
	if (comparable(result) == ERROR) {
		fputs("<error type=\"not comparable\"", out);
		print_attribute(out, "message", result->reason_count ? result->reasons[0] : result->verdict);
		fputc('>', out);
		if (result->reason_count)
			print_sentences(out, result->reasons, result->reason_count);
		else
			escape_text(out, ESCAPE_XML, result->verdict);
		fputs("</error>\n", out);
	}
	fputs("</testcase>\n", out);
}

static void print_counts(FILE *out, const struct check_result *result, bool suite)
{
	size_t counts[OUTCOMES] = {0};

	counts[comparable(result)]++;
	for (size_t i = 0; i < result->line_count; i++)
		counts[outcomes[result->lines[i].state]]++;
	fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"", result->line_count + 1,
	        counts[FAILURE], counts[ERROR]);
	/* The schema has `skipped` of a suite only. */
	if (suite)
		fprintf(out, " skipped=\"%zu\"", counts[SKIPPED]);
}

static void print_property(FILE *out, const char *name, const char *value)
{
	fputs("<property", out);
	print_attribute(out, "name", name);
	print_attribute(out, "value", value);
	fputs("/>\n", out);
}

static void print_properties(FILE *out, const struct check_result *result)
{
	fputs("<properties>\n", out);
	if (result->baseline)
		print_property(out, "baseline", result->baseline);
	for (size_t i = 0; i < result->measures->count; i++)
		print_property(out, "trace", result->measures->runs[i].path);
	fputs("</properties>\n", out);
}

int check_write_junit(FILE *out, const struct check_result *result)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"sparktrace\"", out);
	print_counts(out, result, false);
	fputs(">\n<testsuite name=\"" SUITE "\"", out);
	print_counts(out, result, true);
	fputs(">\n", out);
	print_properties(out, result);
	print_comparable(out, result);
	for (size_t i = 0; i < result->line_count; i++)
		print_case(out, result, i);
	fputs("<system-out>", out);
	escape_text(out, ESCAPE_XML, result->verdict);
	fputc('\n', out);
	print_sentences(out, result->reasons, result->reason_count);
	print_sentences(out, result->notes, result->note_count);
	fputs("</system-out>\n</testsuite>\n</testsuites>\n", out);
	return check_stream_error(out);
}
