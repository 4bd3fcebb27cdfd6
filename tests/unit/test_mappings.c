/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the table of private weight mappings against what programs do with them: partial unmaps,
 * mappings over mappings, moves. A range in it that is something else would be counted as copies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/mappings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define P UINT64_C(4096)

static struct mappings table;

static int set_up(void **state)
{
	(void)state;
	table = (struct mappings){.page_size = P};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mappings_release(&table);
	return 0;
}

static void map(uint64_t page, uint64_t bytes, uint64_t file, uint64_t prot, uint64_t flags)
{
	const struct st_ev_map event = {.addr = page * P,
	                                .size = bytes,
	                                .file = file,
	                                .prot = prot,
	                                .flags = flags,
	                                .offset = 100 * P};

	mappings_map(&table, &event, file != 0);
}

static void map_weights(uint64_t page, uint64_t pages)
{
	map(page, pages * P, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

/* Pages "first-end@offset ..." of the table. */
static void check(const char *expected)
{
	char text[512] = "", part[64];
	uint32_t i;

	for (i = 0; i < table.count; i++) {
		const struct mapping *mapping = &table.all[i];

		snprintf(part, sizeof(part), "%s%d-%d@%d", i ? " " : "", (int)(mapping->start / P),
		         (int)(mapping->end / P), (int)(mapping->offset / P) - 100);
		strcat(text, part);
	}
	assert_string_equal(text, expected);
}

static void test_map(void **state)
{
	(void)state;
	map(50, 10 * P + 1, 1, PROT_READ, MAP_PRIVATE); /* 11 pages */
	map_weights(10, 10);
	map(100, P, 1, PROT_READ, MAP_SHARED);  /* never has pages of its own */
	map(200, P, 0, PROT_READ, MAP_PRIVATE); /* anonymous */
	check("10-20@0 50-61@0");
	assert_true(table.all[0].written);
	assert_false(table.all[1].written);
}

static void test_unmap(void **state)
{
	uint64_t changes;

	(void)state;
	map_weights(10, 10);
	changes = table.changes;
	mappings_unmap(&table, 30 * P, P);
	assert_int_equal(table.changes, changes);
	mappings_unmap(&table, 12 * P, P + 1); /* 2 pages out of the middle */
	check("10-12@0 14-20@4");
	assert_true(table.changes > changes);
	mappings_unmap(&table, 0, 11 * P);
	check("11-12@1 14-20@4");
	mappings_unmap(&table, 11 * P, 100 * P);
	check("");
}

static void test_map_over(void **state)
{
	(void)state;
	map_weights(10, 10);
	map(12, 2 * P, 0, PROT_READ, MAP_PRIVATE | MAP_FIXED);
	check("10-12@0 14-20@4");
	map_weights(11, 5);
	check("10-11@0 11-16@0 16-20@6");
}

static void test_remap(void **state)
{
	struct st_ev_remap event = {.addr = 10 * P, .size = 4 * P, .new_addr = 40 * P, .new_size = 6 * P};

	(void)state;
	map_weights(10, 10);
	mappings_remap(&table, &event);
	check("14-20@4 40-46@0");
	event = (struct st_ev_remap){.addr = 40 * P, .size = 6 * P, .new_addr = 40 * P, .new_size = 2 * P};
	mappings_remap(&table, &event);
	check("14-20@4 40-42@0");
	event = (struct st_ev_remap){.addr = 15 * P, .size = P, .new_addr = 0};
	mappings_remap(&table, &event); /* it failed */
	check("14-20@4 40-42@0");
	event = (struct st_ev_remap){
		.addr = 16 * P, .size = 2 * P, .new_addr = 60 * P, .new_size = 2 * P, .flags = 4};
	mappings_remap(&table, &event); /* MREMAP_DONTUNMAP */
	check("14-16@4 16-20@6 40-42@0 60-62@6");
}

static void test_protect(void **state)
{
	struct st_ev_protect event = {.addr = 12 * P, .size = P, .prot = PROT_READ | PROT_WRITE};

	(void)state;
	map(10, 5 * P, 1, PROT_READ, MAP_PRIVATE);
	map(30, 5 * P, 1, PROT_READ, MAP_PRIVATE);
	mappings_protect(&table, &event);
	assert_true(table.all[0].written);
	assert_false(table.all[1].written);
	event.prot = PROT_READ;
	mappings_protect(&table, &event);
	assert_true(table.all[0].written); /* what was copied stays copied */
}

/* Against a table of pages, one by one. */
static void test_against_pages(void **state)
{
	unsigned char pages[256] = {0};
	unsigned seed = 1, step;

	(void)state;
	for (step = 0; step < 20000; step++) {
		uint64_t start = 1 + (unsigned)rand_r(&seed) % 200, count = 1 + (unsigned)rand_r(&seed) % 50,
			 i, at = 0;
		bool mapped = rand_r(&seed) % 2;

		if (mapped)
			map_weights(start, count);
		else
			mappings_unmap(&table, start * P, count * P);
		memset(pages + start, mapped, count);
		for (i = 0; i < 256; i++) {
			while (at < table.count && table.all[at].end <= i * P)
				at++;
			if (pages[i] != (at < table.count && table.all[at].start <= i * P))
				fail_msg("page %d after step %u", (int)i, step);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unmap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_map_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_remap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_protect, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_against_pages, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
