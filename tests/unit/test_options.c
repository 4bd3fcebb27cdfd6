/* SPDX-License-Identifier: Apache-2.0 */
/* Protects: what the command line means; a wrong value is an error, never a default or a zero. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/options.h"

#include <sparktrace/format.h>

#define GIB (UINT64_C(1) << 30)

static int parse(struct options *options, int *first, const char *const *words)
{
	char *argv[16] = {(char *)"report"};
	int argc = 1;

	while (*words)
		argv[argc++] = (char *)*words++;
	return options_parse(argc, argv, options, first);
}

#define PARSE(...) parse(&options, &first, (const char *const[]){__VA_ARGS__, NULL})

static void test_nothing_given(void **state)
{
	struct options options;
	int first;

	(void)state;
	assert_int_equal(PARSE("run.zst"), 0);
	assert_int_equal(first, 1);
	assert_false(options.json || options.uma || options.fixed_pack || options.help);
	assert_int_equal(options.budget, ST_UNKNOWN);
	assert_int_equal(options.optimizer_bytes, ST_UNKNOWN);
	assert_int_equal(options.pack, ST_UNKNOWN);
	assert_int_equal(options.tried, 0);
	assert_int_equal(options.method, METHOD_UNKNOWN);
	assert_null(options.ring);
}

static void test_everything_given(void **state)
{
	struct options options;
	int first;

	(void)state;
	assert_int_equal(PARSE("--json", "--budget", "1.25GiB", "--band=0", "--tried", "1,1b,4", "run.zst",
	                       "--method", "qlora", "--quantised-bytes", "0.5", "--fixed-pack"),
	                 0);
	assert_true(options.json && options.fixed_pack);
	assert_int_equal(options.budget, GIB + GIB / 4);
	assert_int_equal(options.band, 0);
	assert_int_equal(options.tried, 1u << RUNG_FLUSH | 1u << RUNG_LOAD | 1u << RUNG_SPARKS);
	assert_int_equal(options.method, METHOD_QLORA);
	assert_true(options.quantised_bytes == 0.5);
}

static void test_wrong_values(void **state)
{
	static const char *const wrong[][2] = {
		{"--budget", "much"},
		{"--budget", "-1"},
		{"--budget", ""},
		{"--budget", "18446744073709551615"},
		{"--tried", "5"},
		{"--tried", "1,"},
		{"--tried", ""},
		{"--method", "unknown"},
		{"--method", "adamw"},
		{"--pack", "12.5"},
		{"--pack", "-3"},
		{"--quantised-bytes", "0"},
		{"--quantised-bytes", "nan"},
		{"--unheard", "of"},
	};
	struct options options = {.budget = 7};
	int first = -1;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(PARSE(wrong[i][0], wrong[i][1]), -EINVAL);
	assert_int_equal(options.budget, 7);
	assert_int_equal(first, -1);
}

/* --help is made of the very table that is parsed. */
static void test_help_names_every_option(void **state)
{
	static const char *const names[] = {"--json",  "--budget", "--reserve",  "--band",
	                                    "--pool",  "--uma",    "--tried",    "--pack",
	                                    "--batch", "--method", "--ring FILE"};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	options_print(out);
	fclose(out);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(strstr(text, names[i]));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_given),
		cmocka_unit_test(test_everything_given),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_help_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
