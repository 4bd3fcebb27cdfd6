/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/check_command.h>
#include <analyzer/option_table.h>
#include <analyzer/units.h>
#include <errno.h>
#include <math.h>
#include <sparktrace/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* These take the whole struct (offset 0): what was typed is said back. */
static int parse_budget(const char *text, void *at)
{
	struct check_options *options = at;

	options->budget_given = text;
	return option_size(text, &options->budget);
}

static int parse_fit(const char *text, void *at)
{
	struct check_options *options = at;

	options->fit_given = text;
	return option_size(text, &options->fit);
}

static int parse_ratio(const char *text, uint64_t *ret_ratio)
{
	char *end;
	double ratio = strtod(text, &end);

	if (end == text || *end || !(ratio >= 0 && ratio <= 1e9))
		return -EINVAL;
	*ret_ratio = (uint64_t)llround(ratio * METRIC_RATIO_ONE);
	return 0;
}

static int complain(const char *name, size_t length, const char *words)
{
	fprintf(stderr, "sparktrace-analyze: --metric: \"%.*s\" %s\n", (int)length, name, words);
	return -EINVAL;
}

/* "load_host_peak=100MiB" */
static int parse_metric(const char *text, void *at)
{
	struct check_options *options = at;
	size_t length = strcspn(text, "=");
	char *name = strndup(text, length);
	struct check_limit limit = {.metric = name ? metric_find(name) : METRIC_COUNT};
	bool ratio;
	int error;

	free(name);
	if (limit.metric == METRIC_COUNT)
		return complain(text, length, "is no metric; --help lists them");
	for (size_t i = 0; i < options->limit_count; i++)
		if (options->limits[i].metric == limit.metric)
			return complain(text, length, "has a limit already");
	limit.given = text[length] ? text + length + 1 : "";
	ratio = metric_rows[limit.metric].unit == METRIC_RATIO;
	error = ratio ? parse_ratio(limit.given, &limit.limit) : option_size(limit.given, &limit.limit);
	if (error)
		return complain(text, length,
		                ratio ? "needs a number, such as =1.1" : "needs a size, such as =1.5GiB");
	options->limits[options->limit_count++] = limit;
	return 0;
}

#define AT(member) offsetof(struct check_options, member)

static const struct option_row rows[] = {
	{"baseline", "FILE", option_text, AT(baseline),
         "compare with this: a file that --update wrote, or the trace of an earlier run"},
	{"update", NULL, NULL, AT(update), "write the baseline from these runs instead"},
	{"budget", "SIZE", parse_budget, 0, "load_modelled_peak may be this at most"},
	{"fit", "SIZE", parse_fit, 0, "the run must fit on a machine with one pool of this size"},
	{"metric", "NAME=LIMIT", parse_metric, 0, "this metric may be this at most; once for each metric"},
	{"json", NULL, NULL, AT(json), "print JSON instead of text"},
	{"junit", "FILE", option_text, AT(junit), "write the result as JUnit XML too"},
	{"benchmark", "FILE", option_text, AT(benchmark),
         "write the values for github-action-benchmark (customSmallerIsBetter)"},
	{"help", NULL, NULL, AT(help), "this text"},
};

static const struct option_table table = {rows, sizeof(rows) / sizeof(rows[0])};

int check_options_parse(int argc, char **argv, struct check_options *ret_options, int *ret_first)
{
	struct check_options options = {.budget = ST_UNKNOWN, .fit = ST_UNKNOWN};
	int error = option_table_parse(&table, argc, argv, &options, ret_first);

	if (!error)
		*ret_options = options;
	return error;
}

/* The next of several tolerances, of which the largest counts. */
static void print_next(FILE *out, bool *first, const char *text)
{
	fprintf(out, "%s%s", *first ? "" : ", ", text);
	*first = false;
}

/* By how much a metric may be above the baseline. */
static void print_tolerance(const struct metric_row *row, FILE *out)
{
	bool several = row->share > 0 || row->by_thread || row->is_sum, first = true;
	char text[UNITS_TEXT];

	fputs(several ? "max(" : "", out);
	if (row->share > 0) {
		snprintf(text, sizeof(text), "%g %%", row->share * 100);
		print_next(out, &first, text);
	}
	if (row->unit == METRIC_RATIO) {
		snprintf(text, sizeof(text), "%g", (double)row->least / METRIC_RATIO_ONE);
		print_next(out, &first, text);
	} else if (row->least) {
		print_next(out, &first, size_print(row->least, text));
	}
	if (row->by_mapping)
		print_next(out, &first, "a page for each mapping");
	if (row->by_thread)
		print_next(out, &first, "loader threads x largest tensor");
	if (row->is_sum)
		print_next(out, &first, "what several threads may stage or copy");
	fputs(several ? ")" : "", out);
	if (row->by_thread)
		fputs("; only warns where load_modelled_peak fell", out);
	if (row->warn > 0)
		fprintf(out, "; warns above %g %%", row->warn * 100);
}

static void print_metrics(FILE *out)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *row = &metric_rows[i];

		fprintf(out, "  %-26s %s\n  %-26s   may grow by ", row->name, row->help, "");
		print_tolerance(row, out);
		fputc('\n', out);
	}
}

void check_options_print(FILE *out)
{
	fputs("usage: sparktrace-analyze check [--baseline FILE] [--update] [--budget SIZE] [--fit SIZE]\n"
	      "                                [--metric NAME=LIMIT]... run.zst...\n"
	      "\n"
	      "Fails when loading a model needs more memory than it did (--baseline), or than it may.\n"
	      "Traces of one run (its processes) are one run; of several runs the largest value of a metric "
	      "counts.\n"
	      "\n",
	      out);
	option_table_print(&table, out);
	fputs("\nMetrics, each a maximum over the load, and by how much they may be above the baseline:\n\n",
	      out);
	print_metrics(out);
	fputs("\n"
	      "Exit status: 0 within the limits, or better; 1 above one; 2 usage, or a file that cannot be "
	      "read;\n"
	      "3 cannot tell: something is missing in a trace, or the runs are not comparable.\n"
	      "On GitHub (GITHUB_ACTIONS=true) it writes annotations and a job summary as well.\n",
	      out);
}
