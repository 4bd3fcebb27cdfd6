/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what SPARKTRACE_RELIEF stands on: the table of ranges under cuts and when it is full, the bound on faults, the
 * program's wish for SIGSEGV beside readers, the masks that go to the kernel and come back, and the words of the setting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "preload/shim/relief_table.h"
#include "preload/shim/settings.h"
#include "preload/shim/signal_wish.h"
#include "preload/shim/signals.h"

#define GIB (UINT64_C(1) << 30)

static struct relief_range range(uintptr_t start, uintptr_t end, uint64_t offset)
{
	return (struct relief_range){.start = start, .end = end, .offset = offset, .file = 3};
}

static void add(uintptr_t start, uintptr_t end, uint64_t offset)
{
	struct relief_range one = range(start, end, offset);

	assert_true(relief_table_add(&one));
}

static void expect(uintptr_t address, uintptr_t start, uintptr_t end, uint64_t offset)
{
	const struct relief_range *found = relief_table_find(address);

	assert_non_null(found);
	assert_int_equal(found->start, start);
	assert_int_equal(found->end, end);
	assert_int_equal(found->offset, offset);
	assert_int_equal(found->file, 3);
}

static void clear(void)
{
	struct relief_range rest;

	assert_true(relief_table_cut(0, UINTPTR_MAX, &rest));
	assert_int_equal(relief_table_count(), 0);
}

static void what_is_cut_is_gone_and_the_rest_is_not(void **state)
{
	struct relief_range rest;

	(void)state;
	add(0x10000, 0x40000, 0x1000);
	add(0x40000, 0x50000, 0);
	assert_true(relief_table_cut(0x20000, 0x30000, &rest));
	assert_int_equal(relief_table_count(), 3);
	expect(0x1ffff, 0x10000, 0x20000, 0x1000);
	assert_null(relief_table_find(0x20000));
	assert_null(relief_table_find(0x2ffff));
	expect(0x30000, 0x30000, 0x40000, 0x21000);
	expect(0x40000, 0x40000, 0x50000, 0);
	assert_true(relief_table_cut(0x38000, 0x48000, &rest));
	expect(0x37fff, 0x30000, 0x38000, 0x21000);
	expect(0x48000, 0x48000, 0x50000, 0x8000);
	assert_false(relief_table_meets(0x38000, 0x48000));
	assert_true(relief_table_meets(0x38000, 0x48001));
	assert_true(relief_table_meets(0x37fff, 0x38000));
	assert_false(relief_table_meets(0x50000, UINTPTR_MAX));
	clear();
	assert_false(relief_table_meets(0, UINTPTR_MAX));
}

/* A store into what was not taken would kill: whoever adds must hear of it, and so must who cuts in two. */
static void a_full_table_says_so(void **state)
{
	struct relief_range one, rest;
	uintptr_t at = 0x100000;

	(void)state;
	for (one = range(at, at + 0x30000, 0); relief_table_add(&one); one = range(at, at + 0x30000, 0))
		at += 0x100000;
	assert_in_range(relief_table_count(), 100, 100000);
	assert_false(relief_table_cut(0x110000, 0x120000, &rest));
	assert_int_equal(rest.start, 0x120000);
	assert_int_equal(rest.end, 0x130000);
	assert_null(relief_table_find(0x120000));
	assert_true(relief_table_cut(0x200000, 0x210000, &rest));
	clear();
}

/* Neither faults nor mappings (two more a group) may grow with the size of a model. */
static void a_gibibyte_takes_few_faults(void **state)
{
	struct relief_range one = range(0, GIB, 0);
	uint64_t opened = 0;

	(void)state;
	assert_int_equal(relief_table_group(&one), 64 << 10);
	for (; opened < GIB; one.faults++)
		opened += relief_table_group(&one);
	assert_in_range(one.faults, 16, 200);
	one.faults = UINT32_MAX;
	assert_true(relief_table_group(&one) >= GIB);
}

static void handler(int number)
{
	(void)number;
}

static struct sigaction wish(uint64_t number)
{
	struct sigaction action = {.sa_flags = (int)number};

	action.sa_handler = handler;
	memset(&action.sa_mask, (int)number, sizeof(action.sa_mask));
	return action;
}

static void a_wish_replaces_the_one_before(void **state)
{
	struct sigaction first = wish(4), second = wish(8), old;
	uint32_t number;

	(void)state;
	wish_read(&old);
	assert_true(old.sa_handler == SIG_DFL);
	number = wish_number();
	wish_set(&first, &old);
	assert_true(old.sa_handler == SIG_DFL);
	assert_int_not_equal(wish_number(), number);
	wish_set(&second, &old);
	assert_memory_equal(&old, &first, sizeof(old));
	wish_take(&old);
	wish_take(&old);
	assert_memory_equal(&old, &second, sizeof(old));
}

static void a_handler_for_once_is_taken_once(void **state)
{
	struct sigaction once = {.sa_flags = (int)SA_RESETHAND}, seen;

	(void)state;
	once.sa_handler = handler;
	wish_set(&once, NULL);
	wish_read(&seen);
	assert_true(seen.sa_handler == handler);
	wish_take(&seen);
	assert_true(seen.sa_handler == handler);
	wish_take(&seen);
	assert_true(seen.sa_handler == SIG_DFL);
	assert_int_equal(seen.sa_flags, once.sa_flags); /* the kernel keeps them too */
}

static _Atomic bool over;
static _Atomic uint64_t torn, reads;

static void *read_wishes(void *arg)
{
	struct sigaction seen;

	while (!over) {
		uint64_t word = 0;

		wish_read(&seen);
		memcpy(&word, &seen.sa_mask, 1);
		torn += seen.sa_handler != handler || (uint8_t)seen.sa_flags != word;
		reads++;
	}
	return arg;
}

static void readers_see_whole_wishes(void **state)
{
	struct sigaction some = wish(1);
	pthread_t reader;

	(void)state;
	wish_set(&some, NULL);
	assert_int_equal(pthread_create(&reader, NULL, read_wishes, NULL), 0);
	for (uint64_t i = 0; i < 100000 || reads < 1000; i++) {
		some = wish(i % 127);
		wish_set(&some, NULL);
	}
	over = true;
	pthread_join(reader, NULL);
	assert_int_equal(torn, 0);
}

static void sigsegv_is_never_blocked_and_reads_as_blocked(void **state)
{
	const uint64_t segv = SIGNAL_BIT(SIGSEGV), standin = SIGNAL_BIT(SIGNALS_STANDIN),
		       usr1 = SIGNAL_BIT(SIGUSR1);

	(void)state;
	assert_int_equal(mask_hidden(0), 0);
	assert_int_equal(mask_hidden(usr1), usr1);
	assert_int_equal(mask_hidden(segv | usr1), standin | usr1);
	assert_int_equal(mask_hidden(UINT64_MAX), UINT64_MAX & ~segv);
	assert_int_equal(mask_hidden(standin), 0); /* alone it means nothing: it would be read as SIGSEGV */
	assert_int_equal(mask_shown(mask_hidden(UINT64_MAX)), UINT64_MAX);
	assert_int_equal(mask_shown(mask_hidden(UINT64_MAX & ~segv & ~standin)),
	                 UINT64_MAX & ~segv & ~standin);
	assert_int_equal(mask_shown(mask_hidden(usr1)), usr1);
}

static void the_setting_takes_both_words(void **state)
{
	static char text[64][SETTING_TEXT];
	static const struct {
		const char *value;
		size_t wrong;
		uint64_t bits;
	} rows[] = {
		{"off", 0, 0},
		{"readonly", 0, RELIEF_READONLY},
		{"drop", 0, RELIEF_DROP},
		{"readonly,drop", 0, RELIEF_READONLY | RELIEF_DROP},
		{"drop,readonly", 0, RELIEF_READONLY | RELIEF_DROP},
		{"", 1, 0},
		{"on", 1, 0},
		{"readonly,", 1, 0},
		{"readonly drop", 1, 0},
		{"off,drop", 1, 0},
		{"readonly,dropwhatisnotused", 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char variable[64] = "SPARKTRACE_RELIEF=";
		char *variables[] = {strcat(variable, rows[i].value), NULL};
		struct settings settings;
		const char *wrong[64];

		assert_int_equal(settings_parse(variables, &settings, text, wrong), rows[i].wrong);
		assert_int_equal(settings.relief, rows[i].bits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_cut_is_gone_and_the_rest_is_not),
		cmocka_unit_test(a_full_table_says_so),
		cmocka_unit_test(a_gibibyte_takes_few_faults),
		cmocka_unit_test(a_wish_replaces_the_one_before),
		cmocka_unit_test(a_handler_for_once_is_taken_once),
		cmocka_unit_test(readers_see_whole_wishes),
		cmocka_unit_test(sigsegv_is_never_blocked_and_reads_as_blocked),
		cmocka_unit_test(the_setting_takes_both_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
