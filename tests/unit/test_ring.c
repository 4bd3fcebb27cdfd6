/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the producer's side of the ring, against a consumer that follows ring.h by the letter: nothing committed
 * is lost or changed, records never wrap, a full ring counts and overwrites nothing; and the move of the early buffer
 * to the front of a ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shim/life.h"
#include "preload/shim/producer.h"

#define SIZE    4096
#define THREADS 4
#define RECORDS 20000

static __attribute__((noinline)) struct st_ring *ring_new(void)
{
	struct st_ring *ring = aligned_alloc(4096, ST_RING_DATA + SIZE);

	memset(ring, 0, ST_RING_DATA + SIZE);
	ring->size = SIZE;
	return ring;
}

static struct st_record *record_at(struct st_ring *ring, uint64_t position)
{
	return (struct st_record *)(void *)(st_ring_data(ring) + position % SIZE);
}

static uint64_t put_mark(struct st_ring *ring, const char *text)
{
	struct st_ev_mark mark = {.r = {.kind = ST_KIND_mark}};
	struct piece piece = {&mark.r, sizeof(mark), text, strlen(text)};

	mark.r.words = (uint16_t)(sizeof(mark) / 8 + (piece.tail_bytes + 7) / 8);
	return producer_put(ring, SIZE, &piece);
}

static uint64_t put_unmap(struct st_ring *ring, uint64_t addr, uint64_t size)
{
	struct st_ev_unmap unmap = {
		.r = {.kind = ST_KIND_unmap, .words = sizeof(unmap) / 8}, .addr = addr, .size = size};
	struct piece piece = {&unmap.r, sizeof(unmap), NULL, 0};

	return producer_put(ring, SIZE, &piece);
}

static void a_tail_is_padded_with_nul(void **state)
{
	struct st_ring *ring = ring_new();

	(void)state;
	memset(st_ring_data(ring), 0xee, SIZE);
	assert_int_equal(put_mark(ring, "step one"), ST_SEQ_MAGIC);
	assert_int_equal(put_mark(ring, "two"), ST_SEQ_MAGIC | 32);
	assert_int_equal(record_at(ring, 0)->words, 4);
	assert_memory_equal(record_at(ring, 0) + 1, "step one", 8);
	assert_memory_equal(record_at(ring, 32) + 1, "two\0\0\0\0\0", 8);
	assert_int_equal(ring->head, 64);
	free(ring);
}

static uint64_t put_remap(struct st_ring *ring)
{
	struct st_ev_remap remap = {.r = {.kind = ST_KIND_remap, .words = sizeof(remap) / 8}};
	struct piece piece = {&remap.r, sizeof(remap), NULL, 0};

	return producer_put(ring, SIZE, &piece);
}

static void a_record_never_wraps(void **state)
{
	struct st_ring *ring = ring_new();
	uint64_t bytes = sizeof(struct st_ev_remap), last = SIZE / bytes * bytes;

	(void)state;
	assert_in_range(SIZE - last, sizeof(struct st_record), bytes - 8);
	for (uint64_t at = 0; at < last; at += bytes)
		assert_int_equal(put_remap(ring), ST_SEQ_MAGIC | at);
	ring->tail = last;
	assert_int_equal(put_remap(ring), ST_SEQ_MAGIC | SIZE);
	assert_int_equal(record_at(ring, last)->kind, ST_RING_PAD);
	assert_int_equal(record_at(ring, last)->seq, ST_SEQ_MAGIC | last);
	assert_int_equal(record_at(ring, last)->words, (SIZE - last) / 8);
	free(ring);
}

static void too_little_for_a_head_is_left_without_a_word(void **state)
{
	struct st_ring *ring = ring_new();

	(void)state;
	memset(st_ring_data(ring), 0xee, SIZE);
	ring->head = ring->tail = SIZE - 16;
	assert_int_equal(put_unmap(ring, 0x1000, 1), ST_SEQ_MAGIC | SIZE);
	assert_int_equal(record_at(ring, SIZE - 16)->seq, UINT64_C(0xeeeeeeeeeeeeeeee));
	free(ring);
}

static void a_full_ring_counts_and_keeps_what_it_has(void **state)
{
	struct st_ring *ring = ring_new();
	uint64_t bytes = sizeof(struct st_ev_unmap), fit = SIZE / bytes;

	(void)state;
	for (uint64_t i = 0; i < fit; i++)
		assert_int_not_equal(put_unmap(ring, i, 0), 0);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(put_unmap(ring, 0xdead, 0), 0);
	assert_int_equal(ring->lost_count, 3);
	assert_int_equal(ring->lost_bytes, 3 * bytes);
	for (uint64_t i = 0; i < fit; i++)
		assert_int_equal(((struct st_ev_unmap *)record_at(ring, i * bytes))->addr, i);
	ring->tail = 2 * bytes;
	assert_int_not_equal(put_unmap(ring, 0xbeef, 0), 0);
	free(ring);
}

static void the_last_byte_of_room_is_used(void **state)
{
	struct st_ring *ring = ring_new();
	uint64_t bytes = sizeof(struct st_ev_unmap);

	(void)state;
	ring->head = SIZE;
	ring->tail = bytes;
	assert_int_not_equal(put_unmap(ring, 1, 0), 0);
	assert_int_equal(put_unmap(ring, 2, 0), 0);
	free(ring);
}

/* What each thread says: its number in `addr`, its count in `size`, both once more in the tail. */
struct worker {
	struct st_ring *ring;
	pthread_t thread;
	uint64_t number, put;
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	for (uint64_t i = 1; i <= RECORDS; i++) {
		struct st_ev_anon anon = {.r = {.kind = ST_KIND_anon}, .addr = worker->number, .size = i};
		uint64_t tail[8] = {worker->number, i};
		struct piece piece = {&anon.r, sizeof(anon), tail, 16 + i % 7 * 8};

		anon.r.words = (uint16_t)((sizeof(anon) + piece.tail_bytes) / 8);
		if (producer_put(worker->ring, SIZE, &piece))
			worker->put++;
		else
			sched_yield();
	}
	return NULL;
}

static bool committed(struct st_ring *ring, uint64_t position)
{
	const _Atomic uint64_t *seq = (const void *)(st_ring_data(ring) + position % SIZE);

	return atomic_load_explicit(seq, memory_order_acquire) == (ST_SEQ_MAGIC | position);
}

/* One step of a consumer; returns the position behind what it took, or where it stands. */
static uint64_t consume(struct st_ring *ring, uint64_t tail, uint64_t *last, uint64_t *ret_count)
{
	uint64_t left = SIZE - tail % SIZE;
	struct st_ev_anon *anon = (void *)record_at(ring, tail);
	const uint64_t *words = (const uint64_t *)(anon + 1);

	if (left < sizeof(struct st_record))
		return tail + left;
	if (!committed(ring, tail))
		return tail;
	if (anon->r.kind == ST_RING_PAD)
		return tail + left;
	assert_int_equal(anon->r.kind, ST_KIND_anon);
	assert_true((uint64_t)anon->r.words * 8 <= left);
	assert_in_range(anon->addr, 1, THREADS);
	assert_int_equal(words[0], anon->addr);
	assert_int_equal(words[1], anon->size);
	assert_true(anon->size > last[anon->addr]);
	last[anon->addr] = anon->size;
	(*ret_count)++;
	return tail + (uint64_t)anon->r.words * 8;
}

static uint64_t consume_all(struct st_ring *ring, uint64_t *last)
{
	uint64_t count = 0, tail;

	while ((tail = atomic_load(&ring->tail)) < atomic_load(&ring->head)) {
		uint64_t next = consume(ring, tail, last, &count);

		if (next == tail)
			sched_yield();
		atomic_store_explicit(&ring->tail, next, memory_order_release);
	}
	return count;
}

static void threads_lose_nothing_but_what_is_counted(void **state)
{
	struct st_ring *ring = ring_new();
	struct worker workers[THREADS];
	uint64_t last[THREADS + 1] = {0}, put = 0, got = 0;

	(void)state;
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.ring = ring, .number = i + 1};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	while (got + atomic_load(&ring->lost_count) < THREADS * RECORDS)
		got += consume_all(ring, last);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		put += workers[i].put;
	}
	assert_int_equal(got, put);
	assert_int_equal(put + ring->lost_count, THREADS * RECORDS);
	assert_true(got > 0);
	free(ring);
}

static uint64_t early_mark(struct life *life, const char *text)
{
	struct st_ev_mark mark = {.r = {.kind = ST_KIND_mark}};
	struct piece piece = {&mark.r, sizeof(mark), text, strlen(text)};

	mark.r.words = (uint16_t)(sizeof(mark) / 8 + (piece.tail_bytes + 7) / 8);
	return early_put(life, &piece, true);
}

static void early_records_keep_their_positions(void **state)
{
	struct life *life = calloc(1, sizeof(*life));
	struct st_ring *ring = ring_new();

	(void)state;
	assert_int_equal(early_mark(life, "one"), ST_SEQ_MAGIC);
	assert_int_equal(early_mark(life, "and two"), ST_SEQ_MAGIC | 32);
	life->early_lost_count = 5;
	early_move(life, ring);
	assert_int_equal(early_mark(life, "late"), 0);
	assert_int_equal(ring->head, 64);
	assert_int_equal(ring->lost_count, 5);
	assert_true(committed(ring, 0) && committed(ring, 32));
	assert_string_equal((char *)(record_at(ring, 32) + 1), "and two");
	free(ring);
	free(life);
}

static void what_is_half_written_early_counts_as_lost(void **state)
{
	struct life *life = calloc(1, sizeof(*life));
	struct st_ring *ring = ring_new();

	(void)state;
	early_mark(life, "one");
	life->early_head += 40; /* reserved by a thread that never came back */
	early_mark(life, "two");
	early_move(life, ring);
	assert_int_equal(ring->head, 32);
	assert_int_equal(ring->lost_count, 1);
	assert_int_equal(ring->lost_bytes, 72);
	free(ring);
	free(life);
}

static void the_last_quarter_is_kept_for_what_matters(void **state)
{
	struct life *life = calloc(1, sizeof(*life));
	struct st_ev_map map = {.r = {.kind = ST_KIND_map, .words = sizeof(map) / 8}};
	struct piece piece = {&map.r, sizeof(map), NULL, 0};
	uint64_t plain = 0, more = 0;

	(void)state;
	while (early_put(life, &piece, false))
		plain++;
	while (early_put(life, &piece, true))
		more++;
	assert_int_equal(plain, EARLY_SIZE / 4 * 3 / sizeof(map));
	assert_int_equal(plain + more, EARLY_SIZE / sizeof(map));
	assert_int_equal(life->early_lost_count, 2);
	free(life);
}

static uint64_t early_range(struct life *life, enum st_kind kind, uint64_t thread, uint64_t addr,
                            uint64_t file)
{
	struct st_ev_map map = {
		.r = {.kind = (uint16_t)kind, .words = sizeof(map) / 8, .thread = (uint32_t)thread},
		.addr = addr,
		.size = 16384,
		.file = file};
	struct piece piece = {&map.r, sizeof(map), NULL, 0};

	if (kind == ST_KIND_unmap) {
		map.r.words = sizeof(struct st_ev_unmap) / 8;
		piece.record_bytes = sizeof(struct st_ev_unmap);
	}
	return early_put(life, &piece, true);
}

/* Only that of the same thread, and of exactly that anonymous mapping; and what comes next takes its place. */
static void the_end_of_the_last_mapping_takes_it_back(void **state)
{
	struct life *life = calloc(1, sizeof(*life));

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(early_range(life, ST_KIND_map, 1, 4096, 0), ST_SEQ_MAGIC);
		assert_int_equal(early_range(life, ST_KIND_unmap, 1, 4096, 0), 0);
	}
	assert_int_equal(life->early_head, 0);
	early_range(life, ST_KIND_map, 1, 4096, 0);
	assert_int_not_equal(early_range(life, ST_KIND_unmap, 1, 8192, 0), 0);
	assert_int_not_equal(early_range(life, ST_KIND_unmap, 1, 4096, 0), 0);
	early_range(life, ST_KIND_map, 2, 4096, 0);
	assert_int_not_equal(early_range(life, ST_KIND_unmap, 1, 4096, 0), 0);
	early_range(life, ST_KIND_map, 1, 4096, 7);
	assert_int_not_equal(early_range(life, ST_KIND_unmap, 1, 4096, 7), 0);
	assert_int_equal(life->early_lost_count, 0);
	free(life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_is_padded_with_nul),
		cmocka_unit_test(a_record_never_wraps),
		cmocka_unit_test(too_little_for_a_head_is_left_without_a_word),
		cmocka_unit_test(a_full_ring_counts_and_keeps_what_it_has),
		cmocka_unit_test(the_last_byte_of_room_is_used),
		cmocka_unit_test(threads_lose_nothing_but_what_is_counted),
		cmocka_unit_test(early_records_keep_their_positions),
		cmocka_unit_test(what_is_half_written_early_counts_as_lost),
		cmocka_unit_test(the_last_quarter_is_kept_for_what_matters),
		cmocka_unit_test(the_end_of_the_last_mapping_takes_it_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
