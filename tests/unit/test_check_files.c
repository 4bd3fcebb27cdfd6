/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects: files of results are whole or as they were, what could not be written is said, and each thing goes to its place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "check_scene.h"

static int write_two_lines(FILE *out, const void *content)
{
	return fprintf(out, "%s\nend\n", (const char *)content) < 0 ? -EIO : 0;
}

static int write_and_fail(FILE *out, const void *content)
{
	write_two_lines(out, content);
	return -EDOM;
}

static void test_files_are_replaced_whole(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(output_replace(path_of("new"), write_two_lines, "one"), 0);
	assert_file(path_of("new"), "one\nend\n");
	assert_int_equal(stat(path_of("new"), &st), 0);
	assert_int_equal(st.st_mode & 0400, 0400);
	assert_int_equal(chmod(path_of("new"), 0640), 0);
	assert_int_equal(symlink("new", path_of("link")), 0);
	assert_int_equal(output_replace(path_of("link"), write_two_lines, "two"), 0);
	assert_file(path_of("new"), "two\nend\n");
	assert_int_equal(lstat(path_of("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(path_of("new"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(output_replace(path_of("new"), write_and_fail, "three"), -EDOM);
	assert_file(path_of("new"), "two\nend\n");
	assert_int_equal(files_in_folder(), 2);
}

static void test_files_that_cannot_be_written(void **state)
{
	(void)state;
	assert_int_equal(output_replace(path_of("no/such"), write_two_lines, "one"), -ENOENT);
	assert_int_equal(output_replace("/dev/full", write_two_lines, "one"), -ENOSPC);
	assert_int_equal(output_replace("/dev/null", write_two_lines, "one"), 0);
	assert_int_equal(access("/dev/null", W_OK), 0);
	assert_int_equal(files_in_folder(), 0);
}

/* Calls check_output() with stdout and stderr in files. */
static int output_to(const struct scene *s, const struct check_options *options)
{
	int saved[2] = {dup(1), dup(2)}, error;

	fflush(NULL);
	assert_non_null(freopen(path_of("stdout"), "w", stdout));
	assert_non_null(freopen(path_of("stderr"), "w", stderr));
	error = check_output(&s->result, options);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		dup2(saved[i], 1 + i);
		close(saved[i]);
	}
	return error;
}

static void test_output_on_github(void **state)
{
	struct check_options options = {.budget = ST_UNKNOWN, .fit = ST_UNKNOWN};
	struct scene s;
	const char *guarded, *marked;
	char *text;

	(void)state;
	scene_hostile(&s);
	put(path_of("summary"), "before");
	setenv("GITHUB_ACTIONS", "true", 1);
	setenv("GITHUB_STEP_SUMMARY", path_of("summary"), 1);
	assert_int_equal(output_to(&s, &options), 0);
	text = got(path_of("stdout"));
	guarded = strstr(text, "\n::error title=sparktrace%3A load_anonymous_copy_peak over::");
	marked = strstr(text, "##[");
	assert_non_null(guarded);
	assert_true(!marked || marked > guarded);
	free(text);
	text = got(path_of("summary"));
	assert_int_equal(strncmp(text, "before\n### ", 11), 0);
	free(text);
	options.json = true;
	assert_int_equal(output_to(&s, &options), 0);
	text = got(path_of("stdout"));
	assert_null(strstr(text, "::error title="));
	free(text);
	text = got(path_of("stderr"));
	assert_has(text, "::error title=");
	free(text);
}

static void test_output_elsewhere(void **state)
{
	struct check_options options = {.budget = ST_UNKNOWN, .fit = ST_UNKNOWN};
	struct scene s;
	char *text;

	(void)state;
	scene_hostile(&s);
	setenv("GITHUB_STEP_SUMMARY", path_of("summary"), 1);
	assert_int_equal(output_to(&s, &options), 0);
	text = got(path_of("stdout"));
	assert_null(strstr(text, "::error title="));
	free(text);
	assert_int_not_equal(access(path_of("summary"), F_OK), 0);
}

/* A full summary stays as it is: GitHub refuses what is above the limit as a whole. */
static void test_summary_is_full(void **state)
{
	struct check_options options = {.budget = ST_UNKNOWN, .fit = ST_UNKNOWN};
	struct scene s;
	struct stat st;

	(void)state;
	scene_begin(&s);
	put(path_of("summary"), "");
	assert_int_equal(truncate(path_of("summary"), OUTPUT_SUMMARY_MAX - 10), 0);
	setenv("GITHUB_ACTIONS", "true", 1);
	setenv("GITHUB_STEP_SUMMARY", path_of("summary"), 1);
	assert_int_equal(output_to(&s, &options), 0);
	assert_int_equal(stat(path_of("summary"), &st), 0);
	assert_int_equal(st.st_size, OUTPUT_SUMMARY_MAX - 10);
	assert_file(path_of("stderr"), "sparktrace-analyze: the job summary is full, ours is left out\n");
}

/* One file that cannot be written is an error, is named, and keeps none of the others from being written. */
static void test_output_errors(void **state)
{
	struct check_options options = {.budget = ST_UNKNOWN, .fit = ST_UNKNOWN, .junit = "/nowhere/a.xml"};
	struct scene s;
	char *text;

	(void)state;
	scene_begin(&s);
	options.benchmark = strdup(path_of("benchmark.json"));
	assert_int_equal(output_to(&s, &options), -ENOENT);
	text = got(path_of("stderr"));
	assert_has(text, "/nowhere/a.xml: No such file or directory\n");
	free(text);
	assert_int_equal(access(options.benchmark, R_OK), 0);
	free((char *)options.benchmark);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files_are_replaced_whole, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(test_files_that_cannot_be_written, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(test_output_on_github, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(test_output_elsewhere, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(test_summary_is_full, folder_begin, folder_end),
		cmocka_unit_test_setup_teardown(test_output_errors, folder_begin, folder_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
