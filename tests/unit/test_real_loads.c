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
		TEST(test_header_is_no_staging),
		TEST(test_read_across_the_header),
		TEST(test_bursts_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
