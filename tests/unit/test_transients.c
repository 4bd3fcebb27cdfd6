/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the account of what came and went during a load: bytes by stack, and the most at once, of nothing
 * but what really came and went; what stays, what was there before, and what the end of the run takes away are
 * no temporaries.
 */
#include <analyzer/transients.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "records.h"

#define HEAP   UINT64_C(0x10000000)
#define DEVICE UINT64_C(0x700000000)
#define ANON   (MAP_PRIVATE | MAP_ANONYMOUS)

struct run {
	struct catalog catalog;
	struct replay replay;
	struct transients transients;
	struct model model;
	enum phase phase;
};

static int up(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	replay_init(&run->replay, &run->catalog, NULL);
	run->phase = PHASE_LOAD;
	*state = run;
	return 0;
}

static int down(void **state)
{
	struct run *run = *state;

	transients_release(&run->transients);
	replay_release(&run->replay);
	catalog_release(&run->catalog);
	free(run->model.transients);
	free(run);
	return 0;
}

static void see(struct run *run, const struct st_record *record)
{
	assert_int_equal(replay_record(&run->replay, record), 0);
	assert_int_equal(transients_record(&run->transients, record, run->phase, &run->replay), 0);
}

#define SEE(kind, ...)              see(run, RECORD(kind, __VA_ARGS__))
#define HOST(addr_, size_, stack_)  SEE(alloc, .addr = (addr_), .size = (size_), .stack = (stack_))
#define DROP(addr_)                 SEE(free, .addr = (addr_))
#define BLOCK(addr_, size_, stack_) SEE(device_alloc, .addr = (addr_), .size = (size_), .stack = (stack_))
#define H2D(dst_, src_, size_, stack_) \
	SEE(copy, .dst = (dst_), .src = (src_), .size = (size_), .how = ST_COPY_H2D, .stack = (stack_))

static void finish(struct run *run)
{
	assert_int_equal(transients_fill(&run->transients, &run->model), 0);
}

static void expect(const struct run *run, enum transient_kind kind, uint64_t count, uint64_t bytes,
                   uint64_t at_once)
{
	const struct transient_sum *sum = &run->model.transient_sums[kind];

	assert_int_equal(sum->count, count);
	assert_int_equal(sum->bytes, bytes);
	assert_int_equal(sum->at_once, at_once);
}

/* Two of one stack overlap, one of another comes later: sums of each, and the most at once of all. */
static void blocks_are_counted_by_their_stack(void **state)
{
	struct run *run = *state;
	const struct transient_site *sites;

	HOST(HEAP, 4 * MIB, 7);
	HOST(HEAP + 8 * MIB, 2 * MIB, 7);
	DROP(HEAP);
	HOST(HEAP, 3 * MIB, 9);
	DROP(HEAP + 8 * MIB);
	DROP(HEAP);
	HOST(HEAP, 4 * MIB, 7);
	DROP(HEAP);
	finish(run);
	expect(run, TRANSIENT_HOST, 4, 13 * MIB, 6 * MIB);
	sites = run->model.transients;
	assert_int_equal(run->model.transient_count, 2);
	assert_int_equal(sites[0].stack, 7);
	assert_int_equal(sites[0].count, 3);
	assert_int_equal(sites[0].bytes, 10 * MIB);
	assert_int_equal(sites[0].at_once, 6 * MIB);
	assert_int_equal(sites[0].largest, 4 * MIB);
	assert_int_equal(sites[1].stack, 9);
	assert_int_equal(sites[1].bytes, 3 * MIB);
}

static void what_stays_or_was_there_before_is_none(void **state)
{
	struct run *run = *state;

	run->phase = PHASE_START;
	HOST(HEAP, 4 * MIB, 1);
	BLOCK(DEVICE, 4 * MIB, 1);
	run->phase = PHASE_LOAD;
	HOST(HEAP + 16 * MIB, 4 * MIB, 1);
	BLOCK(DEVICE + 16 * MIB, 4 * MIB, 1);
	DROP(HEAP);
	SEE(device_free, .addr = DEVICE);
	run->phase = PHASE_END;
	DROP(HEAP + 16 * MIB);
	SEE(device_free, .addr = DEVICE + 16 * MIB);
	finish(run);
	assert_int_equal(run->model.transient_count, 0);
}

/* The last copy ends the load, its source goes thereafter; what the program drops later is another matter. */
static void the_source_of_the_last_copy_may_go_late(void **state)
{
	struct run *run = *state;

	BLOCK(DEVICE, 8 * MIB, 1);
	HOST(HEAP, 4 * MIB, 1);
	HOST(HEAP + 16 * MIB, 4 * MIB, 2);
	H2D(DEVICE, HEAP + MIB, MIB, 3);
	run->phase = PHASE_SETTLE;
	DROP(HEAP);
	DROP(HEAP + 16 * MIB);
	finish(run);
	expect(run, TRANSIENT_HOST, 1, 4 * MIB, 4 * MIB);
	assert_int_equal(run->model.transients[0].stack, 1);
	assert_int_equal(run->model.transients[0].copied, 4 * MIB);
	expect(run, TRANSIENT_REUSED, 0, 0, 0);
}

/* Reservations and mappings of files are no memory of the program; what is mapped over is gone, piece by piece. */
static void mappings_go_in_pieces(void **state)
{
	struct run *run = *state;

	SEE(map, .addr = HEAP, .size = 64 * MIB, .prot = PROT_NONE, .flags = ANON, .stack = 1);
	SEE(unmap, .addr = HEAP, .size = 64 * MIB);
	SEE(map, .addr = HEAP, .size = 64 * MIB, .prot = PROT_READ | PROT_WRITE, .flags = MAP_PRIVATE,
	    .file = 5, .stack = 1);
	SEE(unmap, .addr = HEAP, .size = 64 * MIB);
	SEE(map, .addr = HEAP, .size = 8 * MIB - 100, .prot = PROT_READ | PROT_WRITE, .flags = ANON,
	    .stack = 2);
	SEE(unmap, .addr = HEAP + 2 * MIB, .size = MIB);
	SEE(map, .addr = HEAP, .size = MIB, .prot = PROT_READ, .flags = MAP_PRIVATE | MAP_FIXED, .file = 5,
	    .stack = 3);
	finish(run);
	assert_int_equal(run->model.transient_count, 1);
	assert_int_equal(run->model.transients[0].stack, 2);
	expect(run, TRANSIENT_HOST, 2, 2 * MIB, 2 * MIB);
}

/* In one block three tensors follow each other: the first two were overwritten, the last one is there. */
static void copies_into_a_block_that_stays(void **state)
{
	struct run *run = *state;

	BLOCK(DEVICE, 16 * MIB, 1);
	H2D(DEVICE, HEAP, 4 * MIB, 2);
	H2D(DEVICE + 4 * MIB, HEAP, 2 * MIB, 2);
	H2D(DEVICE, HEAP, 3 * MIB, 2);
	H2D(DEVICE, HEAP, 6 * MIB, 3);
	finish(run);
	/* 3 MiB of the first, then its fourth, all of the second, and 3 MiB of the third by the fourth copy. */
	expect(run, TRANSIENT_REUSED, 4, 9 * MIB, 6 * MIB);
	assert_int_equal(run->model.transient_count, 1);
	assert_int_equal(run->model.transients[0].stack, 2);
	expect(run, TRANSIENT_DEVICE, 0, 0, 0);
}

/* A block that goes takes along what was copied into it: counted once, as the block. */
static void device_blocks(void **state)
{
	struct run *run = *state;

	BLOCK(DEVICE, 16 * MIB, 1);
	H2D(DEVICE, HEAP, 4 * MIB, 2);
	SEE(device_alloc, .addr = DEVICE + 64 * MIB, .size = 16 * MIB, .stack = 1, .result = 2);
	SEE(device_free, .addr = DEVICE);
	BLOCK(DEVICE, 8 * MIB, 4);
	finish(run);
	expect(run, TRANSIENT_DEVICE, 1, 16 * MIB, 16 * MIB);
	expect(run, TRANSIENT_REUSED, 0, 0, 0);
}

/* VMM memory counts from its mapping to its unmapping, by the stack of its handle. */
static void vmm_memory(void **state)
{
	struct run *run = *state;

	SEE(reserve, .addr = DEVICE, .size = 64 * MIB);
	for (uint64_t i = 0; i < 3; i++)
		SEE(handle_create, .handle = 100 + i, .size = 20 * MIB, .stack = 5);
	SEE(handle_map, .addr = DEVICE, .size = 20 * MIB, .handle = 100);
	SEE(handle_map, .addr = DEVICE + 20 * MIB, .size = 20 * MIB, .handle = 101);
	SEE(handle_release, .handle = 102);
	SEE(handle_unmap, .addr = DEVICE + 20 * MIB, .size = 20 * MIB);
	SEE(handle_release, .handle = 101);
	finish(run);
	expect(run, TRANSIENT_DEVICE, 1, 20 * MIB, 20 * MIB);
	assert_int_equal(run->model.transients[0].stack, 5);
}

static void what_came_back_from_the_device_is_told_apart(void **state)
{
	struct run *run = *state;

	BLOCK(DEVICE, 16 * MIB, 1);
	HOST(HEAP, 4 * MIB, 6);
	SEE(copy, .dst = HEAP, .src = DEVICE, .size = 4 * MIB, .how = ST_COPY_D2H, .stack = 2);
	DROP(HEAP);
	finish(run);
	expect(run, TRANSIENT_HOST, 1, 4 * MIB, 4 * MIB);
	assert_int_equal(run->model.transients[0].returned, 4 * MIB);
	assert_int_equal(run->model.transients[0].copied, 0);
}

/* A release that failed took nothing away. */
static void a_revoked_release_is_none(void **state)
{
	struct run *run = *state;
	const uint64_t revoked[] = {96};
	struct st_record *record;

	run->replay.revoked = revoked;
	run->replay.revoked_count = 1;
	HOST(HEAP, 4 * MIB, 6);
	record = (struct st_record *)RECORD(free, .addr = HEAP);
	record->seq = ST_SEQ_MAGIC | 96;
	see(run, record);
	finish(run);
	assert_int_equal(run->model.transient_count, 0);
}

/* Sites are found again however many there are. */
static void many_stacks(void **state)
{
	struct run *run = *state;

	for (int round = 0; round < 3; round++)
		for (uint64_t stack = 1; stack <= 1000; stack++) {
			HOST(HEAP, stack * 4096, stack);
			DROP(HEAP);
		}
	finish(run);
	assert_int_equal(run->model.transient_count, 1000);
	expect(run, TRANSIENT_HOST, 3000, UINT64_C(3) * 4096 * (1000 * 1001 / 2), 1000 * 4096);
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(run->model.transients[i].stack, 1000 - i);
		assert_int_equal(run->model.transients[i].count, 3);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocks_are_counted_by_their_stack),
		TEST(what_stays_or_was_there_before_is_none),
		TEST(the_source_of_the_last_copy_may_go_late),
		TEST(mappings_go_in_pieces),
		TEST(copies_into_a_block_that_stays),
		TEST(device_blocks),
		TEST(vmm_memory),
		TEST(what_came_back_from_the_device_is_told_apart),
		TEST(a_revoked_release_is_none),
		TEST(many_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
