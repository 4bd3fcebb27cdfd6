/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the table of metrics against that of the specification (spec 05), and how values are told to people. */
#include <analyzer/metrics.h>
#include <setjmp.h>
#include <sparktrace/format.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const struct metric_scale plain = {
	.threads = 1, .largest_tensor = 0, .mappings = 1, .page_size = 4096, .weights = GIB, .released = GIB};

static uint64_t tolerance(const char *name, uint64_t baseline, const struct metric_scale *scale)
{
	enum metric metric = metric_find(name);

	assert_int_not_equal(metric, METRIC_COUNT);
	return metric_tolerance(metric, baseline, scale);
}

/* On both sides of where the share takes over from the fixed amount. */
static void test_tolerances(void **state)
{
	(void)state;
	assert_int_equal(tolerance("load_device_peak", 6400 * MIB, &plain), 64 * MIB);
	assert_int_equal(tolerance("load_device_peak", 6500 * MIB, &plain), 65 * MIB);
	assert_int_equal(tolerance("load_staging_peak", 1280 * MIB, &plain), 64 * MIB);
	assert_int_equal(tolerance("load_staging_peak", 2000 * MIB, &plain), 100 * MIB);
	assert_int_equal(tolerance("load_anonymous_copy_peak", 100 * GIB, &plain), 64 * MIB);
	assert_int_equal(tolerance("load_host_peak", 0, &plain), 64 * MIB);
	assert_int_equal(tolerance("load_host_peak", 20 * GIB, &plain), GIB);
	assert_int_equal(tolerance("load_modelled_peak", 6400 * MIB, &plain), 128 * MIB);
	assert_int_equal(tolerance("load_modelled_peak", 10000 * MIB, &plain), 200 * MIB);
	assert_int_equal(tolerance("load_factor", 20000, &plain), 200);
	assert_int_equal(tolerance("load_read_amplification", 10000, &plain), 500);
	assert_int_equal(tolerance("pool_peak", 10 * GIB, &plain), 2 * GIB);
	assert_int_equal(tolerance("pool_peak", 100 * GIB, &plain), 10 * GIB);
}

static void test_tolerances_by_scale(void **state)
{
	struct metric_scale scale = {8, 100 * MIB, 40, 65536, 0, 0, 0, 0};
	struct metric_scale unknown = {ST_UNKNOWN, 100 * MIB, ST_UNKNOWN, 65536, 0, 0, 0, 0};
	struct metric_scale huge = {UINT64_MAX - 1, UINT64_MAX - 1, 0,         0, 1,
	                            UINT64_MAX - 1, UINT64_MAX,     UINT64_MAX};

	(void)state;
	assert_int_equal(tolerance("load_staging_peak", GIB, &scale), 800 * MIB);
	assert_int_equal(tolerance("load_mapped_peak", 100 * GIB, &scale), 40 * 64 * KIB);
	assert_int_equal(tolerance("load_mapped_peak", 100 * GIB, &plain), 4096);
	assert_int_equal(tolerance("load_device_peak", 0, &scale), 64 * MIB);
	/* What nobody knows excuses nothing; what is absurd does not wrap. */
	assert_int_equal(tolerance("load_staging_peak", GIB, &unknown), 64 * MIB);
	assert_int_equal(tolerance("load_mapped_peak", GIB, &unknown), 0);
	assert_int_equal(tolerance("load_staging_peak", GIB, &huge), UINT64_MAX);
	assert_int_equal(tolerance("load_factor", 10000, &huge), UINT64_MAX);
}

/* Staging of several threads is in the sums, and moves them; that of one does not. */
static void test_several_threads(void **state)
{
	struct metric_scale four = {4, 100 * MIB, 1, 4096, 1000 * MIB, 0, 200 * MIB, 0};
	struct metric_scale little = {4, 100 * MIB, 1, 4096, 1000 * MIB, 0, 50 * MIB, 0};
	struct metric_scale unstaged = {4, 100 * MIB, 1, 4096, 1000 * MIB, 0, 0, 0};
	struct metric_scale one = {1, 500 * MIB, 1, 4096, 1000 * MIB, 0, GIB, 0};
	struct metric_scale small = {4, MIB, 1, 4096, 640 * MIB, 0, GIB, 0};
	struct metric_scale nobody = {ST_UNKNOWN, 100 * MIB, 1, 4096, 1000 * MIB, 0, GIB, 0};
	struct metric_scale nothing = {4, MIB, 1, 4096, 0, 0, GIB, 0};

	(void)state;
	assert_int_equal(tolerance("load_modelled_peak", GIB, &four), 400 * MIB);
	assert_int_equal(tolerance("load_modelled_peak", GIB, &little), 150 * MIB); /* of the other three */
	assert_int_equal(tolerance("load_modelled_peak", GIB, &unstaged), 128 * MIB);
	assert_int_equal(tolerance("load_factor", 10000, &unstaged), 640);
	assert_int_equal(tolerance("load_modelled_peak", GIB, &one), 128 * MIB);
	assert_int_equal(tolerance("load_modelled_peak", GIB, &small), 128 * MIB);
	assert_int_equal(tolerance("load_modelled_peak", GIB, &nobody), 128 * MIB);
	assert_int_equal(tolerance("load_factor", 10000, &four), 4000);
	assert_int_equal(tolerance("load_factor", 10000, &one), 200);
	assert_int_equal(tolerance("load_factor", 10000, &small), 1000); /* 64 MiB of 640 */
	assert_int_equal(tolerance("load_factor", 10000, &nobody), 200);
	assert_int_equal(tolerance("load_factor", 10000, &nothing), 200);
	assert_int_equal(tolerance("load_device_peak", GIB, &four), 64 * MIB);
	assert_int_equal(tolerance("load_anonymous_copy_peak", GIB, &four), 64 * MIB);
}

/* 60 MiB a file, three more of them at a time than in another order. Of nothing there are not more. */
static void test_files_of_several_threads(void **state)
{
	struct metric_scale four = {4, MIB, 2, 4096, 1000 * MIB, 60 * MIB, 0, 240 * MIB};
	struct metric_scale mapped = {4, MIB, 2, 4096, 1000 * MIB, 60 * MIB, 0, 0};
	struct metric_scale one = {1, MIB, 2, 4096, 1000 * MIB, 60 * MIB, 0, 240 * MIB};

	(void)state;
	assert_int_equal(tolerance("load_mapped_peak", 240 * MIB, &four), 180 * MIB);
	assert_int_equal(tolerance("load_mapped_peak", 20 * MIB, &four), 60 * MIB);
	assert_int_equal(tolerance("load_mapped_peak", 0, &four), 2 * 4096);
	assert_int_equal(tolerance("load_mapped_peak", 240 * MIB, &one), 2 * 4096);
	assert_int_equal(tolerance("load_anonymous_copy_peak", 240 * MIB, &four), 180 * MIB);
	assert_int_equal(tolerance("load_anonymous_copy_peak", 0, &four), 64 * MIB);
	assert_int_equal(tolerance("load_modelled_peak", 1000 * MIB, &four), 180 * MIB);
	assert_int_equal(tolerance("load_factor", 10000, &four), 1800);
	/* Mapped files that are not copied are in no sum. */
	assert_int_equal(tolerance("load_mapped_peak", 240 * MIB, &mapped), 180 * MIB);
	assert_int_equal(tolerance("load_modelled_peak", 1000 * MIB, &mapped), 128 * MIB);
	assert_int_equal(tolerance("load_device_peak", 1000 * MIB, &four), 64 * MIB);
	assert_int_equal(tolerance("load_host_peak", 1000 * MIB, &four), 64 * MIB);
}

/* Only the sampled one warns, and only it wants several runs. */
static void test_sampled(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		bool pool = i == (int)metric_find("pool_peak");

		assert_int_equal(metric_rows[i].sampled, pool);
		assert_true(metric_rows[i].warn == (pool ? 0.05 : 0));
		assert_non_null(metric_rows[i].help);
		assert_int_equal(metric_find(metric_rows[i].name), i);
	}
	assert_int_equal(metric_find("load_device"), METRIC_COUNT);
	assert_int_equal(metric_find(""), METRIC_COUNT);
}

static void assert_printed(enum metric metric, uint64_t lo, uint64_t hi, const char *expected)
{
	char text[METRIC_TEXT];

	assert_string_equal(metric_print(metric, (struct range){lo, hi}, text), expected);
}

static void test_print(void **state)
{
	(void)state;
	assert_printed(METRIC_DEVICE, 0, 0, "0 bytes");
	assert_printed(METRIC_DEVICE, 3 * GIB / 2, 3 * GIB / 2, "1.50 GiB");
	assert_printed(METRIC_DEVICE, GIB, 3 * GIB / 2, "1.00 to 1.50 GiB");
	assert_printed(METRIC_DEVICE, GIB, UINT64_MAX, "at least 1.00 GiB");
	assert_printed(METRIC_DEVICE, 0, UINT64_MAX, "unknown");
	assert_printed(METRIC_FACTOR, 20012, 20012, "2.0012");
	assert_printed(METRIC_FACTOR, 0, 0, "0.0000");
	assert_printed(METRIC_FACTOR, 10000, 20000, "1.0000 to 2.0000");
	assert_printed(METRIC_FACTOR, 0, 20000, "up to 2.0000");
	assert_printed(METRIC_READ, 10000, UINT64_MAX, "at least 1.0000");
	assert_printed(METRIC_READ, 0, UINT64_MAX, "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tolerances),      cmocka_unit_test(test_tolerances_by_scale),
		cmocka_unit_test(test_several_threads), cmocka_unit_test(test_files_of_several_threads),
		cmocka_unit_test(test_sampled),         cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
