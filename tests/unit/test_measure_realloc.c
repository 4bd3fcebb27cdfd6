/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the peaks of a load that reads whole files into blocks which realloc() then shrinks or enlarges. */
#include "measure_scene.h"

#define REALLOC(addr_, size_, ...) HOST(addr_, size_, .how = ST_HOST_REALLOC, __VA_ARGS__)

/* Weights that come to the device by way of a block that shrinks: staging from its first byte on, never anything else. */
static void test_whole_file(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, 4096, PROT_R, .file = 1);
	ALLOC(DEVICE, FILE_SIZE, .stack = 9);
	HOST(HEAP, FILE_SIZE + 100, .stack = 3);
	READ(1, 0, FILE_SIZE, HEAP + 32);
	HOST_FREE(HEAP);
	REALLOC(HEAP, FILE_SIZE + 99, .stack = 4);
	HOST(HEAP + 4 * GIB, 64 * MIB, .stack = 5);
	COPY(DEVICE, HEAP + 32, FILE_SIZE);
	HOST_FREE(HEAP);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, FILE_SIZE);
	assert_part(m->model, STAGING, FILE, 0, FILE_SIZE);
	assert_part(m->model, STAGING, TENSOR, 0, 256 * MIB);
	assert_part(m->model, STAGING, TENSOR, 1, 768 * MIB);
	assert_exact(m, METRIC_HOST, 64 * MIB + 99);
	assert_part(m->model, HOST, STACK, 4, 99);
	assert_part(m->model, HOST, STACK, 5, 64 * MIB);
	assert_exact(m, METRIC_DEVICE, FILE_SIZE);
	assert_part(m->model, DEVICE, TENSOR, 0, 256 * MIB);
	assert_part(m->model, DEVICE, TENSOR, 1, 768 * MIB);
	measures_release(&measures);
}

/*
 * A block grows as the file comes, and its last part is read again from the beginning: what is carried is no other memory,
 * nor is what will be read there. What another thread holds meanwhile is a peak of its own.
 */
static void test_block_that_grows(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, 4096, PROT_R, .file = 1);
	ALLOC(DEVICE, FILE_SIZE, .stack = 9);
	HOST(HEAP, 256 * MIB, .stack = 3);
	READ(1, 0, 256 * MIB, HEAP);
	HOST_FREE(HEAP);
	record_now.thread = 2;
	HOST(HEAP, 32 * MIB, .stack = 7);
	record_now.thread = 1;
	REALLOC(HEAP + 4 * GIB, FILE_SIZE + 8 * MIB, .stack = 4);
	HOST(HEAP + 8 * GIB, 64 * MIB, .stack = 8);
	HOST_FREE(HEAP + 8 * GIB);
	READ(1, 0, FILE_SIZE, HEAP + 4 * GIB);
	COPY(DEVICE, HEAP + 4 * GIB, FILE_SIZE);
	HOST_FREE(HEAP + 4 * GIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, FILE_SIZE);
	assert_part(m->model, STAGING, STACK, 4, FILE_SIZE);
	assert_no_part(m->model, STAGING, STACK, 3);
	assert_exact(m, METRIC_HOST, 104 * MIB);
	assert_part(m->model, HOST, STACK, 4, 8 * MIB);
	assert_part(m->model, HOST, STACK, 7, 32 * MIB);
	assert_part(m->model, HOST, STACK, 8, 64 * MIB);
	measures_release(&measures);
}

/* Without a device the block is memory of the load, once, and its realloc() asked for it. */
static void test_host_only(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	HOST(HEAP, FILE_SIZE, .stack = 3);
	begin_load(scene);
	READ(1, 0, FILE_SIZE, HEAP);
	HOST_FREE(HEAP);
	REALLOC(HEAP + 4 * GIB, FILE_SIZE + 8 * MIB, .stack = 4);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, 0);
	assert_exact(m, METRIC_HOST, FILE_SIZE + 8 * MIB);
	assert_part(m->model, HOST, STACK, 4, FILE_SIZE + 8 * MIB);
	assert_no_part(m->model, HOST, STACK, 3);
	measures_release(&measures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole_file),
		TEST(test_block_that_grows),
		TEST(test_host_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
