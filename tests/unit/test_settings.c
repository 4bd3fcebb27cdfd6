/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the reading of SPARKTRACE_*: every default is itself a right value, wrong ones leave the default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "preload/shim/settings.h"

#define ROOM 64

static struct settings settings;
static char text[ROOM][SETTING_TEXT];
static const char *wrong[ROOM];

static size_t parse(const char *variable)
{
	char *variables[] = {(char *)"HOME=/root", (char *)variable, NULL};

	return settings_parse(variables, &settings, text, wrong);
}

static void defaults_hold_without_variables(void **state)
{
	(void)state;
	assert_int_equal(settings_parse(NULL, &settings, text, NULL), 0);
	assert_int_equal(settings.record, 1);
	assert_string_equal(settings.output, "run.zst");
	assert_string_equal(settings.ring_dir, "");
	assert_int_equal(settings.heap_threshold, 1 << 20);
	assert_int_equal(settings.unwind, UNWIND_AUTO);
}

/* A default that is wrong itself would silently be 0. */
static void every_default_is_right_when_given(void **state)
{
	struct settings standard;

	(void)state;
	settings_parse(NULL, &standard, text, NULL);
#define SETTING(id, name, kind, value, help)        \
	assert_int_equal(parse(name "=" value), 0); \
	assert_memory_equal(&settings.id, &standard.id, sizeof(settings.id));
#include "preload/settings.def"
#undef SETTING
}

static void sizes_are_written_as_people_do(void **state)
{
	static const struct {
		const char *value;
		uint64_t bytes;
	} rows[] = {
		{"4096", 4096},       {"64KiB", 65536},        {"2M", 2u << 20},
		{"1.5GiB", 3u << 29}, {"0.25MiB", 256u << 10}, {"0", 0},
	};
	char variable[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		strcpy(variable, "SPARKTRACE_RING_SIZE=");
		strcat(variable, rows[i].value);
		assert_int_equal(parse(variable), 0);
		assert_int_equal(settings.ring_size, rows[i].bytes);
	}
}

static void wrong_values_are_named_and_change_nothing(void **state)
{
	static const char *const rows[] = {
		"SPARKTRACE_RING_SIZE=",
		"SPARKTRACE_RING_SIZE=-1",
		"SPARKTRACE_RING_SIZE=1.GiB",
		"SPARKTRACE_RING_SIZE=4 MiB",
		"SPARKTRACE_RING_SIZE=99999999999999999999",
		"SPARKTRACE_RING_SIZE=20000000000GiB",
		"SPARKTRACE_RING_SIZE=1e6",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(rows[i]), 1);
		assert_string_equal(wrong[0], "SPARKTRACE_RING_SIZE");
		assert_int_equal(settings.ring_size, 2u << 20);
	}
	assert_int_equal(parse("SPARKTRACE=maybe"), 1);
	assert_int_equal(settings.record, 1);
	assert_int_equal(parse("SPARKTRACE_SAMPLE_REST=0"), 1);
	assert_int_equal(parse("SPARKTRACE_STACK_DEPTH=12x"), 1);
	assert_int_equal(settings.stack_depth, 48);
}

static void words_and_paths_are_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("SPARKTRACE=off"), 0);
	assert_int_equal(settings.record, 0);
	assert_int_equal(parse("SPARKTRACE_UNWIND=frame"), 0);
	assert_int_equal(settings.unwind, UNWIND_FRAME);
	assert_int_equal(parse("SPARKTRACE_OUTPUT=/tmp/%p.zst"), 0);
	assert_string_equal(settings.output, "/tmp/%p.zst");
	assert_int_equal(parse("SPARKTRACE_OUTPUT=a\nb"), 1); /* would be two lines of the ring's head */
	assert_string_equal(settings.output, "run.zst");
}

static void a_longer_name_is_another_variable(void **state)
{
	(void)state;
	assert_int_equal(parse("SPARKTRACE_QUIETLY=1"), 0);
	assert_int_equal(settings.quiet, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_hold_without_variables),
		cmocka_unit_test(every_default_is_right_when_given),
		cmocka_unit_test(sizes_are_written_as_people_do),
		cmocka_unit_test(wrong_values_are_named_and_change_nothing),
		cmocka_unit_test(words_and_paths_are_taken),
		cmocka_unit_test(a_longer_name_is_another_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
