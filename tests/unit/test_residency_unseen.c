/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what is said of bytes that came in a way that no record tells (io_uring, system calls of the loader's own,
 * copies out of a mapping that is gone by then): never "none, exactly"; and GPUDirect reads, whose inner copies are
 * nobody's bytes a second time.
 */
#include "residency_scene.h"

#define O_DIRECT_X86     0x4000
#define O_DIRECT_AARCH64 0x10000

static void device_range(const struct scene *scene, struct range *ret_range)
{
	*ret_range = amounts_device(total(scene), UINT64_MAX, total(scene)->unknown);
}

static void test_direct_descriptor_is_a_touch(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(open, .file = A_FILE, .flags = 0));
	assert_int_equal(scene->residency.signs, 0);
	play(scene, RECORD(open, .file = B_FILE, .flags = O_DIRECT_AARCH64));
	assert_int_equal(scene->residency.signs, SIGN_TOUCHED);
}

/* Copies of exactly the tensors' sizes, out of a buffer that nothing seen has filled. */
static void test_tensors_out_of_nowhere(void **state)
{
	struct scene *scene = *state;
	struct range range;

	play(scene, RECORD(open, .file = A_FILE, .flags = O_DIRECT_X86));
	play(scene, RECORD(alloc, .addr = BUFFER, .size = 256 * MIB));
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, BUFFER, 96 * MIB);
	COPY(DEVICE + 96 * MIB, BUFFER + 96 * MIB, 64 * MIB);
	assert_int_equal(total(scene)->vague, 160 * MIB);
	device_range(scene, &range);
	assert_int_equal(range.lo, 160 * MIB);
	assert_int_equal(range.hi, 160 * MIB);
	assert_false(scene->residency.exact);
}

/* In pieces that say nothing: an interval, and a load all the same. */
static void test_pieces_out_of_nowhere(void **state)
{
	struct scene *scene = *state;
	struct range range;

	play(scene, RECORD(open, .file = A_FILE, .flags = O_DIRECT_X86));
	READ(A_FILE, 0, 4096, BUFFER);
	play(scene, RECORD(alloc, .addr = BUFFER + GIB, .size = 64 * MIB));
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, BUFFER + GIB, 50 * MIB);
	assert_int_equal(scene->residency.signs, SIGN_BYTES | SIGN_DEVICE);
	COPY(DEVICE + 50 * MIB, BUFFER + GIB, 50 * MIB);
	device_range(scene, &range);
	assert_int_equal(range.lo, 0);
	assert_int_equal(range.hi, 100 * MIB);
	assert_false(scene->residency.exact);
}

/*
 * A tensor is read into one heap block and sliced into another by the program itself: all of it is what its size tells,
 * a part of one is a part of anything; both blocks are staging until they go.
 */
static void test_slices_of_a_heap_block(void **state)
{
	struct scene *scene = *state;
	struct range range;

	MAP(MAPPED, 256 * MIB, PROT_R, .file = A_FILE);
	UNMAP(MAPPED, 256 * MIB);
	play(scene, RECORD(alloc, .addr = BUFFER, .size = 96 * MIB));
	READ(A_FILE, 0, 96 * MIB, BUFFER);
	assert_int_equal(total(scene)->staging, 96 * MIB);
	play(scene, RECORD(alloc, .addr = BUFFER + GIB, .size = 96 * MIB));
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, BUFFER + GIB, 96 * MIB);
	assert_int_equal(total(scene)->staging, 192 * MIB);
	assert_int_equal(total(scene)->vague, 96 * MIB);
	assert_false(scene->residency.exact);
	play(scene, RECORD(free, .addr = BUFFER));
	play(scene, RECORD(free, .addr = BUFFER + GIB));
	assert_int_equal(total(scene)->staging, 0);
	play(scene, RECORD(alloc, .addr = BUFFER, .size = 64 * MIB));
	READ(A_FILE, 96 * MIB, 64 * MIB, BUFFER);
	play(scene, RECORD(alloc, .addr = BUFFER + GIB, .size = 32 * MIB));
	COPY(DEVICE + 96 * MIB, BUFFER + GIB, 32 * MIB);
	assert_int_equal(total(scene)->staging, 96 * MIB);
	device_range(scene, &range);
	assert_int_equal(range.lo, 96 * MIB);
	assert_int_equal(range.hi, 128 * MIB);
}

/* A file of which the bytes were seen to come has nothing that could come unseen. */
static void test_nothing_left_to_come(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(open, .file = A_FILE, .flags = O_DIRECT_X86));
	ALLOC(DEVICE, GIB);
	READ(A_FILE, 0, 256 * MIB, DEVICE);
	COPY(DEVICE + 512 * MIB, BUFFER, 50 * MIB);
	assert_int_equal(total(scene)->device, 256 * MIB);
	assert_int_equal(total(scene)->unknown, 0);
	assert_true(scene->residency.exact);
}

/* pin_memory() of a mapping, which is unmapped; then one copy of all its tensors. */
static void test_mapping_gone_before_the_copy(void **state)
{
	struct scene *scene = *state;
	struct range range;

	MAP(MAPPED, 256 * MIB, PROT_RW, .file = A_FILE);
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 256 * MIB));
	UNMAP(MAPPED, 256 * MIB);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, BUFFER, 256 * MIB);
	device_range(scene, &range);
	assert_int_equal(range.lo, 256 * MIB);
	assert_int_equal(range.hi, 256 * MIB);
}

/* cuFile through a buffer of its own: the copies inside are nested, the read around them tells all. */
static void test_cufile(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(open, .file = A_FILE, .flags = O_DIRECT_X86));
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = MIB));
	ALLOC(DEVICE, 256 * MIB);
	for (uint64_t at = 0; at < 2 * MIB; at += MIB)
		COPY(DEVICE + at, BUFFER, MIB, .flags = 1u << ST_CALL_NESTED);
	play(scene, RECORD(read, .file = A_FILE, .offset = 96 * MIB, .size = 2 * MIB, .addr = DEVICE,
	                   .how = ST_READ_CUFILE));
	assert_int_equal(total(scene)->device, 2 * MIB);
	assert_int_equal(tensor(scene, 1).device, 2 * MIB);
	assert_int_equal(total(scene)->staging, 0);
	assert_int_equal(total(scene)->unknown + total(scene)->vague, 0);
	assert_true(scene->residency.exact);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_direct_descriptor_is_a_touch),
		TEST(test_tensors_out_of_nowhere),
		TEST(test_slices_of_a_heap_block),
		TEST(test_pieces_out_of_nowhere),
		TEST(test_nothing_left_to_come),
		TEST(test_mapping_gone_before_the_copy),
		TEST(test_cufile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
