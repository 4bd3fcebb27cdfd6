/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what realloc() carries along: weights in a host block are staging and known to the byte afterwards as before,
 * in between they are nowhere, and what free() gave back, a failed call kept or another thread holds is not confused with it.
 */
#include "residency_scene.h"

#define BUFFER2 (500 * GIB)
#define BUFFER3 (600 * GIB)

static int load_up(void **state)
{
	int r = scene_up(state);

	((struct scene *)*state)->residency.replay.loading = true;
	record_now.thread = 1;
	return r;
}

#undef TEST
#define TEST(function) cmocka_unit_test_setup_teardown(function, load_up, scene_down)

#define HOST(addr_, size_, ...) play(scene, RECORD(alloc, .addr = (addr_), .size = (size_), __VA_ARGS__))
#define REALLOC(addr_, size_)   HOST(addr_, size_, .how = ST_HOST_REALLOC, .stack = 5)
#define FREE(addr_)             play(scene, RECORD(free, .addr = (addr_)))

/* Staging, weights in the heap, and what is left of the load's blocks. */
static void assert_host(const struct scene *scene, uint64_t staging, uint64_t others)
{
	assert_int_equal(total(scene)->staging, staging);
	assert_int_equal(scene->residency.staged_since, staging);
	assert_int_equal(scene->residency.held.heap, staging);
	assert_int_equal(scene->residency.held.loose, 0);
	assert_int_equal(residency_host(&scene->residency).lo, others);
}

static uint64_t sum_of(const struct scene *scene, enum load_peak peak, uint32_t stack)
{
	const struct stack_sums *sums = &scene->residency.sums[peak];

	for (size_t i = 0; i < sums->room; i++)
		if (sums->sums[i].used && sums->sums[i].stack == stack)
			return sums->sums[i].now;
	return 0;
}

static void read_b(struct scene *scene, uint64_t addr)
{
	HOST(addr, 65 * MIB, .stack = 3);
	READ(B_FILE, 0, 64 * MIB, addr + MIB / 2);
	assert_host(scene, 64 * MIB, MIB);
}

/* Python's read(): a whole file, then the block shrinks, usually where it is. */
static void test_shrinks_in_place(void **state)
{
	struct scene *scene = *state;

	read_b(scene, BUFFER);
	FREE(BUFFER);
	assert_host(scene, 0, 0);
	assert_int_equal(sum_of(scene, LOAD_PEAK_STAGING, 3) + sum_of(scene, LOAD_PEAK_HOST, 3), 0);
	play(scene, record_tail(RECORD(stack, .id = 5), NULL, 0));
	REALLOC(BUFFER, 64 * MIB + MIB / 2 + 100);
	assert_host(scene, 64 * MIB, MIB / 2 + 100);
	assert_int_equal(sum_of(scene, LOAD_PEAK_STAGING, 5), 64 * MIB);
	assert_int_equal(sum_of(scene, LOAD_PEAK_HOST, 5), MIB / 2 + 100);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER + MIB / 2, 64 * MIB);
	assert_int_equal(total(scene)->device, 64 * MIB);
	assert_int_equal(scene->residency.weights[1].loaded.bytes, 64 * MIB);
	assert_true(scene->residency.exact);
	FREE(BUFFER);
	SYNC();
	assert_host(scene, 0, 0);
	assert_int_equal(scene->residency.content.count, 1); /* on the device */
	assert_int_equal(scene->residency.staged.count + scene->residency.carried_count, 0);
}

/* What lies behind the new end is gone; tensors keep their place. */
static void test_shrinks_elsewhere(void **state)
{
	struct scene *scene = *state;

	HOST(BUFFER, 256 * MIB, .stack = 3);
	READ(A_FILE, 0, 256 * MIB, BUFFER);
	FREE(BUFFER);
	REALLOC(BUFFER2, 100 * MIB);
	assert_host(scene, 100 * MIB, 0);
	assert_int_equal(tensor(scene, 0).staging, 96 * MIB);
	assert_int_equal(tensor(scene, 1).staging, 4 * MIB);
	assert_int_equal(tensor(scene, 2).staging, 0);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER2 + 90 * MIB, 10 * MIB);
	assert_int_equal(tensor(scene, 0).device, 6 * MIB);
	assert_int_equal(tensor(scene, 1).device, 4 * MIB);
	COPY(DEVICE + 16 * MIB, BUFFER, 10 * MIB); /* nothing is there any more */
	assert_int_equal(total(scene)->device, 10 * MIB);
}

/* Read piece by piece into a block that grows: every byte is where it was. */
static void test_grows(void **state)
{
	struct scene *scene = *state;

	HOST(BUFFER, 64 * MIB, .stack = 3);
	READ(A_FILE, 0, 64 * MIB, BUFFER);
	FREE(BUFFER);
	REALLOC(BUFFER2, 128 * MIB);
	assert_host(scene, 64 * MIB, 64 * MIB);
	READ(A_FILE, 64 * MIB, 64 * MIB, BUFFER2 + 64 * MIB);
	assert_host(scene, 128 * MIB, 0);
	FREE(BUFFER2);
	REALLOC(BUFFER2, 256 * MIB);
	READ(A_FILE, 128 * MIB, 128 * MIB, BUFFER2 + 128 * MIB);
	assert_host(scene, 256 * MIB, 0);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER2, 256 * MIB);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(tensor(scene, i).device, scene->catalog.tensors[i].size);
	assert_true(scene->residency.exact);
}

/* What seemed to be at the new place, in memory that nobody saw come and go, has been overwritten. */
static void test_over_what_was_there(void **state)
{
	struct scene *scene = *state;

	READ(A_FILE, 0, 16 * MIB, BUFFER2 + MIB);
	assert_int_equal(scene->residency.held.loose, 16 * MIB);
	HOST(BUFFER, 64 * MIB, .stack = 3);
	READ(B_FILE, 0, 64 * MIB, BUFFER);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER, 32 * MIB);
	FREE(BUFFER);
	REALLOC(BUFFER2, 64 * MIB);
	assert_int_equal(total(scene)->staging, 32 * MIB);
	assert_int_equal(tensor(scene, 0).staging, 0);
	assert_int_equal(scene->residency.held.heap, 64 * MIB);
	assert_int_equal(scene->residency.held.loose, 0);
	COPY(DEVICE, BUFFER2, 64 * MIB);
	assert_int_equal(scene->residency.weights[1].kept.now.device, 64 * MIB);
	assert_int_equal(tensor(scene, 0).device, 0);
}

/* A call that failed has changed nothing. */
static void test_refused(void **state)
{
	struct scene *scene = *state;
	struct st_ev_free release = *(const struct st_ev_free *)RECORD(free, .addr = BUFFER);
	uint64_t revoked = release.r.seq & ST_SEQ_MASK;

	scene->residency.replay.revoked = &revoked;
	scene->residency.replay.revoked_count = 1;
	read_b(scene, BUFFER);
	play(scene, &release.r);
	assert_host(scene, 64 * MIB, MIB);
	play(scene, RECORD(revoke, .target = revoked));
	REALLOC(0, UINT64_MAX / 2);
	assert_host(scene, 64 * MIB, MIB);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER + MIB / 2, 64 * MIB);
	assert_int_equal(total(scene)->device, 64 * MIB);
	assert_true(scene->residency.exact);
}

/* Others go on in between; one of them even gets the old block, and fills it. */
static void test_others_in_between(void **state)
{
	struct scene *scene = *state;

	HOST(BUFFER, 64 * MIB, .stack = 3);
	READ(B_FILE, 0, 64 * MIB, BUFFER);
	FREE(BUFFER);
	record_now.thread = 2;
	HOST(BUFFER, 32 * MIB, .stack = 4);
	assert_host(scene, 0, 32 * MIB);
	READ(A_FILE, 0, 32 * MIB, BUFFER);
	assert_host(scene, 32 * MIB, 0);
	record_now.thread = 3;
	REALLOC(BUFFER3, 64 * MIB); /* of a block that nobody saw */
	assert_host(scene, 32 * MIB, 64 * MIB);
	record_now.thread = 1;
	REALLOC(BUFFER2, 64 * MIB);
	assert_host(scene, 96 * MIB, 64 * MIB);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER2, 64 * MIB);
	COPY(DEVICE + 64 * MIB, BUFFER, 32 * MIB);
	assert_int_equal(scene->residency.weights[1].kept.now.device, 64 * MIB);
	assert_int_equal(tensor(scene, 0).device, 32 * MIB);
	assert_true(scene->residency.exact);
	COPY(DEVICE + 128 * MIB, BUFFER3, 32 * MIB);
	assert_int_equal(total(scene)->device, 96 * MIB);
}

/* Below the threshold there is no block any more; and a release is no half of what the thread calls later. */
static void test_free_alone(void **state)
{
	static const enum st_host_how hows[] = {ST_HOST_MALLOC, ST_HOST_GROWN, ST_HOST_REALLOC};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
		read_b(scene, BUFFER);
		FREE(BUFFER);
		if (hows[i] == ST_HOST_REALLOC) /* its own first half was lost */
			MAP(MAPPED, MIB, PROT_R);
		HOST(BUFFER, 65 * MIB, .how = hows[i]);
		assert_host(scene, 0, 65 * MIB);
		assert_int_equal(scene->residency.carried_count, 0);
		assert_int_equal(scene->residency.content.count + scene->residency.staged.count, 0);
		FREE(BUFFER);
	}
}

/* A copy that is not over keeps its buffer, wherever that is now, until its stream is waited for: by whomever. */
static void test_copy_not_over(void **state)
{
	struct scene *scene = *state;

	ALLOC(DEVICE, 256 * MIB);
	for (int between = 0; between < 2; between++) {
		read_b(scene, BUFFER);
		COPY(DEVICE, BUFFER + MIB / 2, 64 * MIB, .async = 1, .stream = 3);
		FREE(BUFFER);
		record_now.thread = 2;
		if (between)
			play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .handle = 3));
		record_now.thread = 1;
		REALLOC(BUFFER2, 65 * MIB);
		assert_int_equal(total(scene)->staging, between ? 0 : 64 * MIB);
		assert_int_equal(scene->residency.held.heap, 64 * MIB);
		play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .handle = 3));
		assert_int_equal(total(scene)->staging, 0);
		assert_int_equal(scene->residency.pending_count, 0);
		COPY(DEVICE + 64 * MIB, BUFFER2 + MIB / 2, 64 * MIB);
		assert_int_equal(total(scene)->device, 64 * MIB);
		assert_true(scene->residency.exact);
		FREE(BUFFER2);
	}
}

/* Blocks from before the load, on the host alone: what was read into them is the new block's. The source of a copy stays one. */
static void test_old_block_and_source(void **state)
{
	struct scene *scene = *state;

	scene->residency.host_only = true;
	scene->residency.replay.loading = false;
	HOST(BUFFER, 65 * MIB, .stack = 3);
	scene->residency.replay.loading = true;
	READ(B_FILE, 0, 64 * MIB, BUFFER);
	assert_int_equal(scene->residency.held.heap_old, 64 * MIB);
	assert_int_equal(residency_host(&scene->residency).lo, 64 * MIB);
	FREE(BUFFER);
	assert_int_equal(residency_host(&scene->residency).lo, 0);
	REALLOC(BUFFER2, 64 * MIB);
	assert_int_equal(scene->residency.held.heap_old, 0);
	assert_int_equal(scene->residency.held.heap, 64 * MIB);
	assert_int_equal(residency_host(&scene->residency).lo, 64 * MIB);
	assert_int_equal(sum_of(scene, LOAD_PEAK_HOST, 3), 0);
	assert_int_equal(sum_of(scene, LOAD_PEAK_HOST, 5), 64 * MIB);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER2, 16 * MIB);
	assert_int_equal(scene->residency.held.heap_sources, 64 * MIB);
	FREE(BUFFER2);
	assert_int_equal(scene->residency.held.heap_sources, 0);
	REALLOC(BUFFER, 32 * MIB);
	assert_int_equal(scene->residency.held.heap_sources, 32 * MIB);
}

/* Of more threads than there is room for the first ones are forgotten, and only these. */
static void test_many_threads(void **state)
{
	enum { THREADS = CARRIED_MAX + 4 };
	struct scene *scene = *state;

	for (uint32_t i = 0; i < THREADS; i++) {
		record_now.thread = 1 + i;
		HOST(BUFFER + i * GIB, 2 * MIB);
		READ(B_FILE, i * MIB, MIB, BUFFER + i * GIB);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		record_now.thread = 1 + i;
		FREE(BUFFER + i * GIB);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		record_now.thread = 1 + i;
		REALLOC(BUFFER2 + i * GIB, 2 * MIB);
	}
	assert_host(scene, CARRIED_MAX * MIB, (2 * THREADS - CARRIED_MAX) * MIB);
	ALLOC(DEVICE, 64 * MIB);
	for (uint32_t i = 4; i < THREADS; i++)
		COPY(DEVICE + i * MIB, BUFFER2 + i * GIB, MIB);
	assert_int_equal(total(scene)->device, CARRIED_MAX * MIB);
	assert_true(scene->residency.exact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_shrinks_in_place),
		TEST(test_shrinks_elsewhere),
		TEST(test_grows),
		TEST(test_refused),
		TEST(test_others_in_between),
		TEST(test_free_alone),
		TEST(test_over_what_was_there),
		TEST(test_copy_not_over),
		TEST(test_many_threads),
		TEST(test_old_block_and_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
