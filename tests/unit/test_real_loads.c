/* SPDX-License-Identifier: Apache-2.0 */
/* Protects what loads of real programs showed and those written by hand did not: small things between the large ones. */
#include "scene.h"

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)
#define BUFFER (300 * GIB)
#define HEADER (UINT64_C(816))

/* Every loader reads the header first, into memory that it never mentions again: that is no staging. */
static void test_header_is_no_staging(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_file(scene, 1, "/m/w.safetensors", GIB + HEADER);
	play_tensor(scene, 1, "t", HEADER, GIB);
	READ(1, 0, HEADER, BUFFER);
	MAP(MAPPED, GIB + HEADER, PROT_R, .file = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED + HEADER, GIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->load.staging_all, 0);
	assert_int_equal(model->load.modelled.lo, GIB);
	assert_int_equal(model->load.modelled.hi, GIB);
	assert_true(model->load.factor_hi == 1);
}

/* A read that covers header and tensors stages the tensors, in place of whatever the buffer held before. */
static void test_read_across_the_header(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_file(scene, 1, "/m/w.safetensors", 64 * MIB + HEADER);
	play_tensor(scene, 1, "t", HEADER, 64 * MIB);
	READ(1, HEADER, 32 * MIB, BUFFER);
	READ(1, 0, 64 * MIB + HEADER, BUFFER);
	ALLOC(DEVICE, 64 * MIB);
	COPY(DEVICE, BUFFER + HEADER, 64 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->load.staging_all, 64 * MIB);
	assert_int_equal(model->files[0].at_settled.on_device.lo, 64 * MIB);
}

#define HEAD (64 * MIB) /* of the files below: their cells are then of tensors or of none */

/* Four tensors in 64 MiB behind 64 MiB of header: two of 24 MiB, two of 8. */
static void play_alike(struct scene *scene, uint64_t id, const char *path, uint64_t addr)
{
	play_file(scene, id, path, HEAD + 64 * MIB);
	play_tensor(scene, id, "a", HEAD, 24 * MIB);
	play_tensor(scene, id, "b", HEAD + 24 * MIB, 24 * MIB);
	play_tensor(scene, id, "c", HEAD + 48 * MIB, 8 * MIB);
	play_tensor(scene, id, "d", HEAD + 56 * MIB, 8 * MIB);
	MAP(addr, HEAD + 64 * MIB, PROT_R, .file = id);
	play(scene,
	     RECORD(cached, .file = id, .offset = 0, .size = HEAD + 64 * MIB, .cached = HEAD + 64 * MIB));
}

static void slot_copy(struct scene *scene, uint64_t at, uint64_t size)
{
	COPY(DEVICE + at, BUFFER, size, .async = 1);
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM));
}

/* Two shards alike, mapped together, and a pinned slot that nobody sees filled (safetensors 0.8). */
static void slots_begin(struct scene *scene)
{
	play_alike(scene, 1, "/m/x-00001-of-00002.safetensors", MAPPED);
	play_alike(scene, 2, "/m/x-00002-of-00002.safetensors", MAPPED + GIB);
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 24 * MIB));
	ALLOC(DEVICE, 128 * MIB);
}

static void load_slots(struct scene *scene)
{
	slots_begin(scene);
	for (uint64_t i = 0; i < 4; i++)
		slot_copy(scene, i * 24 * MIB, 24 * MIB);
	for (uint64_t i = 0; i < 4; i++)
		slot_copy(scene, 96 * MIB + i * 8 * MIB, 8 * MIB);
	UNMAP(MAPPED, HEAD + 64 * MIB);
	UNMAP(MAPPED + GIB, HEAD + 64 * MIB);
	play(scene, RECORD(pinned_free, .addr = BUFFER));
}

static void assert_range(struct range range, uint64_t lo, uint64_t hi)
{
	assert_int_equal(range.lo, lo);
	assert_int_equal(range.hi, hi);
}

/* Whose tensor a copy was nobody can tell, but all together were all there are: everything is exact but the place. */
static void test_slots_all(void **state)
{
	struct scene *scene = *state;
	const struct model *model;
	const struct load *load;

	load_slots(scene);
	EXIT(0);
	model = scene_model(scene, true);
	load = &model->load;
	assert_range(load->loaded, 128 * MIB, 128 * MIB);
	assert_range(load->remaining, 0, 0);
	assert_range(load->reclaimable, 128 * MIB, 128 * MIB);
	assert_int_equal(load->threads, 1);
	assert_int_equal(load->spare, (32 + 8) * MIB);
	assert_int_equal(load->device_other, 0);
	assert_range(model->moments[MOMENT_SETTLED].on_device, 128 * MIB, 128 * MIB);
	assert_range(model->moments[MOMENT_SETTLED].reclaimable, 128 * MIB, 128 * MIB);
	for (size_t i = 0; i < 2; i++) {
		assert_range(model->files[i].loaded, 64 * MIB, 64 * MIB);
		assert_range(model->files[i].at_settled.on_device, 64 * MIB, 64 * MIB);
		assert_range(model->files[i].at_settled.reclaimable, 64 * MIB, 64 * MIB);
		assert_false(model->files[i].exact);
	}
	assert_range(model->tensors[0].at_settled.on_device, 24 * MIB,
	             24 * MIB); /* all of the file is there */
}

/* Part of them: the sum is exact, and of each file as much as the other cannot hold, up to all that fits. */
static void test_slots_some(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	slots_begin(scene);
	for (uint64_t i = 0; i < 3; i++)
		slot_copy(scene, i * 24 * MIB, 24 * MIB);
	slot_copy(scene, 96 * MIB, 8 * MIB);
	slot_copy(scene, 104 * MIB, 5 * MIB); /* no tensor's size: weights or not */
	EXIT(1);
	model = scene_model(scene, true);
	assert_range(model->load.loaded, 80 * MIB, 85 * MIB);
	assert_range(model->load.remaining, 43 * MIB, 48 * MIB);
	assert_range(model->moments[MOMENT_END].on_device, 80 * MIB, 85 * MIB);
	assert_range(model->load.reclaimable, 80 * MIB, 85 * MIB);
	for (size_t i = 0; i < 2; i++) {
		assert_range(model->files[i].loaded, 24 * MIB, 61 * MIB);
		assert_range(model->files[i].at_end.on_device, 24 * MIB, 61 * MIB);
	}
}

/* Half of the files in the cache: which half of the weights that is nobody knows, that it may be all of it counts. */
static void test_slots_half_cached(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	slots_begin(scene);
	play(scene, RECORD(cached, .file = 1, .offset = HEAD, .size = 64 * MIB, .cached = 16 * MIB));
	play(scene, RECORD(cached, .file = 2, .offset = HEAD, .size = 64 * MIB, .cached = 32 * MIB));
	for (uint64_t i = 0; i < 4; i++)
		slot_copy(scene, i * 24 * MIB, 24 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	/* 96 of 128 MiB on the device and 48 in the cache. */
	assert_range(model->moments[MOMENT_END].reclaimable, 16 * MIB, 96 * MIB);
	assert_range(model->files[0].at_end.on_device, 48 * MIB, 48 * MIB);
	assert_range(model->files[1].at_end.reclaimable, 16 * MIB, 48 * MIB);
}

/* Loaded, dropped and loaded again: there are as many weights on the device as before, and no more were loaded. */
static void test_slots_again(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	load_slots(scene);
	FREE(DEVICE);
	load_slots(scene);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.loaded, 128 * MIB, 128 * MIB);
	assert_range(model->moments[MOMENT_END].on_device, 128 * MIB, 128 * MIB);
	assert_range(model->files[0].at_end.on_device, 64 * MIB, 64 * MIB);
}

/* Copies that no size gives away: that nothing was in the pool twice is not known. */
static void test_slots_unknown(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	slots_begin(scene);
	for (uint64_t i = 0; i < 32; i++)
		slot_copy(scene, i * 4 * MIB, 4 * MIB);
	slot_copy(scene, 0, 4 * MIB); /* more than there are weights: something else is among them */
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.loaded, 0, 128 * MIB);
	assert_range(model->load.reclaimable, 0, 128 * MIB);
	assert_range(model->files[0].loaded, 0, 64 * MIB);
	assert_range(model->files[1].at_end.on_device, 0, 64 * MIB);
}

static void handles_create(struct scene *scene, unsigned count, uint64_t first)
{
	for (unsigned i = 0; i < count; i++)
		play(scene, RECORD(handle_create, .handle = first + i, .size = 20 * MIB, .stack = 7));
}

/* A burst of handles that is refused, and given back. */
static void burst_refused(struct scene *scene, unsigned count)
{
	handles_create(scene, count, 1000);
	play(scene, RECORD(handle_create, .size = 20 * MIB, .result = 2, .stack = 7));
	for (unsigned i = 0; i < count; i++)
		play(scene, RECORD(handle_release, .handle = 1000 + i));
}

static void burst_met(struct scene *scene, unsigned count, uint64_t first)
{
	handles_create(scene, count, first);
	for (unsigned i = 0; i < count; i++)
		play(scene, RECORD(handle_map, .addr = DEVICE + (first + i) * 20 * MIB, .size = 20 * MIB,
		                   .handle = first + i));
}

/*
 * PyTorch's expandable segments: every request comes from the same place, tries twice, and says nothing of its size.
 * One that can never be met must not swallow a later one that is met at the second try.
 */
static void test_bursts_are_told_apart(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	burst_met(scene, 4, 1);
	burst_refused(scene, 47);
	burst_refused(scene, 46);
	burst_met(scene, 4, 11);
	burst_refused(scene, 21);
	burst_met(scene, 38, 21);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->failure_count, 2);
	assert_int_equal(model->failures[0].repeats, 1);
	assert_int_equal(model->failures[0].attempted, 47 * 20 * MIB);
	assert_int_equal(model->failures[0].outcome, FAILURE_SURVIVED);
	assert_int_equal(model->failures[1].attempted, 21 * 20 * MIB);
	assert_int_equal(model->failures[1].outcome, FAILURE_RETRIED);
	assert_int_equal(model->device_peak, 46 * 20 * MIB);
	assert_int_equal(model->attempted_peak, 47 * 20 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_header_is_no_staging), TEST(test_read_across_the_header), TEST(test_slots_all),
		TEST(test_slots_some),           TEST(test_slots_half_cached),      TEST(test_slots_again),
		TEST(test_slots_unknown),        TEST(test_bursts_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
