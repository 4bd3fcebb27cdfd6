/* SPDX-License-Identifier: Apache-2.0 */
#include "option_table.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "units.h"

#include <sparktrace/format.h>

static int store_number(int error, uint64_t value, void *at)
{
	if (error || value == ST_UNKNOWN)
		return -EINVAL;
	*(uint64_t *)at = value;
	return 0;
}

int option_size(const char *text, void *at)
{
	uint64_t bytes = 0;
	int error = size_parse(text, &bytes);

	return store_number(error, bytes, at);
}

int option_count(const char *text, void *at)
{
	uint64_t count = 0;
	int error = count_parse(text, &count);

	return store_number(error, count, at);
}

int option_text(const char *text, void *at)
{
	*(const char **)at = text;
	return 0;
}

static int apply_option(const struct option_row *row, const char *text, void *options)
{
	void *at = (char *)options + row->offset;

	if (!row->argument) {
		*(bool *)at = true;
		return 0;
	}
	if (!row->parse(text, at))
		return 0;
	fprintf(stderr, "sparktrace-analyze: --%s: \"%s\" is not what it takes (%s%s); see --help\n",
	        row->name, text, row->argument,
	        strcmp(row->argument, "SIZE") ? "" : ", such as 1.5GiB or 100MB");
	return -EINVAL;
}

/* Index in the table is what getopt returns. */
static void fill_long_options(const struct option_table *table, struct option *ret_longs)
{
	memset(ret_longs, 0, (table->count + 1) * sizeof(*ret_longs));
	for (size_t i = 0; i < table->count; i++) {
		const struct option_row *row = &table->rows[i];

		ret_longs[i].name = row->name;
		ret_longs[i].has_arg = !row->argument          ? no_argument
		                       : *row->argument == '[' ? optional_argument
		                                               : required_argument;
		ret_longs[i].val = (int)i;
	}
}

int option_table_parse(const struct option_table *table, int argc, char **argv, void *options, int *ret_first)
{
	struct option longs[OPTION_ROWS_MAX + 1];
	int index;

	fill_long_options(table, longs);
	optind = 0;
	while ((index = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (index == '?')
			fputs("sparktrace-analyze: --help lists the options\n", stderr);
		if (index == '?' || apply_option(&table->rows[index], optarg, options))
			return -EINVAL;
	}
	*ret_first = optind;
	return 0;
}

void option_table_print(const struct option_table *table, FILE *out)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct option_row *row = &table->rows[i];
		char name[40];

		snprintf(name, sizeof(name), "--%s%s%s", row->name,
		         row->argument && *row->argument != '[' ? " " : "",
		         row->argument ? row->argument : "");
		fprintf(out, "  %-28s %s\n", name, row->help);
	}
}
