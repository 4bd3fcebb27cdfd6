/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` decides: a wrong answer here fails somebody's build, or lets a load that grew pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analyzer/check_parts.h"
#include "analyzer/check_words.h"
#include "measures.h"
#include "checks.h"

/* --- one value ---------------------------------------------------------------------------------------- */

/* Whatever is not known, no state says more than what is: tried on all small intervals. */
static void states_say_no_more_than_is_known(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 8 * 8 * 8 * 8; n++) {
		struct range value = {n % 8, n / 8 % 8}, before = {n / 64 % 8, n / 512 % 8};
		uint64_t limit = before.hi + 2;
		enum check_state s;

		value.hi = value.hi == 7 ? UINT64_MAX : value.hi;
		if (value.lo > value.hi || before.lo > before.hi)
			continue;
		s = check_judge_baseline(METRIC_ANON, value, before, limit);
		assert_int_equal(s == CHECK_OVER, value.lo > limit);
		assert_int_equal(s == CHECK_CANNOT_TELL, value.lo <= limit && value.hi > limit);
		assert_int_equal(s == CHECK_IMPROVED, value.hi <= limit && value.hi + 2 < before.lo);
		if (range_is_exact(value))
			assert_int_not_equal(s, CHECK_CANNOT_TELL);
	}
}

static void open_baseline_compares_nothing(void **state)
{
	(void)state;
	assert_int_equal(check_judge_baseline(METRIC_ANON, range_of(0), (struct range){5, UINT64_MAX},
	                                      check_limit(METRIC_ANON, (struct range){5, UINT64_MAX},
	                                                  &(struct metric_scale){0})),
	                 CHECK_CANNOT_TELL);
	assert_int_equal(check_judge_limit((struct range){0, UINT64_MAX}, UINT64_MAX - 1), CHECK_CANNOT_TELL);
}

/* Spec 05's table, of a baseline of 10 GiB (ratios: 2): the last value that passes. */
static void tolerances_are_those_of_the_table(void **state)
{
	static const struct {
		enum metric metric;
		uint64_t before, most;
	} rows[] = {
		{METRIC_DEVICE, 10 * GIB, 10 * GIB + 10 * GIB / 100},
		{METRIC_DEVICE, GIB, GIB + 64 * MIB},
		{METRIC_STAGING, 10 * GIB, 10 * GIB + 10 * GIB / 20},
		{METRIC_STAGING, GIB, GIB + 64 * MIB},
		{METRIC_ANON, 10 * GIB, 10 * GIB + 64 * MIB},
		{METRIC_HOST, 10 * GIB, 10 * GIB + 10 * GIB / 20},
		{METRIC_HOST, GIB, GIB + 64 * MIB},
		{METRIC_MODELLED, 10 * GIB, 10 * GIB + 10 * GIB / 50},
		{METRIC_MODELLED, GIB, GIB + 128 * MIB},
		{METRIC_FACTOR, 20000, 20200},
		{METRIC_MAPPED, 10 * GIB, 10 * GIB + 4096},
		{METRIC_READ, 20000, 20500},
	};
	struct measures *measures = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct measure baseline = measure_example();

		for (int m = 0; m < METRIC_COUNT; m++)
			measures->runs[0].values[m] = baseline.values[m] = range_of(0);
		baseline.values[rows[i].metric] = range_of(rows[i].before);
		measures->runs[0].values[rows[i].metric] = range_of(rows[i].most);
		expect_status(measures, &baseline, NULL, 0);
		measures->runs[0].values[rows[i].metric] = range_of(rows[i].most + 1);
		expect_status(measures, &baseline, NULL, 1);
	}
}

static void staging_may_grow_by_the_largest_tensor_of_each_thread(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();

	baseline.fingerprint.threads = measures->runs[0].fingerprint.threads = 8;
	baseline.scale.threads = 8;
	measures->runs[0].values[METRIC_STAGING] = range_of(8 * 16 * MIB);
	expect_status(measures, &baseline, NULL, 0);
	measures->runs[0].values[METRIC_STAGING] = range_of(8 * 16 * MIB + 1);
	expect_status(measures, &baseline, NULL, 1);
	/* A larger tensor in this run is no leave to stage more. */
	measures->runs[0].scale.largest_tensor = GIB;
	expect_status(measures, &baseline, NULL, 1);
}

/* Copies that became staging: less in all. As soon as the sum has not fallen for sure it is a growth as any other. */
static void staging_in_place_of_more_is_a_warning(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct range *values = measures->runs[0].values;
	struct check_result r;

	baseline.values[METRIC_ANON] = range_of(GIB);
	baseline.values[METRIC_MODELLED] = range_of(2 * GIB);
	values[METRIC_STAGING] = range_of(GIB - 1);
	values[METRIC_MODELLED] = range_of(2 * GIB - 1);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_int_equal(line_of(&r, METRIC_STAGING, AGAINST_BASELINE)->state, CHECK_WARNED);
	assert_true(says(r.notes, r.note_count, "no failure"));
	assert_true(says(r.notes, r.note_count, "update the baseline"));
	check_release(&r);
	values[METRIC_MODELLED] = (struct range){GIB, 2 * GIB};
	expect_status(measures, &baseline, NULL, 1);
	values[METRIC_MODELLED] = range_of(2 * GIB - 1);
	values[METRIC_HOST] = range_of(GIB);
	expect_status(measures, &baseline, NULL, 1);
}

static void growth_is_said_with_its_number_first(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	measures->runs[0].values[METRIC_ANON] = range_of(GIB);
	measures->runs[0].values[METRIC_MODELLED] = range_of(2 * GIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 1);
	assert_memory_equal(r.verdict, "+1.00 GiB: ", 11);
	assert_non_null(strstr(r.verdict, "from 0 bytes to 1.00 GiB"));
	assert_non_null(strstr(r.verdict, "(load_anonymous_copy_peak)"));
	assert_non_null(strstr(r.verdict, "load_modelled_peak"));
	assert_int_equal(r.lines[0].metric, METRIC_ANON);
	check_release(&r);
}

static void an_interval_proves_by_its_lower_end_only(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct range *value = &measures->runs[0].values[METRIC_ANON];
	struct check_result r;

	*value = (struct range){64 * MIB + 1, GIB};
	expect_status(measures, &baseline, NULL, 1);
	*value = (struct range){64 * MIB, GIB};
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 3);
	assert_true(gives_reason(&r, "load_anonymous_copy_peak"));
	check_release(&r);
	*value = (struct range){0, 64 * MIB};
	expect_status(measures, &baseline, NULL, 0);
}

static void a_wide_interval_passes_with_a_note(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	baseline.values[METRIC_ANON] = (struct range){0, GIB};
	measures->runs[0].values[METRIC_ANON] = (struct range){0, GIB};
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_true(notes(&r, "a growth inside is not seen"));
	check_release(&r);
}

static void what_became_better_passes_and_asks_for_an_update(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	baseline.values[METRIC_ANON] = range_of(GIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.lines[0].state, CHECK_IMPROVED);
	assert_memory_equal(r.verdict, "-1.00 GiB: ", 11);
	assert_non_null(strstr(r.verdict, "update the baseline"));
	check_release(&r);
	baseline.values[METRIC_ANON] = range_of(64 * MIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(line_of(&r, METRIC_ANON, AGAINST_BASELINE)->state, CHECK_OK);
	check_release(&r);
}

/* A page above a limit of 1 GiB is not "from 1.00 GiB to 1.00 GiB, above the limit of 1.00 GiB". */
static void what_differs_does_not_read_alike(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	char text[METRIC_TEXT];
	struct check_result r;

	baseline.values[METRIC_MAPPED] = range_of(100 * GIB);
	measures->runs[0].values[METRIC_MAPPED] = range_of(100 * GIB + 8192);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 1);
	assert_string_equal(r.verdict,
	                    "+8 KiB: mapped weight files grew from 107374182400 bytes to 107374190592 "
	                    "bytes, above the limit of 107374186496 bytes (load_mapped_peak)");
	assert_string_equal(
		check_value_text(line_of(&r, METRIC_MAPPED, AGAINST_BASELINE), range_of(107374186496), text),
		"107374186496 bytes");
	check_release(&r);
	/* Of what is well the last page says nothing. */
	measures->runs[0].values[METRIC_MAPPED] = range_of(100 * GIB + 4096);
	r = compare(measures, &baseline, NULL);
	assert_string_equal(
		check_value_text(line_of(&r, METRIC_MAPPED, AGAINST_BASELINE), range_of(100 * GIB), text),
		"100.00 GiB");
	check_release(&r);
	/* Two things that are not known do not differ. */
	baseline.values[METRIC_POOL] = RANGE_UNKNOWN;
	r = compare(measures, &baseline, NULL);
	assert_string_equal(check_value_text(line_of(&r, METRIC_POOL, AGAINST_NOTHING), range_of(GIB), text),
	                    "1.00 GiB");
	check_release(&r);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_say_no_more_than_is_known),
		cmocka_unit_test(open_baseline_compares_nothing),
		TEST(tolerances_are_those_of_the_table),
		TEST(staging_may_grow_by_the_largest_tensor_of_each_thread),
		TEST(staging_in_place_of_more_is_a_warning),
		TEST(growth_is_said_with_its_number_first),
		TEST(an_interval_proves_by_its_lower_end_only),
		TEST(a_wide_interval_passes_with_a_note),
		TEST(what_differs_does_not_read_alike),
		TEST(what_became_better_passes_and_asks_for_an_update),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
