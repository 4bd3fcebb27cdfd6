/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the choice of a repair by version: an upgrade is offered to old versions, and only to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyzer/version.h"

/* From PEP 440: each is older than the next. */
static const char *const rising[] = {
	"0",
	"0.0.1",
	"0.7",
	"0.8.0.dev1",
	"0.8.0a1",
	"0.8.0b2",
	"0.8.0rc0",
	"0.8.0rc2",
	"0.8.0rc10",
	"0.8.0",
	"0.8.0.post1.dev1",
	"0.8.0.post1",
	"0.8.1",
	"0.9",
	"0.10",
	"0.10.1",
	"1.0.0.dev0",
	"1.0a1.dev2",
	"1.0a1",
	"1.0",
	"1.0.1",
	"2.2.0",
	"10.0",
	"2026.10.19",
	"1!0.1",
};

static void older_before_newer(void **state)
{
	size_t count = sizeof(rising) / sizeof(rising[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++) {
			int order = version_compare(rising[i], rising[k]);

			if ((order > 0) != (i > k) || (order < 0) != (i < k))
				print_error("%s, %s: %d\n", rising[i], rising[k], order);
			assert_true((order > 0) == (i > k) && (order < 0) == (i < k));
		}
}

static void ways_of_writing(void **state)
{
	static const char *const pairs[][2] = {
		{"1.0", "1.0.0"},           {"v1.0", "1"},
		{"0.8.0-rc1", "0.8rc1"},    {"0.8.0.RC.1", "0.8.0c1"},
		{"2.15.0+cu130", "2.15.0"}, {"1.0-post2", "1.0.post2"},
		{"01.02", "1.2"},           {"", "0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_int_equal(version_compare(pairs[i][0], pairs[i][1]), 0);
}

/* What a trace calls a version may be anything: it ends, and numbers without end do not wrap around. */
static void hostile(void **state)
{
	static const char *const words[] = {
		"....",
		"-",
		"!",
		"1!",
		"dev",
		"devdevdev",
		"rc",
		"a.b.c",
		"\xff\xfe",
		"1.",
		"1..2",
		"post",
		"99999999999999999999999999999999999999",
		"1.99999999999999999999999999999999999999rc",
	};
	size_t count = sizeof(words) / sizeof(words[0]);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(version_compare(words[i], words[i]), 0);
		for (size_t k = 0; k < count; k++)
			assert_int_equal(version_compare(words[i], words[k]),
			                 -version_compare(words[k], words[i]));
	}
	assert_true(version_compare("99999999999999999999999999999999999999", "3") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(older_before_newer),
		cmocka_unit_test(ways_of_writing),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
