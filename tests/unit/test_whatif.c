/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what a repair is said to save: the maxima of a replay with each effect, of loads small enough to work
 * them out by hand. Where the trace cannot tell, the interval holds every way that it may have been.
 */
#include "scene.h"

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)
#define BUFFER (300 * GIB)

static void play_weights(struct scene *scene)
{
	static const char *const names[] = {"t0", "t1", "t2", "t3"};

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	play_file(scene, 1, "/m/w.safetensors", GIB);
	for (uint64_t i = 0; i < 4; i++)
		play_tensor(scene, 1, names[i], i * 256 * MIB, 256 * MIB);
}

static void play_copies(struct scene *scene, uint64_t source)
{
	for (uint64_t i = 0; i < 4; i++)
		COPY(DEVICE + i * 256 * MIB, source + i * 256 * MIB, 256 * MIB);
}

static void assert_range(struct range range, uint64_t lo, uint64_t hi)
{
	assert_int_equal(range.lo, lo);
	assert_int_equal(range.hi, hi);
}

static void assert_outcome(const struct model *model, enum effect effect, uint64_t lo, uint64_t hi)
{
	const struct outcome *outcome = &model->load.outcomes[effect];

	assert_true(outcome->valid);
	assert_range(outcome->modelled, lo, hi);
	assert_range(outcome->demand, lo, hi);
}

/* 1 GiB copied straight out of a private writable mapping: 2 GiB in all, of which 1 GiB are copies. */
static const struct model *copy_on_write(struct scene *scene)
{
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	play_copies(scene, MAPPED);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + GIB);
	UNMAP(MAPPED, GIB);
	EXIT(0);
	return scene_model(scene, true);
}

static void test_copy_on_write(void **state)
{
	const struct model *model;

	play_weights(*state);
	model = copy_on_write(*state);
	assert_range(model->load.modelled, 2 * GIB, 2 * GIB);
	assert_outcome(model, EFFECT_READONLY, GIB, GIB);
	/* One slot of 256 MiB for the one thread. */
	assert_outcome(model, EFFECT_SLOTS, GIB + 256 * MIB, GIB + 256 * MIB);
	/* At most twice the largest tensor on its way. */
	assert_outcome(model, EFFECT_TENSOR, GIB, GIB + 512 * MIB);
	/* The only file is needed until its last byte. */
	assert_outcome(model, EFFECT_RELEASE, 2 * GIB, 2 * GIB);
	/* Nothing was read, nothing pinned, and there was one thread. */
	assert_false(model->load.outcomes[EFFECT_MAPPED].valid);
	assert_false(model->load.outcomes[EFFECT_STREAM].valid);
	assert_false(model->load.outcomes[EFFECT_BOUNCE].valid);
	assert_false(model->load.outcomes[EFFECT_ONE_THREAD].valid);
}

/* Slots are those of the sizes that were copied: 300 MiB go through one of 512. */
static void test_slots(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	play_file(scene, 1, "/m/w.safetensors", 600 * MIB);
	play_tensor(scene, 1, "a", 0, 300 * MIB);
	play_tensor(scene, 1, "b", 300 * MIB, 300 * MIB);
	MAP(MAPPED, 600 * MIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, 600 * MIB);
	COPY(DEVICE, MAPPED, 300 * MIB);
	COPY(DEVICE + 300 * MIB, MAPPED + 300 * MIB, 300 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_outcome(model, EFFECT_SLOTS, 1112 * MIB, 1112 * MIB);
}

/* Two files of 512 MiB, mapped to the end: released one after the other, only one is there twice at a time. */
static void test_release(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	for (uint64_t i = 1; i <= 2; i++) {
		char path[40];

		snprintf(path, sizeof(path), "/m/m-0000%u-of-00002.safetensors", (unsigned)i);
		play_file(scene, i, path, 512 * MIB);
		MAP(MAPPED + i * GIB, 512 * MIB, PROT_RW, .file = i);
	}
	ALLOC(DEVICE, GIB);
	for (uint64_t i = 1; i <= 2; i++)
		for (uint64_t part = 0; part < 2; part++)
			COPY(DEVICE + (i * 2 + part - 2) * 256 * MIB, MAPPED + i * GIB + part * 256 * MIB,
			     256 * MIB);
	for (uint64_t i = 1; i <= 2; i++)
		SCAN(MAPPED + i * GIB, 512 * MIB, MAPPED + i * GIB, MAPPED + i * GIB + 512 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.modelled, 2 * GIB, 2 * GIB);
	assert_outcome(model, EFFECT_RELEASE, GIB + 512 * MIB, GIB + 512 * MIB);
	assert_outcome(model, EFFECT_READONLY, GIB, GIB);
}

/* 64 MiB that the program wrote before they were copied are its own, whatever the mapping allows. */
static void written_first(struct scene *scene, bool entered, uint64_t took)
{
	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + 64 * MIB);
	if (entered)
		play(scene, RECORD(enter, .call = ST_KIND_copy, .addr = MAPPED, .size = GIB));
	COPY(DEVICE, MAPPED, GIB, .took = took);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + GIB);
	EXIT(0);
	scene_model(scene, true);
}

static void test_written_before_a_copy_that_took(void **state)
{
	struct scene *scene = *state;

	written_first(scene, false, 1000);
	assert_outcome(scene->model, EFFECT_READONLY, GIB + 64 * MIB, GIB + 64 * MIB);
}

static void test_written_before_a_copy_entered(void **state)
{
	struct scene *scene = *state;

	written_first(scene, true, 0);
	assert_outcome(scene->model, EFFECT_READONLY, GIB + 64 * MIB, GIB + 64 * MIB);
}

/* The scan came while the copy was under way: those pages are the copy's. */
static void test_found_under_way(void **state)
{
	struct scene *scene = *state;

	written_first(scene, false, UINT64_C(3000000000));
	assert_outcome(scene->model, EFFECT_READONLY, GIB, GIB);
}

/* When the copy began is not known: both may be. */
static void test_found_at_an_unknown_time(void **state)
{
	struct scene *scene = *state;

	written_first(scene, false, 0);
	assert_outcome(scene->model, EFFECT_READONLY, GIB, GIB + 64 * MIB);
}

/* All of a file read into the heap, then copied: mapped instead, the heap is not there. */
static void play_heap(struct scene *scene)
{
	play(scene, RECORD(alloc, .addr = BUFFER, .size = GIB));
	READ(1, 0, GIB, BUFFER);
	ALLOC(DEVICE, GIB);
	play_copies(scene, BUFFER);
}

static void test_read_to_heap(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	play_heap(scene);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.modelled, 2 * GIB, 2 * GIB);
	assert_outcome(model, EFFECT_MAPPED, GIB, GIB);
	/* A tensor at a time. */
	assert_outcome(model, EFFECT_STREAM, GIB, GIB + 256 * MIB);
	assert_false(model->load.outcomes[EFFECT_READONLY].valid);
}

/* Where the program's memory is sampled, the heap is in that, also once it is no staging any more. */
static void test_read_to_heap_sampled(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 0);
	play_heap(scene);
	play_sample(scene, 18 * GIB, GIB, 100 * MIB + GIB, 0);
	play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT));
	play_sample(scene, 18 * GIB, GIB, 100 * MIB + GIB, 0);
	play(scene, RECORD(free, .addr = BUFFER));
	play_sample(scene, 19 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->needed.demand.lo, 2 * GIB);
	assert_range(model->load.outcomes[EFFECT_MAPPED].demand, GIB, GIB);
}

/* A whole file in pinned memory: a pool of 16 to 128 MiB does it as well. */
static void test_pinned_file(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = GIB, .stack = 7));
	ALLOC(DEVICE, GIB);
	play_copies(scene, BUFFER);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.modelled, 2 * GIB, 2 * GIB);
	assert_int_equal(model->load.pinned_sources, GIB);
	assert_outcome(model, EFFECT_BOUNCE, GIB + 16 * MIB, GIB + 128 * MIB);
}

/* Two threads with a converted tensor each: one thread has one of them. */
static void test_one_thread(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	for (uint64_t i = 0; i < 2; i++) {
		record_now.thread = (uint32_t)(i + 1);
		play(scene, RECORD(alloc, .addr = BUFFER + i * GIB, .size = 256 * MIB));
		COPY(DEVICE + i * 256 * MIB, BUFFER + i * GIB, 256 * MIB, .async = 1, .stream = i + 1);
	}
	record_now.thread = 1;
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.modelled, GIB + 512 * MIB, GIB + 512 * MIB);
	assert_outcome(model, EFFECT_ONE_THREAD, GIB + 256 * MIB, GIB + 512 * MIB);
}

/* Page cache goes once the bytes are on the device: what the pool held is less, the need is not. */
static void test_drop(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	play(scene, RECORD(cached, .file = 1, .size = GIB, .cached = 0));
	ALLOC(DEVICE, GIB);
	for (uint64_t i = 0; i <= 4; i++) {
		play(scene, RECORD(cached, .file = 1, .size = GIB, .cached = i * 256 * MIB));
		if (i < 4)
			COPY(DEVICE + i * 256 * MIB, MAPPED + i * 256 * MIB, 256 * MIB);
	}
	play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT));
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.resident, 2 * GIB, 2 * GIB);
	assert_range(model->load.outcomes[EFFECT_DROP].demand, GIB, GIB);
	assert_range(model->load.outcomes[EFFECT_DROP].modelled, GIB, GIB);
	assert_range(model->load.outcomes[EFFECT_DROP].resident, GIB, GIB);
}

/* The sixth of eight shards of 256 MiB was refused: what is to come makes no copies either. */
static void test_dead_load(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	for (uint64_t i = 0; i < 8; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/m/model-%05u-of-00008.safetensors", (unsigned)i + 1);
		play_file(scene, i + 1, path, 256 * MIB);
		MAP(MAPPED + i * GIB, 256 * MIB, PROT_RW, .file = i + 1);
	}
	for (uint64_t i = 0; i < 5; i++) {
		ALLOC(DEVICE + i * GIB, 256 * MIB);
		COPY(DEVICE + i * GIB, MAPPED + i * GIB, 256 * MIB);
		SCAN(MAPPED + i * GIB, 256 * MIB, MAPPED + i * GIB, MAPPED + i * GIB + 256 * MIB);
	}
	ALLOC(0, 256 * MIB, .result = 2);
	EXIT(1);
	model = scene_model(scene, true);
	assert_range(model->needed.modelled, 4 * GIB, 4 * GIB);
	assert_outcome(model, EFFECT_READONLY, 2 * GIB, 2 * GIB);
}

/* On a discrete device nothing is broken out of a mapping, and nothing is to repair there. */
static void test_discrete(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_DISCRETE, .page_size = 4096));
	play_file(scene, 1, "/m/w.safetensors", GIB);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	play_copies(scene, MAPPED);
	EXIT(0);
	model = scene_model(scene, true);
	assert_false(model->load.outcomes[EFFECT_READONLY].valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_copy_on_write),
		TEST(test_slots),
		TEST(test_release),
		TEST(test_written_before_a_copy_that_took),
		TEST(test_written_before_a_copy_entered),
		TEST(test_found_under_way),
		TEST(test_found_at_an_unknown_time),
		TEST(test_read_to_heap),
		TEST(test_read_to_heap_sampled),
		TEST(test_pinned_file),
		TEST(test_one_thread),
		TEST(test_drop),
		TEST(test_dead_load),
		TEST(test_discrete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
