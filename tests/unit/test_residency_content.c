/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the way of weight bytes to the device: through buffers, with and without their reads seen, by copies on the
 * device; exact where calls tell, an interval where they do not.
 */
#include "residency_scene.h"

/* Through a known buffer every byte is attributed; the buffer is staging until it is waited for. */
static void test_pinned_staging(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 64 * MIB));
	ALLOC(DEVICE, 256 * MIB);
	for (uint64_t i = 0; i < 4; i++) {
		READ(A_FILE, i * 64 * MIB, 64 * MIB, BUFFER);
		assert_int_equal(total(scene)->staging, 64 * MIB);
		assert_int_equal(scene->residency.staging_pinned, 64 * MIB);
		COPY(DEVICE + i * 64 * MIB, BUFFER, 64 * MIB, .async = 1, .stream = 3);
		play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .handle = 4)); /* another one's */
		assert_int_equal(total(scene)->staging, 64 * MIB);
		play(scene, RECORD(sync, .how = ST_SYNC_STREAM, .handle = 3));
		assert_int_equal(total(scene)->staging, 0);
	}
	assert_int_equal(total(scene)->device, 256 * MIB);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(tensor(scene, i).device, scene->catalog.tensors[i].size);
	assert_true(scene->residency.exact);
	/* Filled again by nobody that could be seen: not the old bytes. */
	play(scene, RECORD(device_free, .addr = DEVICE));
	assert_int_equal(total(scene)->device, 0);
	ALLOC(DEVICE, 256 * MIB);
	COPY(DEVICE, BUFFER, 64 * MIB);
	assert_int_equal(total(scene)->device, 0);
}

static void test_heap_staging(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(alloc, .addr = BUFFER, .size = 64 * MIB));
	READ(B_FILE, 0, 64 * MIB, BUFFER);
	assert_int_equal(total(scene)->staging, 64 * MIB);
	assert_int_equal(scene->residency.staging_pinned, 0);
	COPY(DEVICE, BUFFER + 16 * MIB,
	     32 * MIB); /* synchronous: over with the next record, for these bytes */
	assert_int_equal(total(scene)->staging, 64 * MIB);
	SYNC();
	assert_int_equal(total(scene)->staging, 32 * MIB);
	assert_int_equal(total(scene)->device, 32 * MIB);
	play(scene, RECORD(free, .addr = BUFFER));
	assert_int_equal(total(scene)->staging, 0);
	assert_int_equal(total(scene)->device, 32 * MIB);
	scene->residency.host_only = true;
	play(scene, RECORD(alloc, .addr = BUFFER, .size = 64 * MIB));
	READ(B_FILE, 0, 64 * MIB, BUFFER);
	assert_int_equal(total(scene)->staging, 0); /* weights in use on the host are no staging */
}

static void test_read_to_device(void **state)
{
	struct scene *scene = *state;

	ALLOC(DEVICE, 64 * MIB);
	READ(B_FILE, 0, 64 * MIB, DEVICE);
	assert_int_equal(total(scene)->device, 64 * MIB);
	assert_int_equal(total(scene)->staging, 0);
	assert_int_equal(scene->residency.weights[1].loaded.bytes, 64 * MIB);
}

/* Reads to unknown places: what then comes to the device may be theirs, and may not. */
static void test_unknown_destination(void **state)
{
	struct scene *scene = *state;
	struct range range;

	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 64 * MIB));
	ALLOC(DEVICE, 256 * MIB);
	for (uint64_t i = 0; i < 2; i++) {
		READ(B_FILE, i * 32 * MIB, 32 * MIB, 0);
		COPY(DEVICE + i * 32 * MIB, BUFFER, 32 * MIB);
	}
	range = amounts_device(total(scene), UINT64_MAX, total(scene)->unknown);
	assert_int_equal(range.lo, 0);
	assert_int_equal(range.hi, 64 * MIB);
	assert_false(scene->residency.exact);
	assert_int_equal(scene->residency.weights[1].unknown, 64 * MIB);
	COPY(DEVICE + 64 * MIB, BUFFER, 32 * MIB); /* more than there is of the file: no weights */
	assert_int_equal(total(scene)->unknown, 64 * MIB);
	play(scene, RECORD(memset, .addr = DEVICE, .size = 16 * MIB));
	assert_int_equal(total(scene)->unknown, 48 * MIB);
}

/* safetensors 0.8: mapping, memcpy to a pinned slot, copy. The sizes give the file away, not the place. */
static void test_vague(void **state)
{
	struct scene *scene = *state;
	struct range range;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 128 * MIB));
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, BUFFER, 96 * MIB, .async = 1);
	assert_int_equal(scene->residency.staging_pinned, 96 * MIB);
	SYNC();
	assert_int_equal(total(scene)->staging, 0);
	COPY(DEVICE + 96 * MIB, BUFFER, 64 * MIB);
	COPY(DEVICE + 160 * MIB, BUFFER, 96 * MIB);
	assert_int_equal(total(scene)->vague, 256 * MIB);
	assert_int_equal(total(scene)->unknown, 0);
	range = amounts_device(&scene->residency.weights[0].kept.now, 256 * MIB, 0);
	assert_int_equal(range.lo, 256 * MIB);
	assert_int_equal(range.hi, 256 * MIB);
	assert_int_equal(scene->residency.weights[0].loaded_vague, 256 * MIB);
	COPY(DEVICE + 256 * MIB, BUFFER, 96 * MIB); /* there is no third tensor of this size */
	assert_int_equal(total(scene)->vague, 256 * MIB);
	play(scene, RECORD(device_free, .addr = DEVICE));
	assert_int_equal(total(scene)->vague, 0);
	scene->residency.loading = false; /* steps: batches are no weights */
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, BUFFER, 96 * MIB);
	assert_int_equal(total(scene)->vague + total(scene)->unknown + total(scene)->staging, 0);
}

/* A batch may have a tensor's size: where all tensors are accounted for, until the file is mapped anew, it is none. */
static void test_batch_of_a_tensors_size(void **state)
{
	struct scene *scene = *state;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 128 * MIB));
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, 256 * MIB);
	COPY(DEVICE + 256 * MIB, BUFFER, 96 * MIB);
	assert_int_equal(scene->residency.signs, 0);
	assert_int_equal(total(scene)->vague + total(scene)->shared + total(scene)->unknown, 0);
	UNMAP(MAPPED, 256 * MIB);
	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	COPY(DEVICE + 256 * MIB, BUFFER, 96 * MIB);
	assert_int_equal(scene->residency.signs, SIGN_BYTES | SIGN_DEVICE);
	assert_int_equal(total(scene)->vague, 96 * MIB);
}

/* Copies on the device carry weights along; the same bytes twice count once; what is overwritten is gone. */
static void test_carried(void **state)
{
	struct scene *scene = *state;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	ALLOC(DEVICE, 256 * MIB);
	ALLOC(DEVICE2, 256 * MIB);
	COPY(DEVICE, MAPPED, 128 * MIB);
	MOVE(DEVICE2 + MIB, DEVICE, 64 * MIB);
	assert_int_equal(total(scene)->device, 128 * MIB);
	play(scene, RECORD(device_free, .addr = DEVICE));
	assert_int_equal(total(scene)->device, 64 * MIB);
	assert_int_equal(tensor(scene, 0).device, 64 * MIB);
	assert_int_equal(tensor(scene, 1).device, 0);
	MOVE(DEVICE2, DEVICE2 + MIB, 64 * MIB); /* overlapping itself */
	assert_int_equal(total(scene)->device, 64 * MIB);
	play(scene, RECORD(memset, .addr = DEVICE2, .size = 63 * MIB));
	assert_int_equal(total(scene)->device, MIB); /* in both of the copies that are left */
	MOVE(DEVICE2, DEVICE, 128 * MIB);            /* nothing is known of its source any more */
	assert_int_equal(total(scene)->device, 0);
	COPY(DEVICE2, MAPPED, 16 * MIB, .result = 700);
	COPY(DEVICE2, MAPPED, 16 * MIB, .flags = 1u << ST_CALL_CAPTURING);
	assert_int_equal(total(scene)->device, 0);
	play(scene, RECORD(copy, .dst = DEVICE2, .src = MAPPED, .size = 16 * MIB)); /* cuMemcpy: by address */
	assert_int_equal(total(scene)->device, 16 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pinned_staging),          TEST(test_heap_staging), TEST(test_read_to_device),
		TEST(test_unknown_destination),     TEST(test_vague),        TEST(test_carried),
		TEST(test_batch_of_a_tensors_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
