/* SPDX-License-Identifier: Apache-2.0 */
/* Writer and reader of baselines agree: --update never leaves a file that the next `check` refuses. */
#include <errno.h>
#include <string.h>

#include "analyzer/baseline_parts.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_written_is_taken, folder_up, folder_down),
		cmocka_unit_test_setup_teardown(what_would_not_be_taken_is_not_written, folder_up,
	                                        folder_down),
		cmocka_unit_test_setup_teardown(a_baseline_of_nothing_is_refused, folder_up, folder_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
