/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` compares at all: several runs, runs that are not alike, traces in which something is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analyzer/check_parts.h"
#include "measures.h"
#include "checks.h"

/* --- several runs ------------------------------------------------------------------------------------- */

static void exact_metrics_take_the_largest_run_sampled_ones_the_smallest(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	measures->count = 3;
	for (int i = 0; i < 3; i++) {
		measures->runs[i].values[METRIC_ANON] = range_of((uint64_t)i * 40 * MIB);
		measures->runs[i].values[METRIC_POOL] = range_of((uint64_t)(5 - i) * GIB);
	}
	r = compare(measures, &baseline, NULL);
	assert_int_equal(line_of(&r, METRIC_ANON, AGAINST_BASELINE)->value.hi, 80 * MIB);
	assert_int_equal(line_of(&r, METRIC_ANON, AGAINST_BASELINE)->state, CHECK_OVER);
	assert_int_equal(line_of(&r, METRIC_ANON, AGAINST_BASELINE)->spread.lo, 0);
	assert_int_equal(line_of(&r, METRIC_ANON, AGAINST_BASELINE)->spread.hi, 80 * MIB);
	assert_int_equal(line_of(&r, METRIC_POOL, AGAINST_BASELINE)->value.hi, 3 * GIB);
	check_release(&r);
}

/* Whichever run it is: what it lacks, by how much its threads move a peak. */
static void each_of_several_runs_counts(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_options options = options_none();
	char why[] = "nobody looked";

	measures->count = 2;
	measures->runs[1].values[METRIC_ANON] = range_of(80 * MIB);
	baseline.values[METRIC_ANON] = measures->runs[0].values[METRIC_ANON] = range_of(8 * MIB);
	expect_status(measures, &baseline, NULL, 1);
	measures->runs[1].scale.threads = measures->runs[1].fingerprint.threads = 4;
	measures->runs[1].scale.released = 512 * MIB;
	expect_status(measures, &baseline, NULL, 1); /* 8 MiB, and 24 MiB at most: below 64 MiB */
	baseline.values[METRIC_ANON] = measures->runs[0].values[METRIC_ANON] = range_of(25 * MIB);
	measures->runs[1].values[METRIC_ANON] = range_of(100 * MIB);
	expect_status(measures, &baseline, NULL, 0); /* 25 MiB, and three times that */
	measures->runs[1].values[METRIC_ANON] = range_of(100 * MIB + 1);
	expect_status(measures, &baseline, NULL, 1);
	measures->runs[1].values[METRIC_ANON] = range_of(25 * MIB);
	measures->runs[1].gaps[METRIC_ANON] = why;
	expect_status(measures, &baseline, NULL, 3);
	measures->runs[1].gaps[METRIC_ANON] = NULL;
	options.limits[0] = (struct check_limit){METRIC_POOL, 1, "1"};
	options.limit_count = 1;
	expect_status(measures, NULL, &options, 3); /* above it, but of two runs */
	measures->count = 3;
	expect_status(measures, NULL, &options, 1);
}

/* A baseline file, which has no model, with a pool_peak: written from three runs. */
static void sampled_metrics_are_judged_from_three_runs_on(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_options options = options_none();
	struct check_result r;

	for (int i = 0; i < RUNS; i++)
		measures->runs[i].values[METRIC_POOL] = range_of(100 * GIB);
	for (measures->count = 1; measures->count < 3; measures->count++) {
		r = compare(measures, &baseline, NULL);
		assert_int_equal(r.status, 0);
		assert_int_equal(line_of(&r, METRIC_POOL, AGAINST_NOTHING)->state, CHECK_SHOWN);
		check_release(&r);
	}
	expect_status(measures, &baseline, NULL, 1);
	measures->runs[1].values[METRIC_POOL] = range_of(3 * GIB); /* 1 GiB and 2 GiB of tolerance */
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_int_equal(line_of(&r, METRIC_POOL, AGAINST_BASELINE)->state, CHECK_WARNED);
	check_release(&r);
	measures->runs[1].values[METRIC_POOL] = range_of(GIB + GIB / 20);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(line_of(&r, METRIC_POOL, AGAINST_BASELINE)->state, CHECK_OK);
	check_release(&r);
	/* A limit that was asked for is not passed over in silence. */
	options.limits[0] = (struct check_limit){METRIC_POOL, 200 * GIB, "200GiB"};
	options.limit_count = 1;
	measures->count = 1;
	expect_status(measures, NULL, &options, 3);
	measures->count = 3;
	expect_status(measures, NULL, &options, 0);
}

static void runs_of_other_circumstances_are_not_added_up(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	measures->count = 2;
	measures->runs[1].fingerprint.threads = 4;
	measures->runs[1].scale.largest_tensor = 16 * MIB + 1; /* of 4 threads more than 64 MiB */
	measures->runs[1].path = "other.zst";
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 3);
	assert_true(gives_reason(&r, "loader threads differs: 1 in run.zst, 4 in other.zst"));
	check_release(&r);
}

/* --- not comparable ------------------------------------------------------------------------------------ */

static void each_part_of_the_fingerprint_is_compared(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	char vmm[] = "vmm (expandable_segments:True)", readonly[] = "readonly";
	struct check_options options = options_none();
	const char *const words[FINGERPRINT_ROWS] = {"vmm (expandable_segments:True)",
	                                             "unified",
	                                             "65536 bytes",
	                                             "5 in",
	                                             "16384 bytes",
	                                             "2 in",
	                                             "readonly"};

	options.budget = GIB - 1;
	options.budget_given = "1073741823";
	for (size_t i = 0; i < FINGERPRINT_ROWS; i++) {
		struct fingerprint *f = &measures->runs[0].fingerprint;
		struct check_result r;

		*f = baseline.fingerprint;
		f->allocator = i == 0 ? vmm : f->allocator;
		f->device = i == 1 ? "unified" : f->device;
		f->heap_threshold = i == 2 ? 65536 : f->heap_threshold;
		f->threads = i == 3 ? 5 : f->threads; /* of 16 MiB each: above 64 MiB */
		f->page_size = i == 4 ? 16384 : f->page_size;
		f->processes = i == 5 ? 2 : f->processes;
		f->relief = i == 6 ? readonly : f->relief;
		measures->runs[0].values[METRIC_ANON] = range_of(GIB); /* would be over */
		r = compare(measures, &baseline, NULL);
		assert_int_equal(r.status, 3);
		assert_int_equal(r.reason_count, 1);
		assert_true(gives_reason(&r, fingerprint_rows[i].label));
		assert_true(gives_reason(&r, words[i]));
		assert_memory_equal(r.verdict, "cannot tell: ", 13);
		check_release(&r);
		/* Limits do not ask for it. */
		expect_status(measures, &baseline, &options, 1);
	}
}

/* Who loads small tensors is the scheduler's choice: it moves nothing that is not passed over anyway. */
static void threads_matter_where_their_staging_does(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();

	measures->runs[0].fingerprint.threads = measures->runs[0].scale.threads = 4;
	expect_status(measures, &baseline, NULL, 0);
	baseline.scale.largest_tensor = 16 * MIB + 1;
	expect_status(measures, &baseline, NULL, 3);
}

static void what_is_unknown_on_one_side_differs(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	baseline.fingerprint.heap_threshold = ST_UNKNOWN;
	expect_status(measures, &baseline, NULL, 3);
	measures->runs[0].fingerprint.heap_threshold = ST_UNKNOWN;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_true(notes(&r, "unknown on both sides"));
	check_release(&r);
}

static void a_gap_costs_its_metric_alone(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	char gap[] = "io_uring is not seen";
	struct check_result r;

	measures->runs[0].gaps[METRIC_READ] = gap;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 3);
	assert_int_equal(line_of(&r, METRIC_READ, AGAINST_BASELINE)->state, CHECK_CANNOT_TELL);
	assert_int_equal(line_of(&r, METRIC_ANON, AGAINST_BASELINE)->state, CHECK_OK);
	assert_true(gives_reason(&r, gap));
	check_release(&r);
	measures->runs[0].values[METRIC_READ] = range_of(501); /* proven all the same */
	expect_status(measures, &baseline, NULL, 1);
	/* Who does not compare it may leave its line out of the baseline. */
	baseline.values[METRIC_READ] = RANGE_UNKNOWN;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_true(notes(&r, "load_read_amplification is not in the baseline"));
	check_release(&r);
}

static void of_a_trace_of_no_use_only_a_broken_limit_is_said(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_options options = options_none();
	char lost[] = "17 events are lost";
	struct check_result r;

	measures->runs[0].unusable = lost;
	measures->runs[0].values[METRIC_ANON] = range_of(GIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 3);
	assert_true(gives_reason(&r, "run.zst: 17 events are lost"));
	check_release(&r);
	options.budget = 2 * GIB;
	options.budget_given = "2GiB";
	expect_status(measures, NULL, &options, 3);
	options.budget = GIB - 1;
	expect_status(measures, NULL, &options, 1);
	expect_status(measures, &baseline, &options, 1);
}

static void a_load_that_did_not_end_proves_what_it_had(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	measures->runs[0].finished = false;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 3);
	assert_true(gives_reason(&r, "did not come to its end"));
	check_release(&r);
	measures->runs[0].values[METRIC_ANON] = range_of(GIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.verdict, "at least +1.00 GiB: "));
	assert_non_null(strstr(r.verdict, "to at least 1.00 GiB"));
	check_release(&r);
}

static void a_trace_as_baseline_may_be_of_no_use_too(void **state)
{
	static struct model model;
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	char gap[] = "it is a test", lost[] = "17 events are lost";
	struct check_result r;

	baseline.model = &model;
	expect_status(measures, &baseline, NULL, 0);
	baseline.gaps[METRIC_ANON] = gap;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 3);
	assert_true(gives_reason(&r, "the baseline run.zst: it is a test"));
	check_release(&r);
	baseline.gaps[METRIC_ANON] = NULL;
	baseline.finished = false;
	expect_status(measures, &baseline, NULL, 3);
	baseline.finished = true;
	baseline.unusable = lost;
	expect_status(measures, &baseline, NULL, 3);
}

static void nothing_compared_is_not_fine(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();

	for (int i = 0; i < METRIC_COUNT; i++)
		baseline.values[i] = i == METRIC_POOL ? range_of(GIB) : RANGE_UNKNOWN;
	expect_status(measures, &baseline, NULL, 3);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(exact_metrics_take_the_largest_run_sampled_ones_the_smallest),
		TEST(each_of_several_runs_counts),
		TEST(sampled_metrics_are_judged_from_three_runs_on),
		TEST(runs_of_other_circumstances_are_not_added_up),
		TEST(each_part_of_the_fingerprint_is_compared),
		TEST(threads_matter_where_their_staging_does),
		TEST(what_is_unknown_on_one_side_differs),
		TEST(a_gap_costs_its_metric_alone),
		TEST(of_a_trace_of_no_use_only_a_broken_limit_is_said),
		TEST(a_load_that_did_not_end_proves_what_it_had),
		TEST(a_trace_as_baseline_may_be_of_no_use_too),
		TEST(nothing_compared_is_not_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
