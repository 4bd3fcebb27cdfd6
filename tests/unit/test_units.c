/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the sizes and times that people write: every byte counts in a budget, and nothing may wrap around. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "analyzer/units.h"

#define KIB       (UINT64_C(1) << 10)
#define GIB       (UINT64_C(1) << 30)
#define UNTOUCHED UINT64_C(0xABCDEF)

typedef int parser(const char *text, uint64_t *ret_value);

struct sample {
	const char *text;
	int error;
	uint64_t value;
};

static void check(parser *parse, const struct sample *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;
		int error = parse(samples[i].text, &value);

		if (error != samples[i].error || value != (error ? UNTOUCHED : samples[i].value))
			print_error("\"%s\": %d, %llu\n", samples[i].text, error, (unsigned long long)value);
		assert_int_equal(error, samples[i].error);
		assert_int_equal(value, error ? UNTOUCHED : samples[i].value);
	}
}

static void sizes_are_read(void **state)
{
	static const struct sample samples[] = {
		{"0", 0, 0},
		{"4096", 0, 4096},
		{"4096B", 0, 4096},
		{"0x1000", 0, 4096},
		{"0XfF", 0, 255},
		{"1.5GiB", 0, GIB + GIB / 2},
		{"512 MiB", 0, GIB / 2},
		{"121.7GiB", 0, 130674379981},
		{"24G", 0, 24 * GIB},
		{"2GB", 0, 2000000000},
		{"1kB", 0, 1000},
		{"0.5KiB", 0, 512},
		{"0.3KiB", 0, 307}, /* 307.2 */
		{"0.0009765625KiB", 0, 1},
		{"16777215.999TiB", 0, UINT64_C(0xFFFFFFFFBE76C8B4)},
		{"18446744073709551615", 0, UINT64_MAX},
		{"0xffffffffffffffff", 0, UINT64_MAX},
		{"1.00000000000000000000000000000000001KiB", 0, KIB},
	};

	(void)state;
	check(size_parse, samples, sizeof(samples) / sizeof(*samples));
}

static void wrong_sizes_are_refused(void **state)
{
	static const struct sample samples[] = {
		{"", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"GiB", -EINVAL, 0},
		{"1.5", -EINVAL, 0},
		{"1.GiB", -EINVAL, 0},
		{".5GiB", -EINVAL, 0},
		{"1,5GiB", -EINVAL, 0},
		{"1GiBx", -EINVAL, 0},
		{"1gib", -EINVAL, 0},
		{"1  GiB", -EINVAL, 0},
		{"0x", -EINVAL, 0},
		{"0x1G", -EINVAL, 0},
		{"12s", -EINVAL, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"0x10000000000000000", -ERANGE, 0},
		{"16777216TiB", -ERANGE, 0},
		{"16777215.9999999999999999TiB", -ERANGE, 0},
		{"99999999999999999999GiB", -ERANGE, 0},
	};

	(void)state;
	check(size_parse, samples, sizeof(samples) / sizeof(*samples));
}

static void times_are_read(void **state)
{
	static const struct sample samples[] = {
		{"12.5s", 0, UINT64_C(12500000000)},
		{"300ms", 0, 300000000},
		{"7us", 0, 7000},
		{"40ns", 0, 40},
		{"40", 0, 40},
		{"2min", 0, UINT64_C(120000000000)},
		{"1h", 0, UINT64_C(3600000000000)},
		{"0.000000001s", 0, 1},
		{"5m", -EINVAL, 0},
		{"1GiB", -EINVAL, 0},
		{"18446744073.8s", -ERANGE, 0},
	};

	(void)state;
	check(time_parse, samples, sizeof(samples) / sizeof(*samples));
}

static void counts_have_no_unit(void **state)
{
	static const struct sample samples[] = {
		{"17", 0, 17}, {"0x11", 0, 17}, {"1K", -EINVAL, 0}, {"1.0", -EINVAL, 0}, {"1s", -EINVAL, 0},
	};

	(void)state;
	check(count_parse, samples, sizeof(samples) / sizeof(*samples));
}

static void printing_is_short_and_exact(void **state)
{
	char text[UNITS_TEXT];

	(void)state;
	assert_string_equal(size_print(0, text), "0");
	assert_string_equal(size_print(1023, text), "1023");
	assert_string_equal(size_print(1024, text), "1KiB");
	assert_string_equal(size_print(GIB + GIB / 2, text), "1.5GiB");
	assert_string_equal(size_print(GIB + 1, text), "1073741825");
	assert_string_equal(size_print(UINT64_MAX, text), "18446744073709551615");
	assert_string_equal(time_print(UINT64_C(12500000000), text), "12.5s");
	assert_string_equal(time_print(300000000, text), "300ms");
	assert_string_equal(time_print(UINT64_C(1234567891), text), "1234567891");
}

/* Whatever is printed reads back to the same value: neighbours of every power of two and of ten. */
static void what_is_printed_reads_back(void **state)
{
	uint64_t ten = 1;

	(void)state;
	for (unsigned bit = 0; bit<64; bit++, ten = ten> UINT64_MAX / 10 ? 1 : ten * 10)
		for (uint64_t delta = 0; delta < 3; delta++) {
			const uint64_t values[] = {(UINT64_C(1) << bit) + delta - 1, ten + delta - 1,
			                           (UINT64_C(125) << (bit % 57)) + delta - 1};

			for (size_t i = 0; i < 3; i++) {
				char text[UNITS_TEXT];
				uint64_t back;

				assert_int_equal(size_parse(size_print(values[i], text), &back), 0);
				assert_int_equal(back, values[i]);
				assert_int_equal(time_parse(time_print(values[i], text), &back), 0);
				assert_int_equal(back, values[i]);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(wrong_sizes_are_refused),
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(counts_have_no_unit),
		cmocka_unit_test(printing_is_short_and_exact),
		cmocka_unit_test(what_is_printed_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
