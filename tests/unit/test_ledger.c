/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the demand where it is sampled: between two samples it is an interval and no guess, and what a call is still
 * doing when a sample is taken is not counted twice.
 */
#include "scene.h"

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)

static void play_weights(struct scene *scene)
{
	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	play_file(scene, 1, "/m/w.safetensors", GIB);
}

/* Program memory of 100 MiB, then 300, then 200: what it was in between is between the neighbours. */
static void test_between_samples(void **state)
{
	struct scene *scene = *state;
	const struct model *model;
	struct range demand;

	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	ALLOC(DEVICE, GIB);
	play_sample(scene, 20 * GIB, GIB, 300 * MIB, 0);
	FREE(DEVICE);
	ALLOC(DEVICE, 2 * GIB);
	FREE(DEVICE);
	play_sample(scene, 20 * GIB, GIB, 200 * MIB, 0);
	EXIT(0);
	model = scene_model(scene, true);
	demand = model->moments[MOMENT_DEMAND_PEAK].demand;
	assert_int_equal(demand.lo, 2 * GIB + 100 * MIB);
	assert_int_equal(demand.hi, 2 * GIB + 200 * MIB);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].layers.host.hi, 200 * MIB);
}

/* A peak that a sample itself shows is exact, whatever its neighbours say. */
static void test_at_sample(void **state)
{
	struct scene *scene = *state;
	struct range demand;

	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	play_sample(scene, 20 * GIB, GIB, 600 * MIB, 0);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	demand = scene_model(scene, true)->moments[MOMENT_DEMAND_PEAK].demand;
	assert_int_equal(demand.lo, 500 * MIB);
	assert_int_equal(demand.hi, 500 * MIB);
}

/* Others that grow take room; what they give back is none. */
static void test_others(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_sample(scene, 20 * GIB, GIB, 0, 800 * MIB);
	ALLOC(DEVICE, GIB);
	play_sample(scene, 20 * GIB, GIB, 0, 300 * MIB);
	play_sample(scene, 20 * GIB, GIB, 0, 900 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].demand.hi, GIB + 100 * MIB);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].layers.others.hi, 100 * MIB);
}

/*
 * One copy of 1 GiB that breaks copy-on-write for as long as it takes, with samples in its middle, and an unmap that
 * takes its time, with a sample in its middle: 2 GiB at most, and never more.
 */
static void test_calls_under_way(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	play(scene, RECORD(enter, .call = ST_KIND_copy, .addr = MAPPED, .size = GIB));
	play_sample(scene, 20 * GIB, GIB, 400 * MIB, 0);
	play_sample(scene, 20 * GIB, GIB, 900 * MIB, 0);
	COPY(DEVICE, MAPPED, GIB);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + GIB);
	UNMAP(MAPPED, GIB);
	play_sample(scene, 20 * GIB, GIB, 700 * MIB, 0);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].demand.hi, 2 * GIB);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].demand.lo, 2 * GIB);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].phase, PHASE_LOAD);
	assert_int_equal(model->load.repaired.hi, GIB);
	assert_int_equal(model->moments[MOMENT_END].layers.host.hi, 0);
}

/* A rise that no copy explains is the program's own. */
static void test_own_growth(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, GIB);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + GIB);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB + GIB + 300 * MIB, 0);
	UNMAP(MAPPED, GIB);
	play_sample(scene, 20 * GIB, GIB, 400 * MIB, 0);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].demand.hi, 2 * GIB + 300 * MIB);
	assert_int_equal(model->load.repaired.hi, GIB + 300 * MIB);
	assert_int_equal(model->moments[MOMENT_END].layers.host.hi, 300 * MIB);
}

/* The layers of a sample add up: what nothing explains is the kernel's, with its sign. */
static void test_kernel(void **state)
{
	struct scene *scene = *state;
	const struct layers *layers;

	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 50 * MIB);
	ALLOC(DEVICE, GIB);
	play(scene, RECORD(pinned_alloc, .addr = 300 * GIB, .size = 64 * MIB));
	play_sample(scene, 20 * GIB - GIB - 64 * MIB - 200 * MIB - 7 * MIB, GIB, 300 * MIB, 50 * MIB);
	EXIT(0);
	layers = &scene_model(scene, true)->moments[MOMENT_DEMAND_PEAK].layers;
	assert_int_equal(layers->kernel.lo, 7 * MIB);
	assert_int_equal(layers->kernel.hi, 7 * MIB);
	assert_int_equal(layers->pinned, 64 * MIB);
	assert_int_equal(layers->stale_cache.lo, GIB);
}

/* In a file a sample may stand before events that it has seen. */
static void test_order(void **state)
{
	struct scene *scene = *state;
	struct range demand;
	uint64_t later;

	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	later = record_now.time + UINT64_C(10000000000);
	record_now.time = later;
	play_sample(scene, 20 * GIB, GIB, 100 * MIB + GIB, 0);
	record_now.time = later - UINT64_C(5000000000);
	play_file(scene, 1, "/m/w.safetensors", GIB);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	COPY(DEVICE, MAPPED, GIB);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + GIB);
	record_now.time = later + 1;
	UNMAP(MAPPED, GIB);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	demand = scene_model(scene, true)->moments[MOMENT_DEMAND_PEAK].demand;
	assert_int_equal(demand.lo, GIB);
	assert_int_equal(demand.hi, GIB);
	assert_int_equal(scene->model->moments[MOMENT_DEMAND_PEAK].layers.host.hi, 0);
}

#define BLOCK              (300 * GIB)
#define HEAP(addr_, size_) play(scene, RECORD(alloc, .addr = (addr_), .size = (size_)))
#define HEAP_FREE(addr_)   play(scene, RECORD(free, .addr = (addr_)))

static void assert_load(struct scene *scene, uint64_t lo, uint64_t hi)
{
	struct range demand = scene_model(scene, true)->load.demand;

	assert_int_equal(demand.lo, lo);
	assert_int_equal(demand.hi, hi);
}

/* The first sample comes when a quarter of the load is in the heap: that quarter is seen as a block, not as memory. */
static void test_first_sample_is_late(void **state)
{
	struct scene *scene = *state;

	play_weights(scene);
	READ(1, 0, 4096, BLOCK - 4096);
	HEAP(BLOCK, 256 * MIB);
	READ(1, 0, 256 * MIB, BLOCK);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB + 256 * MIB, 0);
	HEAP(BLOCK + GIB, 768 * MIB);
	READ(1, 256 * MIB, 768 * MIB, BLOCK + GIB);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB + GIB, 0);
	EXIT(0);
	assert_load(scene, 768 * MIB, GIB);
}

/* What comes and goes between two samples: a new block, and one that was there before it was read into. */
static void test_between_two_looks(void **state)
{
	struct scene *scene = *state;

	play_weights(scene);
	HEAP(BLOCK, 256 * MIB);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	READ(1, 0, 4096, BLOCK - 4096);
	READ(1, 0, 256 * MIB, BLOCK);
	READ(1, 0, 256 * MIB, BLOCK);
	HEAP(BLOCK + GIB, 512 * MIB);
	READ(1, 256 * MIB, 512 * MIB, BLOCK + GIB);
	HEAP_FREE(BLOCK);
	HEAP_FREE(BLOCK + GIB);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	assert_load(scene, 0, 768 * MIB);
}

/* No sample after the load: what came since the last one may all be there. */
static void test_no_look_after(void **state)
{
	struct scene *scene = *state;

	play_weights(scene);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	READ(1, 0, 4096, BLOCK - 4096);
	HEAP(BLOCK, GIB);
	READ(1, 0, GIB, BLOCK);
	assert_load(scene, 0, GIB);
}

/* A block that nobody touches is no memory, however large: the next sample shows that it did not grow. */
static void test_block_that_stays_empty(void **state)
{
	struct scene *scene = *state;

	play_weights(scene);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	READ(1, 0, 4096, BLOCK - 4096);
	HEAP(BLOCK, 40 * GIB);
	READ(1, 0, 128 * MIB, BLOCK);
	play_sample(scene, 20 * GIB, GIB, 228 * MIB, 0);
	HEAP_FREE(BLOCK);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	assert_load(scene, 128 * MIB, 128 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_between_samples),
		TEST(test_at_sample),
		TEST(test_others),
		TEST(test_calls_under_way),
		TEST(test_own_growth),
		TEST(test_kernel),
		TEST(test_order),
		TEST(test_first_sample_is_late),
		TEST(test_between_two_looks),
		TEST(test_no_look_after),
		TEST(test_block_that_stays_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
