/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` says beside its decisions: versions, limits, what grew; and what becomes a baseline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analyzer/check_parts.h"
#include "measures.h"
#include "checks.h"

/* --- what is said, and compared ------------------------------------------------------------------------ */

static void versions_are_said_and_compared(void **state)
{
	char name[] = "safetensors", other[] = "torch", old[] = "0.8.0", new[] = "0.7.0";
	struct measure_version before = {name, old}, after[] = {{name, new}, {other, old}};
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	baseline.versions = &before;
	baseline.version_count = 1;
	measures->runs[0].versions = after;
	measures->runs[0].version_count = 2;
	measures->runs[0].weights = 2 * GIB;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_true(notes(&r, "safetensors 0.8.0 -> 0.7.0"));
	assert_true(notes(&r, "torch 0.8.0 is seen in loading"));
	assert_true(notes(&r, "the weights are 2.00 GiB, 1.00 GiB before"));
	check_release(&r);
	measures->runs[0].version_count = 0;
	r = compare(measures, &baseline, NULL);
	assert_true(notes(&r, "which packages loaded is not known"));
	assert_false(notes(&r, "is not seen"));
	check_release(&r);
}

static void limits_are_exact_and_said_back(void **state)
{
	struct measures *measures = *state;
	struct check_options options = options_none();
	struct check_result r;

	options.limits[0] = (struct check_limit){METRIC_HOST, 100000000, "100MB"};
	options.limits[1] = (struct check_limit){METRIC_FACTOR, METRIC_RATIO_ONE, "1"};
	options.limit_count = 2;
	measures->runs[0].values[METRIC_HOST] = range_of(100000000);
	r = compare(measures, NULL, &options);
	assert_int_equal(r.status, 0);
	assert_true(notes(&r, "--metric load_host_peak=100MB is 100,000,000 bytes"));
	check_release(&r);
	measures->runs[0].values[METRIC_HOST] = range_of(100000001);
	r = compare(measures, NULL, &options);
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.verdict, "--metric load_host_peak=100MB"));
	check_release(&r);
	measures->runs[0].values[METRIC_HOST] = range_of(0);
	measures->runs[0].values[METRIC_FACTOR] = range_of(METRIC_RATIO_ONE + 1);
	expect_status(measures, NULL, &options, 1);
}

/* Blocks below the threshold are in no metric: that they came is said, and a limit is not called kept for it. */
static void what_no_metric_counts_is_said(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_options options = options_none();
	struct check_result r;

	options.limits[0] = (struct check_limit){METRIC_HOST, 200 * MIB, "200MiB"};
	options.limit_count = 1;
	measures->runs[0].uncounted = 64 * MIB;
	r = compare(measures, &baseline, NULL);
	assert_false(notes(&r, "does not count"));
	check_release(&r);
	measures->runs[0].uncounted = 200 * MIB;
	r = compare(measures, &baseline, &options);
	assert_int_equal(r.status, 0);
	assert_true(notes(
		&r, "the load brought at least 200.0 MiB of host memory that load_host_peak does not count"));
	check_release(&r);
	measures->runs[0].uncounted = 200 * MIB + 1;
	expect_status(measures, &baseline, &options, 3);
	expect_status(measures, &baseline, NULL, 0);
	measures->runs[0].values[METRIC_HOST] = range_of(200 * MIB + 1);
	expect_status(measures, NULL, &options, 1);
}

/* A load that stays on the host has no modelled peak: the first line is about what it has. */
static void the_first_line_is_about_what_there_is(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r = compare(measures, &baseline, NULL);

	assert_non_null(strstr(r.verdict, "load_modelled_peak"));
	check_release(&r);
	for (int i = 0; i < METRIC_COUNT; i++)
		baseline.values[i] = measures->runs[0].values[i] = range_of(i == METRIC_HOST ? GIB : 0);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.verdict, "ok: other host memory (load_host_peak): 1.00 GiB"));
	check_release(&r);
}

/* An advice to update is none where something grew, or where the program did not come through. */
static void only_a_better_run_is_a_baseline(void **state)
{
	static const struct model failed = {.exited = true, .exit_how = ST_EXIT_EXITED, .exit_status = 3};
	static const struct model killed = {.exited = true, .exit_how = ST_EXIT_SIGNALED, .exit_status = 9};
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	baseline.values[METRIC_DEVICE] = range_of(9 * GIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 0);
	assert_true(notes(&r, "update the baseline"));
	assert_non_null(strstr(r.verdict, "update the baseline"));
	check_release(&r);
	for (int i = 0; i < 2; i++) {
		measures->runs[0].model = i ? &killed : &failed;
		r = compare(measures, &baseline, NULL);
		assert_int_equal(r.status, 0);
		assert_true(notes(&r, i ? "ended by signal 9" : "ended with status 3"));
		assert_false(notes(&r, "update the baseline"));
		assert_null(strstr(r.verdict, "update the baseline"));
		check_release(&r);
	}
	measures->runs[0].model = NULL;
	measures->runs[0].values[METRIC_HOST] = range_of(9 * GIB);
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.status, 1);
	assert_false(notes(&r, "update the baseline"));
	check_release(&r);
}

/* --fit is the report's verdict on a machine of that size, of which 4 GiB are kept back. */
static void fit_is_the_verdict_of_the_report(void **state)
{
	static struct model model, larger;
	struct measures *measures = *state;
	struct check_options options = options_none();
	char lost[] = "17 events are lost";
	struct check_result r;

	model = (struct model){.needed = {.demand = range_of(10 * GIB), .died_in = PHASE_COUNT}};
	measures->runs[0].model = &model;
	options.fit = 20 * GIB;
	options.fit_given = "20GiB";
	expect_status(measures, NULL, &options, 0);
	options.fit = 14 * GIB;
	expect_status(measures, NULL, &options, 0);
	options.fit = 14 * GIB - 1;
	expect_status(measures, NULL, &options, 1);
	model.needed.demand = (struct range){9 * GIB, 11 * GIB};
	options.fit = 14 * GIB;
	expect_status(measures, NULL, &options, 3);
	model.needed.demand = range_of(10 * GIB);
	model.needed.lower_bound = true;
	expect_status(measures, NULL, &options, 3);
	options.fit = 13 * GIB;
	r = compare(measures, NULL, &options);
	assert_int_equal(r.status, 1);
	assert_non_null(strstr(r.verdict, "at least +1.00 GiB: the run needs at least 10.00 GiB"));
	check_release(&r);
	model.needed.lower_bound = false;
	options.fit = 20 * GIB;
	measures->runs[0].unusable = lost;
	expect_status(measures, NULL, &options, 3);
	options.fit = 13 * GIB; /* proven all the same, unless a release is among what is missing */
	expect_status(measures, NULL, &options, 1);
	measures->runs[0].unproven = true;
	expect_status(measures, NULL, &options, 3);
	measures->runs[0] = measure_example();
	larger = model; /* of several runs that do not fit the one that needs most is said */
	larger.needed.demand = range_of(30 * GIB);
	measures->runs[0].model = measures->runs[2].model = &model;
	measures->runs[1].model = &larger;
	measures->count = 3;
	r = compare(measures, NULL, &options);
	assert_non_null(strstr(r.verdict, "+21.00 GiB: the run needs 30.00 GiB"));
	check_release(&r);
	measures->count = 1;
	measures->runs[0].gaps[METRIC_DEVICE] = lost; /* a driver that nobody saw */
	options.fit = 20 * GIB;
	expect_status(measures, NULL, &options, 3);
}

/* --- what grew ------------------------------------------------------------------------------------------- */

static struct part part(enum metric metric, enum part_kind kind, const char *name, uint64_t bytes)
{
	return (struct part){
		.metric = metric, .kind = kind, .name = (char *)(uintptr_t)name, .bytes = range_of(bytes)};
}

static void grown_parts_are_said_once_and_file_first(void **state)
{
	struct part parts[] = {
		part(METRIC_ANON, PART_FILE, "a.safetensors", GIB),
		part(METRIC_ANON, PART_TENSOR, "small", 256 * MIB),
		part(METRIC_ANON, PART_TENSOR, "wide", 768 * MIB),
		part(METRIC_ANON, PART_STACK, "load_file < main", GIB),
		part(METRIC_MAPPED, PART_FILE, "a.safetensors", GIB),
	};
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	measures->runs[0].values[METRIC_ANON] = range_of(GIB);
	measures->runs[0].breakdown = (struct breakdown){parts, sizeof(parts) / sizeof(parts[0])};
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.lines[0].metric, METRIC_ANON);
	assert_int_equal(r.lines[0].grown_count, 2);
	assert_string_equal(r.lines[0].grown[0].name, "a.safetensors");
	assert_string_equal(r.lines[0].grown[0].detail, "load_file < main");
	assert_int_equal(r.lines[0].grown[0].before.hi, 0);
	assert_string_equal(r.lines[0].grown[1].name, "wide");
	assert_string_equal(r.lines[0].grown[1].detail, "1 more tensor");
	check_release(&r);
}

/* Five lines: three files, the largest tensor, the stack where no file's detail names its function; then more files. */
static void five_lines_have_room_for_each_kind(void **state)
{
	struct part parts[] = {
		part(METRIC_ANON, PART_FILE, "a", 9 * MIB),
		part(METRIC_ANON, PART_FILE, "b", 8 * MIB),
		part(METRIC_ANON, PART_FILE, "c", 7 * MIB),
		part(METRIC_ANON, PART_FILE, "d", 6 * MIB),
		part(METRIC_ANON, PART_TENSOR, "t", 5 * MIB),
		part(METRIC_ANON, PART_TENSOR, "u", 4 * MIB),
		part(METRIC_ANON, PART_STACK, "f < g", 40 * MIB),
	};
	static const char *const names[2][CHECK_GROWN] = {{"a", "b", "c", "t", "f < g"},
	                                                  {"a", "b", "c", "t", "d"}};
	char detail[] = "private writable mapping; f (x.py:1)";
	struct measures *measures = *state;
	struct measure baseline = measure_example();

	measures->runs[0].values[METRIC_ANON] = range_of(GIB);
	measures->runs[0].breakdown = (struct breakdown){parts, sizeof(parts) / sizeof(parts[0])};
	for (int named = 0; named < 2; named++) {
		struct check_result r;

		parts[0].detail = named ? detail : NULL;
		r = compare(measures, &baseline, NULL);
		assert_int_equal(r.lines[0].grown_count, CHECK_GROWN);
		for (int i = 0; i < CHECK_GROWN; i++)
			assert_string_equal(r.lines[0].grown[i].name, names[named][i]);
		check_release(&r);
	}
}

/* A file holds the largest parts only: another one was smaller than those, or than 1 MiB and a hundredth. */
static void parts_that_a_baseline_does_not_name_are_bounded(void **state)
{
	struct part named[BASELINE_PARTS], grown[] = {part(METRIC_ANON, PART_FILE, "new", 4 * GIB)};
	static const char names[BASELINE_PARTS][2] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	for (int i = 0; i < BASELINE_PARTS; i++)
		named[i] = part(METRIC_ANON, PART_FILE, names[i], (uint64_t)(i + 20) * MIB);
	baseline.values[METRIC_ANON] = range_of(GIB);
	baseline.breakdown = (struct breakdown){named, BASELINE_PARTS};
	measures->runs[0].values[METRIC_ANON] = range_of(4 * GIB);
	measures->runs[0].breakdown = (struct breakdown){grown, 1};
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.lines[0].grown[0].before.lo, 0);
	assert_int_equal(r.lines[0].grown[0].before.hi, 20 * MIB);
	check_release(&r);
	baseline.breakdown.count = 1;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.lines[0].grown[0].before.hi, GIB / 100);
	check_release(&r);
	baseline.values[METRIC_ANON] = range_of(0);
	baseline.breakdown.count = 0;
	r = compare(measures, &baseline, NULL);
	assert_int_equal(r.lines[0].grown[0].before.hi, 0);
	check_release(&r);
}

/* A stack that got other callers is the same, also beside a file; a name too long for a file may have been anything. */
static void what_is_known_under_another_name_is_known(void **state)
{
	static char name[BASELINE_NAME_MAX + 2];
	struct part named[] = {part(METRIC_ANON, PART_STACK, "load < read < old", GIB)};
	struct part grown[] = {part(METRIC_ANON, PART_STACK, "load < read < new", 3 * GIB)};
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_result r;

	memset(name, 'x', sizeof(name) - 1);
	baseline.values[METRIC_ANON] = range_of(GIB);
	baseline.breakdown = (struct breakdown){named, 1};
	measures->runs[0].values[METRIC_ANON] = range_of(3 * GIB);
	measures->runs[0].breakdown = (struct breakdown){grown, 1};
	r = compare(measures, &baseline, NULL);
	assert_string_equal(r.lines[0].grown[0].name, "load < read < new");
	assert_int_equal(r.lines[0].grown[0].before.lo, GIB);
	assert_int_equal(r.lines[0].grown[0].before.hi, GIB);
	check_release(&r);
	assert_int_equal(baseline_unnamed(&baseline, METRIC_ANON, "short").hi, GIB / 100);
	assert_int_equal(baseline_unnamed(&baseline, METRIC_ANON, name).hi, GIB);
}

static void a_limit_alone_says_what_there_is(void **state)
{
	struct part parts[] = {
		part(METRIC_DEVICE, PART_FILE, "a", 5 * MIB), part(METRIC_DEVICE, PART_FILE, "b", 6 * MIB),
		part(METRIC_DEVICE, PART_FILE, "c", 7 * MIB), part(METRIC_DEVICE, PART_FILE, "d", 8 * MIB),
		part(METRIC_DEVICE, PART_FILE, "e", 9 * MIB), part(METRIC_DEVICE, PART_FILE, "f", 10 * MIB),
	};
	struct measures *measures = *state;
	struct check_options options = options_none();
	struct check_result r;

	measures->runs[0].breakdown = (struct breakdown){parts, sizeof(parts) / sizeof(parts[0])};
	options.budget = 1;
	options.budget_given = "1";
	r = compare(measures, NULL, &options);
	assert_int_equal(r.status, 1);
	assert_int_equal(r.lines[0].grown_count, CHECK_GROWN);
	assert_string_equal(r.lines[0].grown[0].name, "f");
	assert_true(range_is_open(r.lines[0].grown[0].before));
	check_release(&r);
}

/* --- --update ---------------------------------------------------------------------------------------------- */

static void what_is_not_known_is_no_baseline(void **state)
{
	struct measures *measures = *state;
	struct measure baseline = measure_example();
	struct check_options options = options_none();
	char why[] = "17 events are lost";

	options.update = true;
	options.baseline = "b.json";
	baseline.fingerprint.page_size = 65536; /* no matter: it is replaced */
	measures->runs[0].values[METRIC_ANON] = range_of(GIB);
	expect_status(measures, &baseline, &options, 0);
	expect_status(measures, NULL, &options, 0);
	measures->runs[0].gaps[METRIC_POOL] = why;
	expect_status(measures, &baseline, &options, 0);
	measures->runs[0].gaps[METRIC_READ] = why;
	expect_status(measures, &baseline, &options, 3);
	measures->runs[0].gaps[METRIC_READ] = NULL;
	measures->runs[0].finished = false;
	expect_status(measures, &baseline, &options, 3);
	measures->runs[0].finished = true;
	measures->runs[0].values[METRIC_ANON].hi = UINT64_MAX;
	expect_status(measures, &baseline, &options, 3);
	measures->runs[0].values[METRIC_ANON].hi = GIB;
	measures->runs[0].unusable = why;
	expect_status(measures, &baseline, &options, 3);
	measures->runs[0].unusable = NULL;
	measures->count = 2;
	measures->runs[1].fingerprint.threads = 5;
	expect_status(measures, &baseline, &options, 3);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(versions_are_said_and_compared),
		TEST(limits_are_exact_and_said_back),
		TEST(what_no_metric_counts_is_said),
		TEST(the_first_line_is_about_what_there_is),
		TEST(only_a_better_run_is_a_baseline),
		TEST(fit_is_the_verdict_of_the_report),
		TEST(grown_parts_are_said_once_and_file_first),
		TEST(five_lines_have_room_for_each_kind),
		TEST(parts_that_a_baseline_does_not_name_are_bounded),
		TEST(what_is_known_under_another_name_is_known),
		TEST(a_limit_alone_says_what_there_is),
		TEST(what_is_not_known_is_no_baseline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
