/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects: what CI systems read of a result. Names from a trace never become markup there; what failed is red in every
 * form, what is unknown is in none of them as a number. tests/run/check_outputs.sh reads the same forms with the
 * consumers' own parsers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <jansson.h>

#include "check_scene.h"

static void assert_escaped(enum escape how, const char *text, const char *expected)
{
	char *seen = NULL;
	size_t size;
	FILE *out = open_memstream(&seen, &size);

	escape_text(out, how, text);
	fclose(out);
	assert_string_equal(seen, expected);
	free(seen);
}

static void test_escapes(void **state)
{
	(void)state;
	assert_escaped(ESCAPE_LOG,
	               "a\n\xff\xef\xbf\xbf"
	               "b\xc3\xa9",
	               "a\\x0a\\xff\\xef\\xbf\\xbf"
	               "b\xc3\xa9");
	assert_escaped(ESCAPE_XML, "]]><a b=\"c\">&amp;\x01",
	               "]]&gt;&lt;a b=&quot;c&quot;&gt;&amp;amp;\\x01");
	assert_escaped(ESCAPE_MESSAGE, "50%, a:b\r\n", "50%25, a:b\\x0d\\x0a");
	assert_escaped(ESCAPE_PROPERTY, "50%, a:b", "50%25%2C a%3Ab");
	assert_escaped(ESCAPE_JSON, "a\"b\\c\n", "a\\\"b\\\\c\\\\x0a");
	assert_escaped(ESCAPE_MARKDOWN, "|`*[x]<b>\\\n", "&#124;&#96;&#42;&#91;x&#93;&lt;b&gt;&#92;&#92;x0a");
	/* What people read in the raw file too. */
	assert_escaped(ESCAPE_MARKDOWN, "load_host_peak: 1.5 GiB", "load_host_peak: 1.5 GiB");
	assert_escaped(ESCAPE_MARKDOWN, "_a_ http://b", "&#95;a&#95; http&#58;//b");
}

/* A text that is cut is cut between characters. */
static void test_long_texts_are_cut(void **state)
{
	char text[3 * ESCAPE_MAX + 1] = "", *seen = NULL;
	size_t size;
	FILE *out = open_memstream(&seen, &size);

	(void)state;
	for (size_t i = 0; i < ESCAPE_MAX; i++)
		strcat(text, "\xe2\x82\xac");
	escape_text(out, ESCAPE_XML, text);
	fclose(out);
	assert_true(size < ESCAPE_MAX + 8);
	assert_string_equal(seen + size - 6, "\xe2\x82\xac...");
	free(seen);
}

static void test_junit_states(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	for (int i = 0; i < CHECK_STATES; i++)
		scene_line(&s, (enum metric)i, (enum check_state)i);
	s.result.status = COMMAND_OVER;
	text = written(check_write_junit, &s);
	/* "comparable" is the seventh case, and passes: a line says why the status is what it is. */
	assert_has(
		text,
		"<testsuite name=\"sparktrace.load\" tests=\"7\" failures=\"1\" errors=\"1\" skipped=\"1\">");
	assert_int_equal(count_of(text, "<testcase "), 7);
	assert_int_equal(count_of(text, "<failure type=\"over\" message=\"a sentence\">a sentence</failure>"),
	                 1);
	assert_int_equal(count_of(text, "<error type=\"cannot tell\""), 1);
	assert_int_equal(count_of(text, "<skipped type=\"shown\""), 1);
	free(text);
}

/* GitLab keeps the first of cases with one name: a limit that is broken must not hide behind a baseline that is kept. */
static void test_junit_names_are_unique(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	scene_line(&s, METRIC_DEVICE, CHECK_OK);
	for (int i = 0; i < 2; i++)
		scene_line(&s, METRIC_DEVICE, CHECK_OVER)->against = AGAINST_LIMIT;
	scene_line(&s, METRIC_MODELLED, CHECK_OK)->against = AGAINST_BUDGET;
	scene_line(&s, METRIC_COUNT, CHECK_OK)->against = AGAINST_FIT;
	text = written(check_write_junit, &s);
	assert_int_equal(count_of(text, "name=\"load_device_peak\""), 1);
	assert_int_equal(count_of(text, "name=\"load_device_peak, limit\""), 1);
	assert_int_equal(count_of(text, "name=\"load_device_peak, limit (2)\""), 1);
	assert_int_equal(count_of(text, "name=\"load_modelled_peak, budget\""), 1);
	assert_int_equal(count_of(text, "name=\"fit\""), 1);
	free(text);
}

/* Exit status 3 is never green, even where no line has a word to say. */
static void test_junit_not_comparable_is_red(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	s.result.status = COMMAND_CANNOT_TELL;
	text = written(check_write_junit, &s);
	assert_has(text, "tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\"");
	assert_has(text, "message=\"the verdict\"");
	free(text);
	s.reasons[s.result.reason_count++] = (char *)"page size is 64 KiB, the baseline's 4 KiB";
	text = written(check_write_junit, &s);
	assert_has(text,
	           "<error type=\"not comparable\" message=\"page size is 64 KiB, the baseline's 4 KiB\">");
	free(text);
}

/* No byte of a hostile text is there as it was, in a place where it would mean something. */
static void test_hostile_names(void **state)
{
	result_writer *const writers[] = {check_write_junit, check_write_summary, check_write_annotations};
	struct scene s;

	(void)state;
	scene_hostile(&s);
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		char *text = written(writers[i], &s);

		assert_null(strchr(text, 0x1b));
		assert_null(strchr(text, 0xff));
		assert_null(strstr(text, "\n::error::e"));
		assert_null(strstr(text, "\xef\xbf\xbf"));
		if (writers[i] != check_write_annotations) {
			assert_null(strstr(text, "]]>"));
			assert_null(strstr(text, "<c>"));
		}
		free(text);
	}
}

/* However much there is to say, GitHub would refuse more than a MiB. */
static void test_summary_is_small(void **state)
{
	static char longest[1 << 16];
	struct scene s;
	char *text;

	(void)state;
	memset(longest, '|', sizeof(longest) - 1);
	scene_begin(&s);
	s.result.verdict = longest;
	for (int i = 0; i < 16; i++) {
		struct check_line *line = scene_line(&s, METRIC_DEVICE, CHECK_OVER);

		line->given = line->sentence = longest;
		for (; line->grown_count < CHECK_GROWN; line->grown_count++)
			line->grown[line->grown_count] =
				(struct growth){.name = longest, .detail = longest, .after = {1, 1}};
	}
	for (; s.result.reason_count < 64; s.result.reason_count++)
		s.reasons[s.result.reason_count] = longest;
	text = written(check_write_summary, &s);
	assert_true(strlen(text) < OUTPUT_SUMMARY_MAX / 2);
	assert_has(text, "<li>and 44 more in the log</li>");
	free(text);
}

static void test_summary_says_the_result(void **state)
{
	struct scene s;
	struct check_line *line;
	char *text;

	(void)state;
	scene_begin(&s);
	s.result.status = COMMAND_OVER;
	line = scene_line(&s, METRIC_ANON, CHECK_OVER);
	line->before = range_of(0);
	line->grown[line->grown_count++] =
		(struct growth){.name = (char *)"a.safetensors", .after = {GIB, GIB}};
	line = scene_line(&s, METRIC_FACTOR, CHECK_OK);
	line->against = AGAINST_LIMIT;
	line->value = (struct range){10000, 15000};
	line->limit = 20000;
	line->given = "2.0";
	text = written(check_write_summary, &s);
	assert_has(text, "the verdict\n\n| metric |");
	assert_has(text, "| `load_anonymous_copy_peak` | 1.00 GiB | 0 bytes | 65.0 MiB | over |  | \n");
	assert_has(text, "| `load_factor` | 1.0000 to 1.5000 |  | 2.0000 (2.0) | ok |  | \n");
	assert_has(text, "\n- `load_anonymous_copy_peak`, file a.safetensors: 0 bytes -&gt; 1.00 GiB\n");
	free(text);
}

/* A broken limit without a baseline: nothing has grown, but what there is can be said. */
static void test_summary_without_a_baseline(void **state)
{
	struct scene s;
	struct check_line *line;
	char *text;

	(void)state;
	scene_begin(&s);
	s.result.status = COMMAND_OVER;
	line = scene_line(&s, METRIC_ANON, CHECK_OVER);
	line->against = AGAINST_LIMIT;
	line->grown[line->grown_count++] = (struct growth){
		.name = (char *)"a.safetensors",
		.before = RANGE_UNKNOWN,
		.after = {GIB, GIB},
	};
	text = written(check_write_summary, &s);
	assert_has(text,
	           "\nWhat it consists of:\n\n- `load_anonymous_copy_peak`, file a.safetensors: 1.00 GiB\n");
	free(text);
}

static json_t *benchmark_of(const struct scene *s)
{
	char *text = written(check_write_benchmark, s);
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);

	if (!root)
		print_error("%s\n%s\n", error.text, text);
	assert_non_null(root);
	free(text);
	return root;
}

static const char *word_of(const json_t *entry, const char *key)
{
	return json_string_value(json_object_get(entry, key));
}

static void test_benchmark_numbers(void **state)
{
	struct measure_version version = {.name = (char *)"a\"b", .version = (char *)"1\n2"};
	struct scene s;
	json_t *root;

	(void)state;
	scene_begin(&s);
	s.run.versions = &version;
	s.run.version_count = 1;
	scene_line(&s, METRIC_DEVICE, CHECK_OK);
	scene_line(&s, METRIC_FACTOR, CHECK_OK)->value = range_of(20012);
	scene_line(&s, METRIC_ANON, CHECK_CANNOT_TELL)->value = (struct range){MIB, 3 * MIB};
	scene_line(&s, METRIC_DEVICE, CHECK_OVER)->against = AGAINST_LIMIT;
	root = benchmark_of(&s);
	assert_int_equal(json_array_size(root), 3);
	assert_string_equal(word_of(json_array_get(root, 0), "name"), "load_device_peak");
	assert_string_equal(word_of(json_array_get(root, 0), "unit"), "bytes");
	assert_string_equal(word_of(json_array_get(root, 0), "extra"), "1.00 GiB\na\"b 1\\x0a2");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(root, 0), "value")), GIB);
	assert_null(word_of(json_array_get(root, 0), "range"));
	assert_true(json_real_value(json_object_get(json_array_get(root, 1), "value")) == 2.0012);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(root, 2), "value")), 2 * MIB);
	assert_string_equal(word_of(json_array_get(root, 2), "range"), "\xc2\xb1 1048576");
	json_decref(root);
}

/* What is not known is no point of a curve. */
static void test_benchmark_leaves_the_unknown_out(void **state)
{
	struct scene s;
	json_t *root;

	(void)state;
	scene_begin(&s);
	scene_line(&s, METRIC_DEVICE, CHECK_CANNOT_TELL)->value = RANGE_UNKNOWN;
	scene_line(&s, METRIC_HOST, CHECK_CANNOT_TELL)->value = (struct range){GIB, UINT64_MAX};
	scene_line(&s, METRIC_STAGING, CHECK_CANNOT_TELL);
	s.run.gaps[METRIC_STAGING] = (char *)"io_uring is not seen";
	scene_line(&s, METRIC_COUNT, CHECK_OK)->against = AGAINST_FIT;
	scene_line(&s, METRIC_ANON, CHECK_OK)->value = range_of(0);
	root = benchmark_of(&s);
	assert_int_equal(json_array_size(root), 1);
	assert_string_equal(word_of(json_array_get(root, 0), "name"), "load_anonymous_copy_peak");
	json_decref(root);
	s.run.unusable = (char *)"events were lost";
	root = benchmark_of(&s);
	assert_int_equal(json_array_size(root), 0);
	json_decref(root);
}

/* Several runs: how far they are apart. */
static void test_benchmark_spread(void **state)
{
	struct scene s;
	struct measure runs[3];
	json_t *root;

	(void)state;
	scene_begin(&s);
	for (int i = 0; i < 3; i++)
		runs[i] = s.run;
	s.measures = (struct measures){.runs = runs, .count = 3};
	scene_line(&s, METRIC_POOL, CHECK_OK)->spread = (struct range){GIB, GIB + 40};
	root = benchmark_of(&s);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(root, 0), "value")), GIB);
	assert_string_equal(word_of(json_array_get(root, 0), "range"), "\xc2\xb1 40");
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_junit_states),
		cmocka_unit_test(test_junit_names_are_unique),
		cmocka_unit_test(test_junit_not_comparable_is_red),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_summary_is_small),
		cmocka_unit_test(test_summary_says_the_result),
		cmocka_unit_test(test_summary_without_a_baseline),
		cmocka_unit_test(test_benchmark_numbers),
		cmocka_unit_test(test_benchmark_leaves_the_unknown_out),
		cmocka_unit_test(test_benchmark_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
