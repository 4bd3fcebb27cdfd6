/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects load_host_peak: which host blocks are the load's, and that weights in one are either there or staging, never in
 * both at a time; what nobody can see of them is said.
 */
#include "measure_scene.h"

/* Whole tensors on the heap of a program without a device: memory that is held, whoever asked for it first. */
static void test_read_whole(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	HOST(HEAP, 256 * MIB, .stack = 3);
	READ(1, 0, 256 * MIB, HEAP);
	HOST(HEAP + GIB, 768 * MIB, .stack = 4);
	READ(1, 256 * MIB, 768 * MIB, HEAP + GIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_HOST, FILE_SIZE);
	assert_exact(m, METRIC_STAGING, 0);
	assert_part(m->model, HOST, STACK, 3, 256 * MIB);
	assert_part(m->model, HOST, STACK, 4, 768 * MIB);
	measures_release(&measures);
}

/* Read and then copied: staging while it is on its way, and no other memory before; a host block once it is there. */
static void test_staging_is_no_host_block(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, 4096, PROT_R, .file = 1);
	ALLOC(DEVICE, FILE_SIZE, .stack = 9);
	HOST(HEAP, 256 * MIB, .stack = 3);
	READ(1, 0, 256 * MIB, HEAP);
	COPY(DEVICE, HEAP, 256 * MIB);
	HOST(HEAP + GIB, 768 * MIB, .stack = 4);
	READ(1, 256 * MIB, 768 * MIB, HEAP + GIB);
	HOST_FREE(HEAP);
	COPY(DEVICE + 256 * MIB, HEAP + GIB, 768 * MIB);
	SYNC();
	HOST_FREE(HEAP + GIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, 768 * MIB);
	assert_part(m->model, STAGING, STACK, 4, 768 * MIB);
	assert_part(m->model, STAGING, FILE, 0, 768 * MIB);
	assert_part(m->model, STAGING, TENSOR, 1, 768 * MIB);
	assert_no_part(m->model, STAGING, TENSOR, 0);
	/* After its copy the second one lives on for a moment, and the first one does no more. */
	assert_exact(m, METRIC_HOST, 768 * MIB);
	assert_part(m->model, HOST, STACK, 4, 768 * MIB);
	assert_exact(m, METRIC_DEVICE, FILE_SIZE);
	assert_part(m->model, DEVICE, STACK, 9, FILE_SIZE);
	assert_part(m->model, DEVICE, TENSOR, 0, 256 * MIB);
	assert_part(m->model, DEVICE, TENSOR, 1, 768 * MIB);
	assert_exact(m, METRIC_MODELLED, FILE_SIZE + 768 * MIB);
	assert_exact(m, METRIC_FACTOR, 17500);
	measures_release(&measures);
}

/* A large block of which weights are read to both ends: the rest of it is memory like any other. */
static void test_block_with_a_hole(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, 4096, PROT_R, .file = 1);
	ALLOC(DEVICE, FILE_SIZE);
	HOST(HEAP, 8 * GIB, .stack = 3);
	READ(1, 0, 256 * MIB, HEAP);
	COPY(DEVICE, HEAP, 256 * MIB);
	READ(1, 256 * MIB, 512 * MIB, HEAP + 7 * GIB);
	READ(1, 768 * MIB, 256 * MIB, HEAP + 7 * GIB + 512 * MIB);
	COPY(DEVICE + 256 * MIB, HEAP + 7 * GIB, 768 * MIB);
	HOST_FREE(HEAP);
	SYNC();
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, 768 * MIB);
	/* While the second half is on its way, and before. */
	assert_exact(m, METRIC_HOST, 8 * GIB - 768 * MIB);
	assert_part(m->model, HOST, STACK, 3, 8 * GIB - 768 * MIB);
	measures_release(&measures);
}

/* What is staged in a block from before the load takes nothing off those of the load. */
static void test_staging_in_an_old_block(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	HOST(HEAP, 256 * MIB, .stack = 3);
	begin_load(scene);
	MAP(MAPPED, 4096, PROT_R, .file = 1);
	ALLOC(DEVICE, FILE_SIZE);
	READ(1, 0, 256 * MIB, HEAP);
	HOST(HEAP + GIB, 64 * MIB, .stack = 4);
	HOST_FREE(HEAP + GIB);
	COPY(DEVICE, HEAP, 256 * MIB);
	SYNC();
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, 256 * MIB);
	assert_part(m->model, STAGING, STACK, 3, 256 * MIB);
	assert_exact(m, METRIC_HOST, 64 * MIB);
	assert_part(m->model, HOST, STACK, 4, 64 * MIB);
	measures_release(&measures);
}

/* A read past the end of its block is damage: no part becomes less than nothing, which would be the most there is. */
static void test_read_past_its_block(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, 4096, PROT_R, .file = 1);
	ALLOC(DEVICE, FILE_SIZE);
	HOST(HEAP, 64 * MIB, .stack = 3);
	HOST(HEAP + 64 * MIB, 192 * MIB, .stack = 4);
	READ(1, 0, 256 * MIB, HEAP);
	HOST(HEAP + GIB, 3 * GIB, .stack = 5);
	HOST_FREE(HEAP + GIB);
	COPY(DEVICE, HEAP, 256 * MIB);
	SYNC();
	EXIT(0);
	m = measured(scene, &measures);
	assert_part(m->model, HOST, STACK, 5, 3 * GIB);
	assert_no_part(m->model, HOST, STACK, 3);
	measures_release(&measures);
}

/* What was there before the load is none of it, nor what comes with the steps. */
static void test_blocks_of_others(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	HOST(HEAP, 5 * GIB);
	begin_load(scene);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1);
	HOST(HEAP + 8 * GIB, 64 * MIB);
	HOST_FREE(HEAP);
	MARK("step 1");
	HOST(HEAP + 16 * GIB, 3 * GIB);
	MAP(MAPPED + 4 * GIB, FILE_SIZE, PROT_R, .file = 1);
	READ(1, 0, 256 * MIB, HEAP + 16 * GIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_HOST, 64 * MIB);
	assert_exact(m, METRIC_MAPPED, FILE_SIZE);
	assert_exact(m, METRIC_READ, 0);
	assert_int_equal(m->scale.mappings, 1);
	measures_release(&measures);
}

/* Blocks below the threshold are in no record; samples show them, and what large ones they saw beside is no such thing. */
static void test_small_blocks(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1);
	HOST(HEAP, 128 * MIB);
	play_sample(scene, 19 * GIB, GIB, (100 + 128 + 256) * MIB, 0);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_HOST, 128 * MIB);
	assert_int_equal(m->uncounted, 256 * MIB);
	measures_release(&measures);
}

/* PyTorch takes its tensors from arenas of its own where it was built so: nobody sees how much of them. */
static void test_arenas(void **state)
{
	static const uint64_t ask[] = {0x500010}, other[] = {0x600010};
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	play(scene, record_tail(RECORD(module, .start = 0x500000, .end = 0x501000), "/t/lib/libc10.so", 16));
	play(scene, record_tail(RECORD(module, .start = 0x600000, .end = 0x601000), "/p/libpython3.so", 16));
	play(scene, record_tail(RECORD(stack, .id = 5), ask, sizeof(ask)));
	play(scene, record_tail(RECORD(stack, .id = 6), other, sizeof(other)));
	play(scene, RECORD(map, .addr = HEAP, .size = GIB, .prot = PROT_RW, .flags = 0x22, .stack = 5));
	play(scene, RECORD(map, .addr = HEAP + GIB, .size = GIB, .prot = PROT_RW, .flags = 0x22, .stack = 6));
	UNMAP(HEAP, 256 * MIB);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1);
	HOST(HEAP + 4 * GIB, 64 * MIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_value(m, METRIC_HOST, 64 * MIB, (768 + 64) * MIB);
	measures_release(&measures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read_whole),
		TEST(test_staging_is_no_host_block),
		TEST(test_staging_in_an_old_block),
		TEST(test_read_past_its_block),
		TEST(test_block_with_a_hole),
		TEST(test_blocks_of_others),
		TEST(test_small_blocks),
		TEST(test_arenas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
