/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the map of live ranges that all of replay stands on: every operation, in random order, is compared
 * byte by byte with an array that holds one cell for each address.
 */
#include <analyzer/livemap.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define WORLD 4096u

struct cell {
	uint64_t a, b;
	bool live;
};

struct pair {
	struct livemap map;
	struct cell cell[WORLD];
	uint64_t next; /* where the next visited piece may begin, at the earliest */
};

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % bound;
}

static bool cells_live(const struct pair *pair, uint64_t lo, uint64_t hi)
{
	for (uint64_t i = lo; i < hi; i++)
		if (pair->cell[i].live)
			return true;
	return false;
}

static void cells_set(struct pair *pair, const struct span *span, bool live)
{
	for (uint64_t i = span->lo; i < span->hi; i++)
		pair->cell[i] = (struct cell){span->a, span->b, live};
}

static void random_insert(struct pair *pair, bool alone)
{
	uint64_t lo = random_below(WORLD - 1), size = 1 + random_below(12);
	struct span span = {lo, lo + size > WORLD ? WORLD : lo + size, random_below(3), random_below(2)};
	int error = alone ? livemap_insert_alone(&pair->map, &span) : livemap_insert(&pair->map, &span);

	if (cells_live(pair, span.lo, span.hi)) {
		assert_int_equal(error, -EEXIST);
		return;
	}
	assert_int_equal(error, 0);
	cells_set(pair, &span, true);
}

/* A visited piece carries what the cells said, and pieces come in order. */
static void check_piece(void *context, const struct span *piece)
{
	struct pair *pair = context;

	assert_true(piece->lo >= pair->next);
	assert_true(piece->lo < piece->hi);
	for (uint64_t i = piece->lo; i < piece->hi; i++) {
		assert_true(pair->cell[i].live);
		assert_int_equal(pair->cell[i].a, piece->a);
		assert_int_equal(pair->cell[i].b, piece->b);
		pair->cell[i].live = false;
	}
	pair->next = piece->hi;
}

static void random_cut(struct pair *pair)
{
	uint64_t lo = random_below(WORLD), size = random_below(random_below(8) ? 16 : 400);
	uint64_t hi = lo + size > WORLD ? WORLD : lo + size;

	pair->next = lo;
	assert_int_equal(livemap_cut(&pair->map, lo, hi, check_piece, pair), 0);
	assert_false(cells_live(pair, lo, hi));
}

static void random_remove(struct pair *pair)
{
	uint64_t address = random_below(WORLD);
	struct span span, found;
	bool there = livemap_find(&pair->map, address, &found);

	assert_int_equal(there, pair->cell[address].live);
	assert_int_equal(livemap_touches(&pair->map, address, address + 1), there);
	if (!there || found.lo != address) {
		assert_int_equal(livemap_remove(&pair->map, address, &span), -ENOENT);
		return;
	}
	assert_int_equal(livemap_remove(&pair->map, address, &span), 0);
	assert_memory_equal(&span, &found, sizeof(span));
	cells_set(pair, &span, false);
}

static void check_all(struct pair *pair)
{
	struct cell before[WORLD];
	uint64_t live = 0;

	memcpy(before, pair->cell, sizeof(before));
	for (unsigned i = 0; i < WORLD; i++)
		live += before[i].live;
	pair->next = 0;
	livemap_each(&pair->map, 0, WORLD, check_piece, pair);
	assert_false(cells_live(pair, 0, WORLD)); /* each piece cleared its cells: none was left out */
	memcpy(pair->cell, before, sizeof(before));
	assert_int_equal(pair->map.bytes, live);
}

static void test_random(void **state)
{
	static struct pair pair;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		memset(&pair, 0, sizeof(pair));
		random_state = seed * 0x9E3779B97F4A7C15u;
		for (unsigned step = 0; step < 40000; step++) {
			/* Seasons of growth and of shrinking, so that leaves split, thin out and join. */
			if (random_below(10) < (step / 4000 % 2 ? 2u : 7u))
				random_insert(&pair, seed & 1);
			else if (random_below(2))
				random_cut(&pair);
			else
				random_remove(&pair);
			if (step % 500 == 0)
				check_all(&pair);
		}
		check_all(&pair);
		assert_int_equal(livemap_cut(&pair.map, 0, WORLD, NULL, NULL), 0);
		assert_int_equal(pair.map.count, 0);
		assert_int_equal(pair.map.bytes, 0);
		livemap_release(&pair.map);
	}
}

/* A load in pieces must not grow the map: a copy of the next 64 MiB continues the last one. */
static void test_joins(void **state)
{
	struct livemap map = {0};
	struct span span;

	(void)state;
	for (uint64_t i = 0; i < 1000; i += 2)
		assert_int_equal(livemap_insert(&map, &(struct span){i * 10, i * 10 + 10, 1, 2}), 0);
	assert_int_equal(map.count, 500);
	for (uint64_t i = 1; i < 1000; i += 2)
		assert_int_equal(livemap_insert(&map, &(struct span){i * 10, i * 10 + 10, 1, 2}), 0);
	assert_int_equal(map.count, 1);
	assert_int_equal(livemap_insert(&map, &(struct span){10000, 10010, 1, 3}), 0);
	assert_int_equal(map.count, 2);
	assert_true(livemap_next(&map, 0, &span));
	assert_int_equal(span.hi, 10000);
	livemap_release(&map);
}

static void test_edges(void **state)
{
	struct livemap map = {0};
	struct span span = {UINT64_MAX - 10, UINT64_MAX, 1, 0};

	(void)state;
	assert_false(livemap_next(&map, 0, &span));
	assert_int_equal(livemap_insert(&map, &span), 0);
	assert_true(livemap_find(&map, UINT64_MAX - 1, &span));
	assert_false(livemap_find(&map, UINT64_MAX, &span));
	assert_int_equal(livemap_insert(&map, &(struct span){5, 5, 0, 0}), -EINVAL);
	assert_int_equal(livemap_insert(&map, &(struct span){6, 5, 0, 0}), -EINVAL);
	assert_int_equal(livemap_cut(&map, 0, UINT64_MAX, NULL, NULL), 0);
	assert_int_equal(map.count, 0);
	livemap_release(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
