/* SPDX-License-Identifier: Apache-2.0 */
/* Writer and reader of baselines agree: --update never leaves a file that the next `check` refuses. */
#include <errno.h>
#include <string.h>

#include "analyzer/baseline_parts.h"
#include "analyzer/check_parts.h"
#include "baseline_file.h"
#include "measures.h"

/* Whatever a trace made of its numbers: a weight file of a few bytes has a factor that no model has. */
static void what_is_written_is_taken(void **state)
{
	static const struct {
		enum metric metric;
		struct range value, taken;
	} rows[] = {
		{METRIC_FACTOR, {10000000000001, 10000000000001}, {10000000000001, 10000000000001}},
		{METRIC_FACTOR, {999999999999999, 999999999999999}, {999999999999999, 999999999999999}},
		{METRIC_FACTOR, {UINT64_MAX - 1, UINT64_MAX - 1}, {1000000000000000, UINT64_MAX}},
		{METRIC_DEVICE, {INT64_MAX, INT64_MAX}, {INT64_MAX, INT64_MAX}},
		{METRIC_DEVICE, {5, UINT64_MAX - 1}, {5, UINT64_MAX}},
		{METRIC_DEVICE, {UINT64_MAX - 1, UINT64_MAX - 1}, {INT64_MAX, UINT64_MAX}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct measure m = measure_example();
		struct measures back = {0};

		m.values[rows[i].metric] = rows[i].value;
		m.scale.released = m.weights = UINT64_MAX - i;
		assert_int_equal(baseline_write(path, &m), 0);
		assert_int_equal(baseline_read(path, &back), 0);
		assert_memory_equal(&back.runs[0].values[rows[i].metric], &rows[i].taken,
		                    sizeof(rows[i].taken));
		measures_release(&back);
	}
}

/* Neither what would let everything pass, nor what is too large to be read again. */
static void what_would_not_be_taken_is_not_written(void **state)
{
	char *name = malloc(BASELINE_BYTES_MAX + 1);
	struct measure m = measure_example();

	(void)state;
	memset(name, 'x', BASELINE_BYTES_MAX);
	name[BASELINE_BYTES_MAX] = '\0';
	m.fingerprint.allocator = name;
	assert_int_equal(baseline_write(path, &m), -EFBIG);
	m = measure_example();
	for (int i = 0; i < METRIC_COUNT; i++)
		m.values[i] = RANGE_UNKNOWN;
	assert_int_equal(baseline_write(path, &m), -ENODATA);
	assert_int_equal(access(path, F_OK), -1);
	free(name);
}

/* What a file says by intervals without ends is as much as nothing. */
static void a_baseline_of_nothing_is_refused(void **state)
{
	struct measure m = measure_example();
	struct measures back = {0};
	char text[1 << 14] = "", *metrics, *end;
	FILE *file;

	(void)state;
	assert_int_equal(baseline_write(path, &m), 0);
	file = fopen(path, "r+");
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	metrics = strstr(text, "\"metrics\": {");
	end = metrics ? strchr(metrics, '}') : NULL;
	assert_non_null(end);
	rewind(file);
	fprintf(file, "%.*s\"metrics\": {\"load_device_peak\": [0, null]%s", (int)(metrics - text), text,
	        end);
	assert_int_equal(ftruncate(fileno(file), ftell(file)), 0);
	fclose(file);
	assert_int_equal(baseline_read(path, &back), -EINVAL);
}

/* Of several runs the largest values count, and what tolerances depend on; the parts are those of the run that needed most. */
static void of_several_runs_the_largest_is_taken(void **state)
{
	static char small_name[] = "small", large_name[] = "large";
	struct part small = {METRIC_DEVICE, PART_FILE, small_name, {GIB, GIB}, NULL};
	struct part large = {METRIC_DEVICE, PART_FILE, large_name, {2 * GIB, 2 * GIB}, NULL};
	struct measure runs[] = {measure_example(), measure_example(), measure_example()};
	struct measures measures = {.runs = runs, .count = 3}, back = {0};
	const struct measure *b;

	(void)state;
	runs[0].breakdown = runs[2].breakdown = (struct breakdown){&small, 1};
	runs[1].breakdown = (struct breakdown){&large, 1};
	runs[1].values[METRIC_MODELLED] = range_of(2 * GIB);
	runs[2].values[METRIC_ANON] = range_of(MIB);
	runs[0].values[METRIC_POOL] = range_of(5);
	runs[0].scale.largest_tensor = 30 * MIB;
	runs[0].scale.released = 40 * MIB;
	runs[2].scale.mappings = 7;
	assert_int_equal(check_update(path, &measures), 0);
	assert_int_equal(baseline_read(path, &back), 0);
	b = &back.runs[0];
	assert_int_equal(b->values[METRIC_MODELLED].hi, 2 * GIB);
	assert_int_equal(b->values[METRIC_ANON].hi, MIB);
	assert_int_equal(b->values[METRIC_POOL].hi, 5);
	assert_int_equal(b->scale.largest_tensor, 30 * MIB);
	assert_int_equal(b->scale.released, 40 * MIB);
	assert_int_equal(b->scale.mappings, 7);
	assert_non_null(breakdown_find(&b->breakdown, METRIC_DEVICE, PART_FILE, "large"));
	assert_null(breakdown_find(&b->breakdown, METRIC_DEVICE, PART_FILE, "small"));
	measures_release(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_written_is_taken, folder_up, folder_down),
		cmocka_unit_test_setup_teardown(what_would_not_be_taken_is_not_written, folder_up,
	                                        folder_down),
		cmocka_unit_test_setup_teardown(a_baseline_of_nothing_is_refused, folder_up, folder_down),
		cmocka_unit_test_setup_teardown(of_several_runs_the_largest_is_taken, folder_up, folder_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
