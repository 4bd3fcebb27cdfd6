/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the names in stacks: a trace must explain itself on another machine, and never name the wrong library. */
#include <analyzer/names.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "records.h"

static void play(struct names *names, const struct st_record *record)
{
	assert_int_equal(names_record(names, record), 0);
}

static void play_module(struct names *names, uint64_t start, uint64_t end, const char *path)
{
	play(names,
	     record_tail(RECORD(module, .start = start, .end = end, .offset = 0x1000), path, strlen(path)));
}

static void test_names(void **state)
{
	const uint64_t stack[] = {0x5010, 0x6000, 0x9999};
	struct names *names;
	struct frame frame;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	play(names, record_tail(RECORD(stack, .id = 3, .flags = 1u << ST_STACK_CUT), stack, sizeof(stack)));
	play(names, record_tail(RECORD(stack, .id = UINT64_MAX), stack, sizeof(stack)));
	play_module(names, 0x5000, 0x6000, "/lib/libfirst.so");
	play_module(names, 0x6000, 0x7000, "/lib/libsecond.so");
	play(names, record_tail(RECORD(symbol, .address = 0x5010, .offset = 0x10), "load", 4));
	play(names, record_tail(RECORD(thread, .tid = 77), "loader", 6));
	assert_int_equal(names_depth(names, 3), 3);
	assert_int_equal(names_depth(names, 2), 0);
	assert_int_equal(names_depth(names, 4000000), 0);
	assert_true(names_stack_is_cut(names, 3));
	frame = names_frame(names, 3, 0);
	assert_string_equal(frame.function, "load");
	assert_int_equal(frame.offset, 0x10);
	assert_string_equal(frame.module, "/lib/libfirst.so");
	frame = names_frame(names, 3,
	                    1); /* returns behind the last byte of the first: the call was in there */
	assert_string_equal(frame.module, "/lib/libfirst.so");
	assert_null(frame.function);
	assert_int_equal(frame.offset, 0x2000);
	assert_null(names_frame(names, 3, 2).module);
	assert_string_equal(names_thread(names, 77), "loader");
	assert_null(names_thread(names, 78));
	/* Another library came to lie where the first one was. */
	play_module(names, 0x4000, 0x5800, "/lib/libthird.so");
	assert_string_equal(names_frame(names, 3, 0).module, "/lib/libthird.so");
	assert_string_equal(names_frame(names, 3, 1).module, "/lib/libfirst.so");
	names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
