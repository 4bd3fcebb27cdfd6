/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

#include <sparktrace/format.h>

#define TENSORS_SHOWN 20

const char *const rung_names[RUNG_COUNT] = {"1", "1b", "2", "3", "4"};
const char *const method_names[METHOD_COUNT] = {"unknown", "full", "lora", "qlora"};

/* Each writes the value of one option to `at` inside struct options; negative errno when it is wrong. */
typedef int option_parser(const char *text, void *at);

static int store_number(int error, uint64_t value, void *at)
{
	if (error || value == ST_UNKNOWN)
		return -EINVAL;
	*(uint64_t *)at = value;
	return 0;
}

static int parse_size(const char *text, void *at)
{
	uint64_t bytes = 0;
	int error = size_parse(text, &bytes);

	return store_number(error, bytes, at);
}

static int parse_count(const char *text, void *at)
{
	uint64_t count = 0;
	int error = count_parse(text, &count);

	return store_number(error, count, at);
}

static int parse_fraction(const char *text, void *at)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0) || value > 16)
		return -EINVAL;
	*(double *)at = value;
	return 0;
}

static int find_word(const char *const *words, size_t count, const char *text, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && !strncmp(words[i], text, length))
			return (int)i;
	return -EINVAL;
}

static int parse_tried(const char *text, void *at)
{
	uint64_t tried = 0;

	for (;;) {
		size_t length = strcspn(text, ",");
		int rung = find_word(rung_names, RUNG_COUNT, text, length);

		if (rung < 0)
			return rung;
		tried |= UINT64_C(1) << rung;
		if (!text[length])
			break;
		text += length + 1;
	}
	*(uint64_t *)at = tried;
	return 0;
}

static int parse_method(const char *text, void *at)
{
	int method = find_word(method_names, METHOD_COUNT, text, strlen(text));

	if (method <= METHOD_UNKNOWN)
		return -EINVAL;
	*(uint64_t *)at = (uint64_t)method;
	return 0;
}

/* Without a number: as many as fit on a screen. */
static int parse_tensors(const char *text, void *at)
{
	if (text)
		return parse_count(text, at);
	*(uint64_t *)at = TENSORS_SHOWN;
	return 0;
}

static int parse_when(const char *text, void *at)
{
	return when_parse(text, at);
}

static int parse_text(const char *text, void *at)
{
	*(const char **)at = text;
	return 0;
}

struct option_row {
	const char *name;
	const char *argument; /* NULL: a switch, bool at the offset; "[=N]": may be left out */
	option_parser *parse;
	size_t offset;
	const char *help;
};

#define AT(member) offsetof(struct options, member)

static const struct option_row rows[] = {
	{"json", NULL, NULL, AT(json), "print JSON instead of text"},
	{"budget", "SIZE", parse_size, AT(budget),
         "memory that the run may use; sets both budgets, nothing is taken off"},
	{"reserve", "SIZE", parse_size, AT(reserve), "memory to leave to the system (4GiB)"},
	{"band", "SIZE", parse_size, AT(band),
         "margin below the budget that still counts as tight"
         " (5 % of the budget, 2GiB at most)"},
	{"pool", "SIZE", parse_size, AT(pool), "judge the run as on a machine with this much memory"},
	{"uma", NULL, NULL, AT(uma), "judge it as on a machine whose CPU and GPU share the memory"},
	{"tried", "LIST", parse_tried, AT(tried), "rungs of the ladder already tried, such as 1,1b"},
	{"pack", "TOKENS", parse_count, AT(pack), "packing length of the run"},
	{"batch", "N", parse_count, AT(batch), "batch size of the run"},
	{"fixed-pack", NULL, NULL, AT(fixed_pack), "the packing length must stay: make the batch smaller"},
	{"optimizer-bytes", "SIZE", parse_size, AT(optimizer_bytes),
         "bytes of optimizer states and gradients; 0 is an answer"},
	{"method", "WORD", parse_method, AT(method), "full, lora or qlora"},
	{"parameters", "N", parse_count, AT(parameters), "parameters of the model"},
	{"linear-parameters", "N", parse_count, AT(linear_parameters), "of these in linear layers"},
	{"trainable-parameters", "N", parse_count, AT(trainable_parameters), "of these trained"},
	{"quantised-bytes", "X", parse_fraction, AT(quantised_bytes),
         "bytes of a quantised parameter (0.516 to 0.5625: NF4)"},
	{"files", NULL, NULL, AT(files), "show every weight file: its bytes, mappings, threads, advice"},
	{"tensors", "[=N]", parse_tensors, AT(tensors),
         "show N tensors, those most in the pool twice first (20)"},
	{"at", "TIME", parse_when, AT(at),
         "show the pool then: 12.5s, 14:03:07, peak, load-peak, settled, failure, end, ..."},
	{"ring", "FILE", parse_text, AT(ring), "read this ring too, for a program that was killed"},
	{"together", NULL, NULL, AT(together),
         "take whatever ran at the same time on one machine for one run"},
	{"help", NULL, NULL, AT(help), "this text"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int apply_option(const struct option_row *row, const char *text, struct options *options)
{
	void *at = (char *)options + row->offset;

	if (!row->argument) {
		*(bool *)at = true;
		return 0;
	}
	if (!row->parse(text, at))
		return 0;
	fprintf(stderr, "sparktrace-analyze: --%s: \"%s\" is not what it takes (%s); see --help\n", row->name,
	        text, row->argument);
	return -EINVAL;
}

/* Index in `rows` is what getopt returns. */
static void fill_long_options(struct option *ret_longs)
{
	memset(ret_longs, 0, (ROWS + 1) * sizeof(*ret_longs));
	for (size_t i = 0; i < ROWS; i++) {
		ret_longs[i].name = rows[i].name;
		ret_longs[i].has_arg = !rows[i].argument          ? no_argument
		                       : *rows[i].argument == '[' ? optional_argument
		                                                  : required_argument;
		ret_longs[i].val = (int)i;
	}
}

int options_parse(int argc, char **argv, struct options *ret_options, int *ret_first)
{
	struct options options = {
		.budget = ST_UNKNOWN,
		.reserve = ST_UNKNOWN,
		.band = ST_UNKNOWN,
		.pool = ST_UNKNOWN,
		.optimizer_bytes = ST_UNKNOWN,
		.pack = ST_UNKNOWN,
		.batch = ST_UNKNOWN,
		.parameters = ST_UNKNOWN,
		.linear_parameters = ST_UNKNOWN,
		.trainable_parameters = ST_UNKNOWN,
		.tensors = ST_UNKNOWN,
	};
	struct option longs[ROWS + 1];
	int index;

	fill_long_options(longs);
	optind = 0;
	while ((index = getopt_long(argc, argv, "", longs, NULL)) != -1)
		if (index == '?' || apply_option(&rows[index], optarg, &options))
			return -EINVAL;
	*ret_options = options;
	*ret_first = optind;
	return 0;
}

void options_print(FILE *out)
{
	for (size_t i = 0; i < ROWS; i++) {
		char name[40];

		snprintf(name, sizeof(name), "--%s%s%s", rows[i].name,
		         rows[i].argument && *rows[i].argument != '[' ? " " : "",
		         rows[i].argument ? rows[i].argument : "");
		fprintf(out, "  %-28s %s\n", name, rows[i].help);
	}
}
