/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects: that GitHub's runner obeys our annotations, few and worst first, and nothing that a trace has written. What is
 * expected of it stands in tests/run/check_outputs.py, which parses as the runner does.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <jansson.h>

#include "check_scene.h"

/* What the runner does with a line: a command begins it, and ends at the line's end. */
static void test_annotations_are_few_and_ranked(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	s.result.status = COMMAND_OVER;
	for (int i = 0; i < 3; i++)
		scene_line(&s, (enum metric)i, CHECK_OVER);
	s.reasons[s.result.reason_count++] = (char *)"a reason";
	scene_line(&s, METRIC_HOST, CHECK_CANNOT_TELL);
	scene_line(&s, METRIC_POOL, CHECK_WARNED);
	scene_line(&s, METRIC_MAPPED, CHECK_IMPROVED);
	scene_line(&s, METRIC_READ, CHECK_OK);
	scene_line(&s, METRIC_FACTOR, CHECK_SHOWN);
	text = written(check_write_annotations, &s);
	assert_int_equal(count_of(text, "\n"), 5);
	assert_int_equal(count_of(text, "::error title=sparktrace%3A load_"), 3);
	assert_has(text, "::warning title=sparktrace%3A cannot compare::a reason\n");
	assert_null(strstr(text, "load_host_peak"));
	assert_has(text,
	           "::warning title=sparktrace%3A pool_peak warning::a sentence%0Aand 1 more in the log\n");
	free(text);
	s.result.reason_count = 0;
	text = written(check_write_annotations, &s);
	assert_has(text, "::warning title=sparktrace%3A load_host_peak cannot tell::a sentence\n");
	free(text);
}

static void test_annotations_of_a_failed_comparison(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	s.result.status = COMMAND_CANNOT_TELL;
	scene_line(&s, METRIC_HOST, CHECK_CANNOT_TELL);
	text = written(check_write_annotations, &s);
	assert_string_equal(text, "::error title=sparktrace%3A load_host_peak cannot tell::a sentence\n");
	free(text);
	s.reasons[s.result.reason_count++] = (char *)"a reason";
	text = written(check_write_annotations, &s);
	assert_string_equal(text, "::error title=sparktrace%3A cannot compare::a reason\n");
	free(text);
}

/* One copy too many is in three metrics; what it is made of is said once. */
static void test_annotations_say_growth_once(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	s.result.status = COMMAND_OVER;
	for (int i = 0; i < 3; i++) {
		struct check_line *line = scene_line(&s, (enum metric)i, CHECK_OVER);

		line->grown[line->grown_count++] =
			(struct growth){.name = (char *)(i == 2 ? "b" : "a"), .after = {i == 2, GIB}};
	}
	text = written(check_write_annotations, &s);
	assert_int_equal(count_of(text, "%0Afile a: 0 bytes -> up to 1.00 GiB\n"), 1);
	assert_int_equal(count_of(text, "%0Afile b: "), 1);
	free(text);
}

static void test_annotations_of_the_rest(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	scene_line(&s, METRIC_READ, CHECK_OK);
	scene_line(&s, METRIC_FACTOR, CHECK_SHOWN);
	text = written(check_write_annotations, &s);
	assert_string_equal(text, "");
	free(text);
	s.result.status = COMMAND_CANNOT_TELL;
	text = written(check_write_annotations, &s);
	assert_string_equal(text, "::error title=sparktrace%3A cannot compare::the verdict\n");
	free(text);
	s.result.status = COMMAND_OK;
	scene_line(&s, METRIC_MAPPED, CHECK_IMPROVED);
	text = written(check_write_annotations, &s);
	assert_string_equal(text, "::notice title=sparktrace%3A load_mapped_peak improved::a sentence\n");
	free(text);
}

/* An annotation is shown at the line of the baseline that it is about, where that file is in the repository. */
static void test_annotation_places(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	put(path_of("memory, of it.json"),
	    "{\n  \"largest\": {\n    \"load_device_peak, file a\": 1\n  },\n  \"metrics\": {\n"
	    "    \"load_device_peak\": 5,\n    \"load_host_peak\": 5\n  }\n}\n");
	scene_begin(&s);
	s.result.baseline = path_of("memory, of it.json");
	scene_line(&s, METRIC_DEVICE, CHECK_OVER);
	scene_line(&s, METRIC_POOL, CHECK_OVER);
	scene_line(&s, METRIC_HOST, CHECK_OVER)->against = AGAINST_LIMIT;
	setenv("GITHUB_WORKSPACE", folder, 1);
	text = written(check_write_annotations, &s);
	assert_has(text, "load_device_peak over,file=memory%2C of it.json,line=6::");
	assert_has(text, "pool_peak over,file=memory%2C of it.json::");
	assert_has(text, "load_host_peak over,file=memory%2C of it.json::");
	free(text);
	setenv("GITHUB_WORKSPACE", "/usr", 1);
	text = written(check_write_annotations, &s);
	assert_null(strstr(text, "file="));
	free(text);
}

static char *guarded(const char *text, bool json)
{
	char *seen = NULL;
	size_t size;
	FILE *out = open_memstream(&seen, &size);

	github_guard(out, text, json);
	fclose(out);
	return seen;
}

static void test_guard(void **state)
{
	static const char *const texts[][2] = {
		{"a: b :: c\n  d # e\n", "a: b :: c\n  d # e\n"},
		{"::error::x\n", "\\x3a:error::x\n"},
		{"a\n \t::set-env name=A::x\n", "a\n \t\\x3a:set-env name=A::x\n"},
		{"\xe3\x80\x80::error::x\n", "\xe3\x80\x80\\x3a:error::x\n"},
		{"a ##[error]b", "a \\x23#[error]b"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *seen = guarded(texts[i][0], false);

		assert_string_equal(seen, texts[i][1]);
		free(seen);
	}
}

static void test_guard_of_json(void **state)
{
	char *seen = guarded("{\"a\": \"##[error]::error::###\"}", true);
	json_t *root = json_loads(seen, 0, NULL);

	(void)state;
	assert_null(strstr(seen, "##["));
	assert_string_equal(json_string_value(json_object_get(root, "a")), "##[error]::error::###");
	json_decref(root);
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_annotations_are_few_and_ranked),
		cmocka_unit_test(test_annotations_of_a_failed_comparison),
		cmocka_unit_test(test_annotations_say_growth_once),
		cmocka_unit_test(test_annotations_of_the_rest),
		cmocka_unit_test_setup_teardown(test_annotation_places, folder_begin, folder_end),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_guard_of_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
