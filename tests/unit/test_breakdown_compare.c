/* SPDX-License-Identifier: Apache-2.0 */
/* Protects that the parts of two runs find each other, and that none is lost on the way. */
#include <analyzer/breakdown.h>
#include "scene.h"

static void test_compare(void **state)
{
	struct part before[] = {{METRIC_ANON, PART_FILE, "gone", {5, 5}, NULL},
	                        {METRIC_ANON, PART_FILE, "same", {7, 7}, "old"},
	                        {METRIC_HOST, PART_STACK, "more", {1, 1}, "old"}};
	struct part after[] = {{METRIC_ANON, PART_FILE, "new", {9, 9}, "new"},
	                       {METRIC_ANON, PART_FILE, "same", {7, 7}, NULL},
	                       {METRIC_HOST, PART_STACK, "more", {2, 41}, "new"}};
	static const char *const order[] = {"more", "new", "same", "gone"};
	struct breakdown old = {before, 3}, new = {after, 3};
	struct growth *growths;
	size_t count;

	(void)state;
	assert_int_equal(breakdown_compare(&old, &new, &growths, &count), 0);
	assert_int_equal(count, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(growths[i].name, order[i]);
	assert_string_equal(growths[0].detail, "new");
	assert_int_equal(growths[0].before.hi, 1);
	assert_int_equal(growths[0].after.hi, 41);
	assert_int_equal(growths[1].before.hi, 0);
	assert_string_equal(growths[2].detail, "old");
	assert_int_equal(growths[3].after.hi, 0);
	assert_null(growths[3].detail);
	free(growths);
}

/* Callers got other names: still the same; but not what is done in another function, and a pair is used once. */
static void test_compare_callers(void **state)
{
	struct part before[] = {{METRIC_HOST, PART_STACK, "alloc < clone", {3, 3}, NULL},
	                        {METRIC_HOST, PART_STACK, "alloc < load < main < a", {10, 10}, NULL},
	                        {METRIC_HOST, PART_STACK, "alloc < load < test", {100, 100}, NULL},
	                        {METRIC_HOST, PART_STACK, "alloc < same", {7, 7}, NULL}};
	struct part after[] = {{METRIC_DEVICE, PART_STACK, "alloc < load < other", {9, 9}, NULL},
	                       {METRIC_HOST, PART_STACK, "alloc < loader < main", {5, 5}, NULL},
	                       {METRIC_HOST, PART_STACK, "alloc < load", {110, 110}, NULL},
	                       {METRIC_HOST, PART_STACK, "alloc < same", {7, 7}, NULL}};
	struct breakdown old = {before, 4}, new = {after, 4};
	struct growth *growths;
	size_t count;

	(void)state;
	assert_int_equal(breakdown_compare(&old, &new, &growths, &count), 0);
	assert_int_equal(count, 6);
	assert_string_equal(growths[0].name, "alloc < load");
	assert_int_equal(growths[0].before.hi, 100);
	assert_int_equal(growths[0].after.hi, 110);
	assert_int_equal(growths[1].metric, METRIC_DEVICE);
	assert_int_equal(growths[1].before.hi, 0);
	assert_string_equal(growths[2].name, "alloc < loader < main");
	assert_string_equal(growths[5].name, "alloc < load < main < a");
	assert_int_equal(growths[5].after.hi, 0);
	free(growths);
}

/* --- two traces ----------------------------------------------------------------------------------------- */

static void play_stack(struct scene *scene, uint64_t id, uint64_t base, const char *function)
{
	const uint64_t addresses[] = {base + 16, base + 32};

	play(scene, record_tail(RECORD(module, .start = base, .end = base + 4096), "/lib/libload.so", 15));
	play(scene, record_tail(RECORD(symbol, .address = base + 16), function, strlen(function)));
	play(scene, record_tail(RECORD(symbol, .address = base + 32), "main", 4));
	play(scene, record_tail(RECORD(stack, .id = id), addresses, sizeof(addresses)));
}

/* The same load at other addresses, under other numbers, from another folder. `more`: a block that it keeps beside. */
static struct breakdown play_load(struct scene *scene, uint64_t base, uint32_t ids, const char *path,
                                  uint64_t more)
{
	struct breakdown breakdown;

	play_file(scene, ids + 1, path, 64 * MIB);
	play_tensor(scene, ids + 1, "first", 0, 32 * MIB);
	play_tensor(scene, ids + 1, "second", 32 * MIB, 32 * MIB);
	play_stack(scene, ids + 2, base, "map_all");
	play_stack(scene, ids + 3, base + MIB, "allocate");
	play_stack(scene, ids + 4, base + 2 * MIB, "keep");
	MAP(base + GIB, 64 * MIB, PROT_RW, .file = ids + 1, .stack = ids + 2);
	ALLOC(base + 2 * GIB, 64 * MIB, .stack = ids + 3);
	if (more)
		ALLOC(base + 3 * GIB, more, .stack = ids + 4);
	COPY(base + 2 * GIB, base + GIB, 32 * MIB);
	COPY(base + 2 * GIB + 32 * MIB, base + GIB + 32 * MIB, 32 * MIB);
	EXIT(0);
	assert_int_equal(breakdown_make((const struct model *[]){scene_model(scene, true)}, 1, &breakdown),
	                 0);
	return breakdown;
}

static void test_same_load_elsewhere(void **state)
{
	struct breakdown before, after;
	struct growth *growths;
	void *other;
	size_t count;

	before = play_load(*state, 16 * GIB, 0, "/home/a/w.safetensors", 0);
	assert_int_equal(scene_up(&other), 0);
	after = play_load(other, 512 * GIB, 4000, "/mnt/b/w.safetensors", 0);
	assert_non_null(breakdown_find(&after, METRIC_MAPPED, PART_FILE, "w.safetensors"));
	assert_non_null(breakdown_find(&after, METRIC_DEVICE, PART_TENSOR, "second"));
	assert_non_null(breakdown_find(&after, METRIC_DEVICE, PART_STACK, "allocate < main"));
	assert_int_equal(breakdown_compare(&before, &after, &growths, &count), 0);
	assert_int_equal(count, before.count);
	for (size_t i = 0; i < count; i++)
		if (growths[i].before.lo != growths[i].after.lo ||
		    growths[i].before.hi != growths[i].after.hi)
			fail_msg("%s is not the same", growths[i].name);
	free(growths);
	breakdown_release(&before);
	breakdown_release(&after);
	scene_down(&other);
}

static void test_changed_load(void **state)
{
	struct breakdown before, after;
	struct growth *growths;
	void *other;
	size_t count;

	before = play_load(*state, 16 * GIB, 0, "/home/a/w.safetensors", 0);
	assert_int_equal(scene_up(&other), 0);
	after = play_load(other, 512 * GIB, 4000, "/mnt/b/w.safetensors", 48 * MIB);
	assert_int_equal(breakdown_compare(&before, &after, &growths, &count), 0);
	assert_int_equal(growths[0].metric, METRIC_DEVICE);
	assert_string_equal(growths[0].name, "keep < main");
	assert_int_equal(growths[0].before.hi, 0);
	assert_int_equal(growths[0].after.lo, 48 * MIB);
	assert_int_equal(growths[1].before.hi, growths[1].after.hi);
	free(growths);
	breakdown_release(&before);
	breakdown_release(&after);
	scene_down(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_same_load_elsewhere), TEST(test_changed_load),
	                                   cmocka_unit_test(test_compare),
	                                   cmocka_unit_test(test_compare_callers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
