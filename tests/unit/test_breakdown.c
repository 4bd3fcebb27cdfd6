/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the names under which two runs are compared: they must be alike for the same thing wherever it lay and whatever
 * number it had, and never alike for two things.
 */
#include <analyzer/breakdown.h>
#include <analyzer/model.h>
#include <analyzer/names.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include "breakdown_scene.h"

#define MANY 50000

static void test_alike_stacks_are_one(void **state)
{
	static const char *const plain[] = {"fill", "main"};
	struct load_part parts[] = {{LOAD_PEAK_DEVICE, LOAD_PART_STACK, 3, {GIB, GIB}},
	                            {LOAD_PEAK_DEVICE, LOAD_PART_STACK, 4, {MIB, 2 * MIB}},
	                            {LOAD_PEAK_HOST, LOAD_PART_STACK, 4, {MIB, MIB}}};
	struct model model = {.load_parts = parts, .load_part_count = 3};
	struct breakdown breakdown;
	const struct part *part;

	(void)state;
	assert_int_equal(names_create(&model.names), 0);
	play_native(model.names, 3, 0x10000, plain, 2);
	play_native(model.names, 4, 0x50000, plain, 2);
	breakdown = made((const struct model *[]){&model}, 1);
	assert_int_equal(breakdown.count, 2);
	part = breakdown_find(&breakdown, METRIC_DEVICE, PART_STACK, "fill < main");
	assert_non_null(part);
	assert_int_equal(part->bytes.lo, GIB + MIB);
	assert_int_equal(part->bytes.hi, GIB + 2 * MIB);
	assert_non_null(strstr(part->detail, "libload.so.3"));
	breakdown_release(&breakdown);
	names_free(model.names);
}

/* --- files and tensors ------------------------------------------------------------------------------- */

#define FILES 6

static void test_file_names(void **state)
{
	static struct weight_file files[FILES] = {
		{.path = "/hub/a/model.safetensors", .read_bytes = 1},
		{.path = "/hub/b/model.safetensors", .read_bytes = 2},
		{.path = "/data/x/b/model.safetensors", .read_bytes = 4},
		{.path = "/hub/a/xmodel.safetensors", .read_bytes = 8},
		{.path = "tokenizer.model", .read_bytes = 16},
		{.path = "", .read_bytes = 32},
	};
	struct model model = {.files = files, .file_count = FILES};
	struct breakdown breakdown;

	(void)state;
	for (int i = 0; i < FILES; i++)
		files[i].loader = MODEL_NONE;
	breakdown = made((const struct model *[]){&model}, 1);
	assert_int_equal(breakdown.count, FILES);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "a/model.safetensors", 1);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "hub/b/model.safetensors", 2);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "x/b/model.safetensors", 4);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "xmodel.safetensors", 8);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "tokenizer.model", 16);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "(without a name)", 32);
	assert_null(breakdown_find(&breakdown, METRIC_READ, PART_FILE, "model.safetensors"));
	assert_null(breakdown_find(&breakdown, METRIC_READ, PART_TENSOR, "tokenizer.model"));
	breakdown_release(&breakdown);
	/* Another machine, another cache. */
	files[0].path = "/root/.cache/models/model.safetensors";
	model.file_count = 1;
	breakdown = made((const struct model *[]){&model}, 1);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "model.safetensors", 1);
	breakdown_release(&breakdown);
}

/* A file of its own and one that both have; a tensor of that name in both files. */
static void test_processes_are_added_up(void **state)
{
	static struct weight_file one[] = {{.path = "/m/s1.bin", .read_bytes = 10, .loader = MODEL_NONE}};
	static struct weight_file two[] = {{.path = "/m/s1.bin", .read_bytes = 1, .loader = MODEL_NONE},
	                                   {.path = "/n/s1.bin", .read_bytes = 5, .loader = MODEL_NONE}};
	static struct tensor first[] = {{.name = "w", .file = 0, .read_bytes = 10},
	                                {.name = "only", .file = 0, .read_bytes = 3}};
	static struct tensor second[] = {{.name = "w", .file = 1, .read_bytes = 5},
	                                 {.name = "only", .file = 0, .read_bytes = 4}};
	struct model a = {.files = one, .file_count = 1, .tensors = first, .tensor_count = 2};
	struct model b = {.files = two, .file_count = 2, .tensors = second, .tensor_count = 2};
	struct breakdown breakdown = made((const struct model *[]){&a, &b}, 2);

	(void)state;
	assert_int_equal(breakdown.count, 5);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "m/s1.bin", 11);
	assert_part(&breakdown, METRIC_READ, PART_FILE, "n/s1.bin", 5);
	assert_part(&breakdown, METRIC_READ, PART_TENSOR, "m/s1.bin: w", 10);
	assert_part(&breakdown, METRIC_READ, PART_TENSOR, "n/s1.bin: w", 5);
	assert_part(&breakdown, METRIC_READ, PART_TENSOR, "only", 7);
	breakdown_release(&breakdown);
}

static void test_details(void **state)
{
	struct file_mapping mappings[] = {{.prot = PROT_R, .flags = MAP_PRIV, .bytes = 2 * MIB},
	                                  {.prot = PROT_RW, .flags = MAP_PRIV, .bytes = MIB}};
	struct loader loader = {
		.parts = {{.known = "safetensors", .name = "safetensors", .version = "0.7.0"}},
		.part_count = 1,
		.function = "load_file",
		.file = "/x/torch.py",
		.line = 359};
	struct weight_file file = {.path = "/m/a.bin", .mappings = mappings, .mapping_count = 2};
	struct tensor tensor = {.name = "w"};
	struct load_part parts[] = {{LOAD_PEAK_ANON, LOAD_PART_FILE, 0, {MIB, MIB}},
	                            {LOAD_PEAK_MAPPED, LOAD_PART_FILE, 0, {MIB, MIB}},
	                            {LOAD_PEAK_ANON, LOAD_PART_TENSOR, 0, {MIB, MIB}},
	                            {LOAD_PEAK_ANON, LOAD_PART_TENSOR, 99, {MIB, MIB}},
	                            {LOAD_PEAK_ANON, LOAD_PART_FILE, 99, {MIB, MIB}}};
	struct model model = {.files = &file,
	                      .file_count = 1,
	                      .tensors = &tensor,
	                      .tensor_count = 1,
	                      .loaders = &loader,
	                      .loader_count = 1,
	                      .load_parts = parts,
	                      .load_part_count = 5};
	struct breakdown breakdown = made((const struct model *[]){&model}, 1);

	(void)state;
	/* Of copies, the mapping that makes them. */
	assert_string_equal(breakdown_find(&breakdown, METRIC_ANON, PART_FILE, "a.bin")->detail,
	                    "private writable mapping; safetensors 0.7.0, load_file (torch.py:359)");
	assert_string_equal(breakdown_find(&breakdown, METRIC_MAPPED, PART_FILE, "a.bin")->detail,
	                    "private read-only mapping; safetensors 0.7.0, load_file (torch.py:359)");
	assert_string_equal(breakdown_find(&breakdown, METRIC_ANON, PART_TENSOR, "w")->detail, "of a.bin");
	assert_non_null(breakdown_find(&breakdown, METRIC_ANON, PART_TENSOR, "(unknown tensor)"));
	assert_non_null(breakdown_find(&breakdown, METRIC_ANON, PART_FILE, "(unknown file)"));
	breakdown_release(&breakdown);
}

/* --- what others wrote --------------------------------------------------------------------------------- */

static void test_hostile_names(void **state)
{
	char endless[5000];
	struct weight_file files[] = {
		{.path = endless, .loader = MODEL_NONE, .read_bytes = 1},
		{.path = "/a/\n::error::x\x1b[2J", .loader = MODEL_NONE, .read_bytes = 1},
		{.path = "/a/\xff.bin", .loader = MODEL_NONE, .read_bytes = 1},
		{.path = "/a///", .loader = MODEL_NONE, .read_bytes = 1},
		{.path = "///", .loader = MODEL_NONE, .read_bytes = 1}};
	struct tensor tensors[] = {{.name = "", .file = 9, .read_bytes = 1},
	                           {.name = endless, .read_bytes = 1}};
	struct model model = {.files = files, .file_count = 5, .tensors = tensors, .tensor_count = 2};
	struct breakdown breakdown;

	(void)state;
	memset(endless, 'x', sizeof(endless));
	endless[sizeof(endless) - 1] = '\0';
	breakdown = made((const struct model *[]){&model}, 1);
	for (size_t i = 0; i < breakdown.count; i++) {
		assert_true(*breakdown.parts[i].name);
		assert_true(strlen(breakdown.parts[i].name) < 2000);
		for (const char *at = breakdown.parts[i].name; *at; at++)
			assert_in_range(*at, 0x20, 0x7e);
	}
	assert_non_null(breakdown_find(&breakdown, METRIC_READ, PART_FILE, "\\xff.bin"));
	breakdown_release(&breakdown);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A model of `count` files and tensors; how long it took. */
static double time_of(uint32_t count)
{
	struct weight_file *files = calloc(count, sizeof(*files));
	struct tensor *tensors = calloc(count, sizeof(*tensors));
	struct model model = {.files = files, .file_count = count, .tensors = tensors, .tensor_count = count};
	struct breakdown breakdown;
	struct growth *growths;
	size_t grown;
	double begin;

	for (uint32_t i = 0; i < count; i++) {
		char path[64], name[64];

		snprintf(path, sizeof(path), "/models/%u/model.safetensors", i);
		snprintf(name, sizeof(name), "layer.%u.weight", i % (count / 2));
		files[i] =
			(struct weight_file){.path = strdup(path), .loader = MODEL_NONE, .read_bytes = i + 1};
		tensors[i] = (struct tensor){.name = strdup(name), .file = i, .read_bytes = i + 1};
	}
	begin = seconds();
	breakdown = made((const struct model *[]){&model}, 1);
	assert_int_equal(breakdown.count, 2 * count);
	assert_part(&breakdown, METRIC_READ, PART_TENSOR, "7/model.safetensors: layer.7.weight", 8);
	assert_int_equal(breakdown_compare(&breakdown, &breakdown, &growths, &grown), 0);
	assert_int_equal(grown, breakdown.count);
	begin = seconds() - begin;
	free(growths);
	breakdown_release(&breakdown);
	for (uint32_t i = 0; i < count; i++) {
		free((char *)files[i].path);
		free((char *)tensors[i].name);
	}
	free(files);
	free(tensors);
	return begin;
}

/* Ten times as many take some ten times as long, not a hundred times. */
static void test_many(void **state)
{
	double few, many;

	(void)state;
	few = time_of(MANY / 10);
	many = time_of(MANY);
	assert_true(many < few * 40 + 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike_stacks_are_one),   cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_processes_are_added_up), cmocka_unit_test(test_details),

		cmocka_unit_test(test_hostile_names),          cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
