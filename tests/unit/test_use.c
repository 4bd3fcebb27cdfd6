/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the story of single tensors and files: which was touched when, by whom and as which; how much of each was
 * read and copied; what was advised; and what of a part of a file may be in the page cache.
 */
#include "residency_scene.h"

#include <fcntl.h>
#include <sys/mman.h>

static const struct tensor_use *use(const struct scene *scene, size_t i)
{
	static const struct tensor_use none;

	return scene->residency.uses ? &scene->residency.uses[i] : &none;
}

/* t1 first, in two halves, then t0 from another thread; t2 never. */
static void test_order(void **state)
{
	struct scene *scene = *state;

	record_now.time = 100;
	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	ALLOC(DEVICE, 256 * MIB);
	record_now.time = 200;
	COPY(DEVICE, MAPPED + 96 * MIB, 48 * MIB);
	record_now.time = 300;
	COPY(DEVICE + 48 * MIB, MAPPED + 144 * MIB, 48 * MIB);
	record_now.time = 400;
	record_now.thread = 2;
	COPY(DEVICE + 96 * MIB, MAPPED, 96 * MIB);
	record_now.thread = 1;
	assert_int_equal(use(scene, 1)->order, 1);
	assert_int_equal(use(scene, 1)->first, 200);
	assert_int_equal(use(scene, 1)->last, 300);
	assert_int_equal(use(scene, 1)->copied, 96 * MIB);
	assert_int_equal(use(scene, 1)->thread, 1);
	assert_int_equal(use(scene, 0)->order, 2);
	assert_int_equal(use(scene, 0)->thread, 2);
	assert_int_equal(use(scene, 0)->read, 0);
	assert_int_equal(use(scene, 2)->order, 0);
	assert_int_equal(use(scene, 2)->first, 0);
	assert_int_equal(scene->residency.weights[0].thread_count, 2);
}

/* One copy over two tensors touches both, in the order of the file. */
static void test_across(void **state)
{
	struct scene *scene = *state;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, MAPPED + 95 * MIB, 2 * MIB);
	assert_int_equal(use(scene, 0)->copied, MIB);
	assert_int_equal(use(scene, 1)->copied, MIB);
	assert_int_equal(use(scene, 0)->order, 1);
	assert_int_equal(use(scene, 1)->order, 2);
}

/* A reader of the header takes a buffer full, and with it the edge of the first tensor. */
static void test_edge_is_no_touch(void **state)
{
	struct scene *scene = *state;
	int i;

	READ(A_FILE, 0, 8192, BUFFER);
	assert_int_equal(use(scene, 0)->read, 8192);
	assert_int_equal(use(scene, 0)->order, 0);
	READ(A_FILE, 192 * MIB, 64 * MIB, BUFFER);
	assert_int_equal(use(scene, 2)->order, 1);
	/* In pieces of a page: by the time it has read 64 KiB it is a touch. */
	for (i = 2; i < 16; i++) {
		record_now.time = 1000 + (uint64_t)i;
		READ(A_FILE, (uint64_t)i * 4096, 4096, BUFFER);
	}
	assert_int_equal(use(scene, 0)->order, 2);
	assert_int_equal(use(scene, 0)->first, 1015);
	assert_int_equal(use(scene, 0)->read, 65536);
}

/* Straight to the device (cuFile): read and copied at once. */
static void test_direct(void **state)
{
	struct scene *scene = *state;

	ALLOC(DEVICE, 256 * MIB);
	READ(A_FILE, 192 * MIB, 64 * MIB, DEVICE);
	assert_int_equal(use(scene, 2)->read, 64 * MIB);
	assert_int_equal(use(scene, 2)->copied, 64 * MIB);
}

/* The survey has no use for it, nor memory. */
static void test_survey(void **state)
{
	struct scene *scene = *state;

	scene->residency.survey = true;
	READ(A_FILE, 192 * MIB, 64 * MIB, BUFFER);
	assert_null(scene->residency.uses);
	assert_int_equal(scene->residency.weights[0].thread_count, 0);
}

static void test_threads(void **state)
{
	struct scene *scene = *state;
	const struct weight *weight;
	uint32_t i;

	for (i = 1; i <= MODEL_THREADS; i++) {
		record_now.thread = i;
		READ(A_FILE, 0, MIB, BUFFER);
	}
	weight = &scene->residency.weights[0];
	assert_int_equal(weight->thread_count, MODEL_THREADS);
	assert_false(weight->threads_more);
	record_now.thread = 99;
	READ(A_FILE, 0, MIB, BUFFER);
	record_now.thread = 1;
	assert_int_equal(weight->thread_count, MODEL_THREADS);
	assert_true(weight->threads_more);
}

static void test_advice(void **state)
{
	struct scene *scene = *state;
	const struct weight *a, *b;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	MAP(MAPPED + 256 * MIB, 64 * MIB, PROT_R, .file = B_FILE);
	play(scene, RECORD(fadvise, .file = A_FILE, .advice = POSIX_FADV_SEQUENTIAL)); /* to the end */
	play(scene, RECORD(fadvise, .file = A_FILE, .offset = 250 * MIB, .size = GIB,
	                   .advice = POSIX_FADV_SEQUENTIAL));
	play(scene,
	     RECORD(fadvise, .file = 99, .size = MIB, .advice = POSIX_FADV_RANDOM)); /* no weight file */
	play(scene, RECORD(advise, .addr = MAPPED + 192 * MIB, .size = 96 * MIB, .advice = MADV_WILLNEED));
	a = &scene->residency.weights[0];
	b = &scene->residency.weights[1];
	assert_int_equal(a->advice_count, 2);
	assert_false(a->advices[0].mapping);
	assert_int_equal(a->advices[0].advice, POSIX_FADV_SEQUENTIAL);
	assert_int_equal(a->advices[0].count, 2);
	assert_int_equal(a->advices[0].bytes, (256 + 6) * MIB);
	assert_true(a->advices[1].mapping);
	assert_int_equal(a->advices[1].bytes, 64 * MIB);
	assert_int_equal(b->advice_count, 1);
	assert_int_equal(b->advices[0].advice, MADV_WILLNEED);
	assert_int_equal(b->advices[0].bytes, 32 * MIB);
}

static void cached(struct scene *scene, uint64_t offset, uint64_t bytes)
{
	play(scene, RECORD(cached, .file = A_FILE, .offset = offset, .size = ST_CELL, .cached = bytes));
}

/* Cells of 64 MiB; of t0 (0 to 96 MiB) the second half of the second cell belongs to t1. */
static void test_cells(void **state)
{
	struct scene *scene = *state;
	const struct residency *residency = &scene->residency;
	struct range range = cells_range(residency, 0, 0, 96 * MIB, POINT_COUNT);

	assert_int_equal(range.lo, 0);
	assert_int_equal(range.hi, 96 * MIB); /* nobody has looked */
	cached(scene, 0, 64 * MIB);
	cached(scene, 64 * MIB, 40 * MIB);
	range = cells_range(residency, 0, 0, 96 * MIB, POINT_COUNT);
	assert_int_equal(range.lo, (64 + 8) * MIB);
	assert_int_equal(range.hi, (64 + 32) * MIB);
	residency_keep(&scene->residency, POINT_LOAD_PEAK);
	cached(scene, 0, 0);
	cached(scene, 64 * MIB, 0);
	range = cells_range(residency, 0, 0, 96 * MIB, POINT_COUNT);
	assert_int_equal(range.hi, 0);
	range = cells_range(residency, 0, 0, 96 * MIB, POINT_LOAD_PEAK);
	assert_int_equal(range.lo, 72 * MIB);
	/* The last call for a point counts. */
	residency_keep(&scene->residency, POINT_LOAD_PEAK);
	range = cells_range(residency, 0, 0, 96 * MIB, POINT_LOAD_PEAK);
	assert_int_equal(range.hi, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),  TEST(test_across),  TEST(test_edge_is_no_touch), TEST(test_direct),
		TEST(test_survey), TEST(test_threads), TEST(test_advice),           TEST(test_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
