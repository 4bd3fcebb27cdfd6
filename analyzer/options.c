/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "option_table.h"

#include <sparktrace/format.h>

#define TENSORS_SHOWN 20

const char *const rung_names[RUNG_COUNT] = {"1", "1b", "2", "3", "4"};
const char *const method_names[METHOD_COUNT] = {"unknown", "full", "lora", "qlora"};

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
		return option_count(text, at);
	*(uint64_t *)at = TENSORS_SHOWN;
	return 0;
}

static int parse_when(const char *text, void *at)
{
	return when_parse(text, at);
}

#define AT(member) offsetof(struct options, member)

static const struct option_row rows[] = {
	{"json", NULL, NULL, AT(json), "print JSON instead of text"},
	{"budget", "SIZE", option_size, AT(budget),
         "memory that the run may use; sets both budgets, nothing is taken off"},
	{"reserve", "SIZE", option_size, AT(reserve), "memory to leave to the system (4GiB)"},
	{"band", "SIZE", option_size, AT(band),
         "margin below the budget that still counts as tight"
         " (5 % of the budget, 2GiB at most)"},
	{"pool", "SIZE", option_size, AT(pool), "judge the run as on a machine with this much memory"},
	{"uma", NULL, NULL, AT(uma), "judge it as on a machine whose CPU and GPU share the memory"},
	{"tried", "LIST", parse_tried, AT(tried), "rungs of the ladder already tried, such as 1,1b"},
	{"pack", "TOKENS", option_count, AT(pack), "packing length of the run"},
	{"batch", "N", option_count, AT(batch), "batch size of the run"},
	{"fixed-pack", NULL, NULL, AT(fixed_pack), "the packing length must stay: make the batch smaller"},
	{"optimizer-bytes", "SIZE", option_size, AT(optimizer_bytes),
         "bytes of optimizer states and gradients; 0 is an answer"},
	{"method", "WORD", parse_method, AT(method), "full, lora or qlora"},
	{"parameters", "N", option_count, AT(parameters), "parameters of the model"},
	{"linear-parameters", "N", option_count, AT(linear_parameters), "of these in linear layers"},
	{"trainable-parameters", "N", option_count, AT(trainable_parameters), "of these trained"},
	{"quantised-bytes", "X", parse_fraction, AT(quantised_bytes),
         "bytes of a quantised parameter (0.516 to 0.5625: NF4)"},
	{"files", NULL, NULL, AT(files), "show every weight file: its bytes, mappings, threads, advice"},
	{"tensors", "[=N]", parse_tensors, AT(tensors),
         "show N tensors, those most in the pool twice first (20)"},
	{"at", "TIME", parse_when, AT(at),
         "show the pool then: 12.5s, 14:03:07, peak, load-peak, settled, failure, end, ..."},
	{"ring", "FILE", option_text, AT(ring), "read this ring too, for a program that was killed"},
	{"together", NULL, NULL, AT(together),
         "take whatever ran at the same time on one machine for one run"},
	{"help", NULL, NULL, AT(help), "this text"},
};

static const struct option_table table = {rows, sizeof(rows) / sizeof(rows[0])};

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
	int error = option_table_parse(&table, argc, argv, &options, ret_first);

	if (!error)
		*ret_options = options;
	return error;
}

void options_print(FILE *out)
{
	option_table_print(&table, out);
}
