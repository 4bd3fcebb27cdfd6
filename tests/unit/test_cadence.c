/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the recorder's price: often only while bytes move, and never dearer than its share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/cadence.h"
#include "preload/recorder/clock.h"

#define GIB (UINT64_C(1) << 30)

static struct cadence make(void)
{
	return (struct cadence){.rest = SECOND, .load = 100 * MILLISECOND, .edge = 10 * MILLISECOND};
}

static void test_phases(void **state)
{
	struct cadence cadence = make();

	(void)state;
	cadence_see(&cadence, 60 * GIB, 120 * GIB);
	assert_int_equal(cadence_interval(&cadence, 5 * SECOND, 1), SECOND);
	cadence_move(&cadence, 5 * SECOND);
	assert_true(cadence_has_moved(&cadence, 4 * SECOND));
	assert_false(cadence_has_moved(&cadence, 5 * SECOND));
	assert_int_equal(cadence_interval(&cadence, 5 * SECOND, 1), 100 * MILLISECOND);
	assert_int_equal(cadence_interval(&cadence, 6 * SECOND, 1), SECOND);
	cadence_see(&cadence, 3 * GIB, 120 * GIB); /* it falls without any call that we see */
	assert_int_equal(cadence_interval(&cadence, 6 * SECOND, 1), 10 * MILLISECOND);
	cadence_see(&cadence, 3 * GIB, 120 * GIB); /* little memory, but nothing happens */
	assert_int_equal(cadence_interval(&cadence, 6 * SECOND, 1), SECOND);
}

static void test_price(void **state)
{
	struct cadence cadence = make();

	(void)state;
	cadence_see(&cadence, 60 * GIB, 120 * GIB);
	assert_int_equal(cadence_interval(&cadence, SECOND, 50 * MILLISECOND), 5 * SECOND);
	cadence_move(&cadence, SECOND);
	assert_int_equal(cadence_interval(&cadence, SECOND, 50 * MILLISECOND), SECOND);
	cadence_see(&cadence, GIB, 120 * GIB);
	assert_int_equal(cadence_interval(&cadence, SECOND, 50 * MILLISECOND), 500 * MILLISECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_price),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
