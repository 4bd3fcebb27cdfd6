/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of measures made by hand, and what comes of them. cmocka.h and its own headers come before. */
#ifndef SPARKTRACE_TESTS_CHECKS_H
#define SPARKTRACE_TESTS_CHECKS_H

#include "measures.h"

#define RUNS 4

static inline int setup(void **state)
{
	struct measures *measures = calloc(1, sizeof(*measures));

	measures->runs = calloc(RUNS, sizeof(struct measure));
	measures->count = 1;
	for (int i = 0; i < RUNS; i++)
		measures->runs[i] = measure_example();
	*state = measures;
	return 0;
}

static inline int teardown(void **state)
{
	struct measures *measures = *state;

	free(measures->runs);
	free(measures);
	return 0;
}

static inline struct check_result compare(const struct measures *measures, const struct measure *baseline,
                                          const struct check_options *options)
{
	const struct check_options none = options_none();
	struct check_result result;

	assert_int_equal(check_compare(measures, baseline, options ? options : &none, &result), 0);
	assert_non_null(result.verdict);
	assert_null(strchr(result.verdict, '\n'));
	return result;
}

static inline const struct check_line *line_of(const struct check_result *result, enum metric metric,
                                               enum check_against against)
{
	for (size_t i = 0; i < result->line_count; i++)
		if (result->lines[i].metric == metric && result->lines[i].against == against)
			return &result->lines[i];
	fail_msg("no line of metric %d against %d", metric, against);
	return NULL;
}

static inline bool says(char *const *texts, size_t count, const char *words)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(texts[i], words))
			return true;
	return false;
}

static inline bool gives_reason(const struct check_result *result, const char *words)
{
	return says(result->reasons, result->reason_count, words);
}

static inline bool notes(const struct check_result *result, const char *words)
{
	return says(result->notes, result->note_count, words);
}

static inline void expect_status(const struct measures *measures, const struct measure *baseline,
                                 const struct check_options *options, int status)
{
	struct check_result result = compare(measures, baseline, options);

	assert_int_equal(result.status, status);
	check_release(&result);
}

#endif
