/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the consumer of the ring: committed records only, in order, across the end of the data; the
 * tail never before the file; what a dead program left half-written is passed over, not stumbled on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/drain.h"
#include "trace_back.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE 4096u

static char folder[64], path[128];
static struct st_ring *ring;
static struct out out;
static struct drain drain;

static int set_up(void **state)
{
	struct st_file_head head = back_head(7, 8);

	(void)state;
	back_make_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/run.zst", folder);
	ring = aligned_alloc(4096, ST_RING_DATA + SIZE);
	memset(ring, 0, ST_RING_DATA + SIZE);
	ring->size = SIZE;
	out = (struct out){0};
	if (trace_create(path, &head, NULL, &out.trace))
		return -1;
	drain_init(&drain, ring, &out);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	trace_free(out.trace);
	free(ring);
	back_remove_folder(folder);
	return 0;
}

/* A producer by hand: reserves, fills, commits or not. Returns the position. */
static uint64_t produce(uint64_t bytes, bool commit)
{
	uint64_t position = atomic_load(&ring->head), left = SIZE - position % SIZE;
	struct st_record *record = (void *)(st_ring_data(ring) + position % SIZE);

	if (left < bytes) {
		if (left >= sizeof(*record)) {
			*record = (struct st_record){.kind = ST_RING_PAD, .words = 1};
			record->seq = ST_SEQ_MAGIC | position;
		}
		atomic_fetch_add(&ring->head, left);
		return produce(bytes, commit);
	}
	atomic_fetch_add(&ring->head, bytes);
	memset(record, 0x5a, bytes);
	*record = (struct st_record){.kind = ST_KIND_mark, .words = (uint16_t)(bytes / 8), .thread = 9};
	if (commit)
		record->seq = ST_SEQ_MAGIC | position;
	return position;
}

static void take_all(int expected)
{
	int rc;

	do
		rc = drain_step(&drain);
	while (rc == 1);
	assert_int_equal(rc, expected);
}

static struct trace_back *read_back(void)
{
	assert_int_equal(trace_flush(out.trace), 0);
	drain_acknowledge(&drain);
	return back_read(path);
}

static void test_many_laps(void **state)
{
	uint64_t expected[2000], i, seen = 0;
	struct trace_back *back;

	(void)state;
	for (i = 0; i < 2000; i++) {
		expected[i] = produce(24 + i % 37 * 8, true);
		if (i % 5 == 4) {
			take_all(0);
			assert_int_equal(trace_flush(out.trace), 0);
			drain_acknowledge(&drain);
			assert_int_equal(atomic_load(&ring->tail), atomic_load(&ring->head));
		}
	}
	back = read_back();
	for (i = 0; i < back->number; i++)
		if (back->record[i]->kind == ST_KIND_mark)
			assert_int_equal(back->record[i]->seq, ST_SEQ_MAGIC | expected[seen++]);
	assert_int_equal(seen, 2000);
	assert_int_equal(back_count(back, ST_KIND_coverage), 0);
	back_free(back);
}

/* Until the records are in the file a kill must find them in the ring. */
static void test_tail_follows_file(void **state)
{
	(void)state;
	produce(64, true);
	take_all(0);
	assert_int_equal(atomic_load(&ring->tail), 0);
	assert_int_equal(drain_unacknowledged(&drain), 64);
	back_free(read_back());
	assert_int_equal(atomic_load(&ring->tail), 64);
	assert_int_equal(drain_unacknowledged(&drain), 0);
}

static void test_waits_for_commit(void **state)
{
	struct trace_back *back;
	struct st_record *record;
	uint64_t open;

	(void)state;
	produce(32, true);
	open = produce(48, false);
	produce(32, true);
	take_all(0);
	assert_int_equal(drain.read, open);
	record = (void *)(st_ring_data(ring) + open);
	record->seq = ST_SEQ_MAGIC | open;
	take_all(0);
	back = read_back();
	assert_int_equal(back_count(back, ST_KIND_mark), 3);
	back_free(back);
}

/* Old laps leave committed-looking words behind: only the position of this lap counts. */
static void test_torn_of_a_dead_program(void **state)
{
	struct trace_back *back;
	uint64_t i;

	(void)state;
	for (i = 0; i < SIZE / 64; i++)
		produce(64, true);
	take_all(0);
	back_free(read_back());
	produce(64, true);
	produce(120, false);
	produce(64, true);
	produce(24, false); /* the very last one */
	drain.dead = true;
	take_all(0);
	assert_int_equal(drain.read, atomic_load(&ring->head));
	back = read_back();
	assert_int_equal(back_count(back, ST_KIND_mark), SIZE / 64 + 2);
	assert_int_equal(back_count(back, ST_KIND_coverage), 1);
	back_free(back);
}

/* A wild write of the program into the ring costs the records it hit, and neither a crash nor a halt. */
static void test_damaged_length(void **state)
{
	static const uint16_t lengths[] = {0, 2, 0xffff};
	struct trace_back *back;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t position = produce(64, true);
		struct st_record *record = (void *)(st_ring_data(ring) + position);

		record->words = lengths[i];
		produce(64, true);
	}
	take_all(0);
	back = read_back();
	assert_int_equal(back_count(back, ST_KIND_mark), 3);
	back_free(back);
	atomic_store(&ring->head, drain.read + SIZE + 8);
	take_all(-EIO);
}

static void test_losses_are_records(void **state)
{
	struct trace_back *back;
	const struct st_ev_lost *lost;

	(void)state;
	produce(32, true);
	atomic_store(&ring->lost_count, 7);
	atomic_store(&ring->lost_bytes, 700);
	take_all(0);
	take_all(0);
	atomic_store(&ring->lost_count, 8);
	atomic_store(&ring->lost_bytes, 800);
	take_all(0);
	back = read_back();
	assert_int_equal(back_count(back, ST_KIND_lost), 2);
	lost = (const void *)back_last(back);
	assert_int_equal(lost->count, 1);
	assert_int_equal(lost->bytes, 100);
	back_free(back);
}

static unsigned seen_kinds;

static void see(void *context, const struct st_record *record)
{
	assert_ptr_equal(context, &seen_kinds);
	assert_int_equal(record->kind, ST_KIND_mark);
	seen_kinds++;
}

static void test_observer(void **state)
{
	(void)state;
	drain.observe = see;
	drain.context = &seen_kinds;
	produce(SIZE - 40, true);
	take_all(0);
	back_free(read_back());
	produce(64, true); /* behind a filler, which nobody sees */
	take_all(0);
	assert_int_equal(seen_kinds, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_laps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tail_follows_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waits_for_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_torn_of_a_dead_program, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged_length, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_losses_are_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_observer, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
