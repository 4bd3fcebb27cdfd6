/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the phases: what is taken for the load decides which rung can help, and a program that dies must be found
 * in the phase that it died in.
 */
#include "scene.h"

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)
#define SECOND UINT64_C(1000000000)

static void play_load(struct scene *scene)
{
	play_file(scene, 1, "/m/w.safetensors", GIB);
	ALLOC(DEVICE, 64 * MIB); /* the context, say */
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	ALLOC(DEVICE + GIB, GIB);
	COPY(DEVICE + GIB, MAPPED, 512 * MIB);
	COPY(DEVICE + GIB + 512 * MIB, MAPPED + 512 * MIB, 512 * MIB);
}

/* The five phases one after the other; what settled is what stood before the first allocation after the load. */
static void test_phases(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	UNMAP(MAPPED, GIB);
	FREE(DEVICE);
	ALLOC(DEVICE + 4 * GIB, 256 * MIB);
	FREE(DEVICE + 4 * GIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_FIRST_WEIGHT].layers.device, 64 * MIB);
	assert_int_equal(model->moments[MOMENT_LAST_WEIGHT].layers.device, GIB + 64 * MIB);
	assert_int_equal(model->moments[MOMENT_SETTLED].layers.device, GIB);
	assert_int_equal(model->moments[MOMENT_STEPS_PEAK].layers.device, GIB + 256 * MIB);
	assert_int_equal(model->moments[MOMENT_LOAD_MODELLED_PEAK].layers.device, GIB + 64 * MIB);
	assert_int_equal(model->moments[MOMENT_END].phase, PHASE_END);
	assert_int_equal(model->load.demand.lo, GIB);
	assert_int_equal(model->load.begin, 2 * SECOND);
	assert_int_equal(model->load.end, 5 * SECOND);
}

/* Without steps the load has settled when the program begins to give back. */
static void test_load_only(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	FREE(DEVICE + GIB);
	FREE(DEVICE);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_SETTLED].layers.device, GIB + 64 * MIB);
	assert_false(model->moments[MOMENT_STEPS_PEAK].valid);
}

/* A mark begins the steps, even where weights are read again after it. */
static void test_mark(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	play(scene, record_tail(RECORD(mark), "step 1", 6));
	ALLOC(DEVICE + 4 * GIB, GIB);
	COPY(DEVICE + 4 * GIB, MAPPED, 16 * MIB); /* an evaluation looks at a tensor */
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].phase, PHASE_STEPS);
	assert_int_equal(model->moments[MOMENT_SETTLED].layers.device, GIB + 64 * MIB);
	assert_int_equal(model->load.device, GIB + 64 * MIB);
}

/* Weights that move long after the load are another matter. */
static void test_late_burst(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	ALLOC(DEVICE + 4 * GIB, GIB);
	record_now.time += 300 * SECOND;
	COPY(DEVICE + 4 * GIB, MAPPED, 16 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].phase, PHASE_STEPS);
	assert_int_equal(model->load.end, 5 * SECOND);
}

/* Two threads look at the clock in one order and take their numbers in the other: that is no pause. */
static void test_crossed_clocks(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_file(scene, 1, "/m/w.safetensors", GIB);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, 256 * MIB);
	record_now.time -= SECOND + 10;
	COPY(DEVICE + 256 * MIB, MAPPED + 256 * MIB, 256 * MIB);
	ALLOC(DEVICE + GIB, 512 * MIB);
	COPY(DEVICE + GIB, MAPPED + 512 * MIB, 512 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->load.device, GIB + 512 * MIB);
	assert_int_equal(model->load.loaded.lo, GIB);
	assert_false(model->moments[MOMENT_STEPS_PEAK].valid);
}

/* What is converted on the host moves without a call: all comes out the same whether a sample saw it or not. */
static void play_converted(struct scene *scene, bool seen)
{
	play_file(scene, 1, "/m/w.safetensors", GIB);
	play_sample(scene, 20 * GIB, 0, MIB, 0);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	if (seen)
		play_sample(scene, 19 * GIB, 0, 512 * MIB, 0);
	ALLOC(DEVICE, 512 * MIB);
	FREE(DEVICE);
	ALLOC(DEVICE, 2 * GIB);
	EXIT(0);
	assert_int_equal(scene_model(scene, true)->load.device, 2 * GIB);
}

static void test_growth_seen(void **state)
{
	play_converted(*state, true);
}

static void test_growth_not_seen(void **state)
{
	play_converted(*state, false);
}

#define ON_DEVICE(dst_, src_, size_) \
	play(scene, RECORD(copy, .dst = (dst_), .src = (src_), .size = (size_), .how = ST_COPY_D2D))

/* A loader that clones each tensor out of its buffer on the device: the clone of the last one is load as well. */
static void test_clone_of_the_last_tensor(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	ALLOC(DEVICE + 4 * GIB, 512 * MIB);
	ON_DEVICE(DEVICE + 4 * GIB, DEVICE + GIB, 512 * MIB);
	ALLOC(DEVICE + 5 * GIB, 512 * MIB);
	ON_DEVICE(DEVICE + 5 * GIB, DEVICE + GIB + 512 * MIB, 512 * MIB);
	FREE(DEVICE + GIB);
	ALLOC(DEVICE + 6 * GIB, 16 * MIB); /* a step */
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->load.device, 2 * GIB + 64 * MIB);
	assert_int_equal(model->load.end, 9 * SECOND);
	assert_int_equal(model->load.weights, GIB);
	assert_int_equal(model->moments[MOMENT_SETTLED].layers.device, GIB + 64 * MIB);
	assert_int_equal(model->moments[MOMENT_STEPS_PEAK].layers.device, GIB + 80 * MIB);
}

/* Steps that copy weights about on the device are none: into memory they had before, what is no weights, or late. */
static void test_copies_of_steps(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	ALLOC(DEVICE + 4 * GIB, 64 * MIB);
	ALLOC(DEVICE + 5 * GIB, 32 * MIB);
	ON_DEVICE(DEVICE + 4 * GIB, DEVICE + GIB, 64 * MIB);
	ON_DEVICE(DEVICE + 5 * GIB, DEVICE, 32 * MIB);
	record_now.time += 10 * SECOND;
	ALLOC(DEVICE + 6 * GIB, 16 * MIB);
	ON_DEVICE(DEVICE + 6 * GIB, DEVICE + GIB, 16 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->load.end, 5 * SECOND);
	assert_int_equal(model->load.device, GIB + 64 * MIB);
	assert_int_equal(model->moments[MOMENT_STEPS_PEAK].layers.device, GIB + 176 * MIB);
}

static void test_died_in_steps(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene);
	for (uint64_t i = 0; i < 10; i++)
		ALLOC(DEVICE + (4 + i) * GIB, 16 * MIB);
	ALLOC(0, 3 * GIB, .result = 2);
	EXIT(1);
	model = scene_model(scene, true);
	assert_true(model->load.finished);
	assert_int_equal(model->needed.died_in, PHASE_STEPS);
	assert_int_equal(model->needed.request, 3 * GIB);
	assert_int_equal(model->needed.demand.hi, 4 * GIB + 224 * MIB);
	assert_int_equal(model->failures[0].at.phase, PHASE_STEPS);
}

/* Refused before a single weight byte came: what is missing is all of them, and the request is part of it. */
static void test_died_at_first_allocation(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_file(scene, 1, "/m/w.safetensors", 4 * GIB);
	MAP(MAPPED, 4 * GIB, PROT_R, .file = 1);
	ALLOC(0, GIB, .result = 2);
	EXIT(1);
	model = scene_model(scene, true);
	assert_int_equal(model->needed.died_in, PHASE_LOAD);
	assert_int_equal(model->load.remaining.lo, 4 * GIB);
	assert_int_equal(model->needed.demand.lo, 4 * GIB);
	assert_int_equal(model->needed.request, 0);
}

/* One of two ranks: how much of the files is its share, one process cannot tell. */
static void test_ranks(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play(scene, RECORD(process, .pid = 4, .rank = 0, .world = 2));
	play_file(scene, 1, "/m/w.safetensors", GIB);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, MAPPED, 256 * MIB);
	ALLOC(0, 256 * MIB, .result = 2);
	EXIT(1);
	model = scene_model(scene, true);
	assert_int_equal(model->load.would_load.lo, 512 * MIB);
	assert_int_equal(model->load.would_load.hi, GIB);
	assert_int_equal(model->needed.modelled.lo, 512 * MIB);
	assert_int_equal(model->needed.modelled.hi, GIB);
}

/* Shards that names promise and nobody opened: at most as large as the largest seen, the last perhaps empty. */
static void test_missing_shards(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	for (uint64_t i = 0; i < 2; i++) {
		play_file(scene, i + 1,
		          i ? "/m/a-00002-of-00004.safetensors" : "/m/a-00001-of-00004.safetensors",
		          256 * MIB);
		MAP(MAPPED + i * GIB, 256 * MIB, PROT_R, .file = i + 1);
		if (!i) {
			ALLOC(DEVICE, 256 * MIB);
			COPY(DEVICE, MAPPED, 256 * MIB);
		}
	}
	ALLOC(0, 256 * MIB, .result = 2);
	EXIT(1);
	model = scene_model(scene, true);
	assert_int_equal(model->load.shards_missing, 2);
	assert_int_equal(model->load.would_load.lo, 768 * MIB);
	assert_int_equal(model->load.would_load.hi, GIB);
	assert_int_equal(model->needed.modelled.hi, GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_phases),          TEST(test_load_only),      TEST(test_mark),
		TEST(test_late_burst),      TEST(test_died_in_steps),  TEST(test_died_at_first_allocation),
		TEST(test_ranks),           TEST(test_missing_shards), TEST(test_clone_of_the_last_tensor),
		TEST(test_copies_of_steps), TEST(test_crossed_clocks), TEST(test_growth_seen),
		TEST(test_growth_not_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
