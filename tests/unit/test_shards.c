/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what is said of sharded checkpoints: a shard that is opened brings its index, and with it all the others,
 * with their sizes and tensors; nothing outside the folder, and nothing that is no file, is looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/shards.h"
#include "trace_back.h"

#include <limits.h>

#define REAL "tests/unit/checkpoint/sharded"

struct scene {
	char folder[100], trace[120];
	struct out out;
	struct shards shards;
	struct weights weights;
	struct cache cache;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	const char *base = getenv("T");
	struct st_file_head head = {
		.magic = ST_FILE_MAGIC, .major = ST_FORMAT_MAJOR, .minor = ST_FORMAT_MINOR};

	snprintf(scene->folder, sizeof(scene->folder), "%.60s/shards.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(scene->folder))
		return -1;
	snprintf(scene->trace, sizeof(scene->trace), "%s/run.zst", scene->folder);
	shards_init(&scene->shards, 4096);
	cache_init(&scene->cache, 4096);
	*state = scene;
	return trace_create(scene->trace, &head, NULL, &scene->out.trace);
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	char command[200];

	shards_release(&scene->shards);
	weights_release(&scene->weights);
	cache_release(&scene->cache);
	trace_free(scene->out.trace);
	snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
	if (system(command))
		return -1;
	free(scene);
	return 0;
}

/* The program opened this file; everything that follows from it is said. */
static struct trace_back *see(struct scene *scene, const char *path)
{
	int steps = 0;

	shards_add(&scene->shards, path, "/nowhere");
	while (shards_work(&scene->shards, &scene->weights, &scene->out, true) ||
	       weights_work(&scene->weights, &scene->cache, &scene->out, true))
		assert_true(++steps < 100000);
	assert_int_equal(trace_flush(scene->out.trace), 0);
	return back_read(scene->trace);
}

static void back_drop(struct trace_back *back)
{
	free(back->raw);
	free(back);
}

static int count(const struct trace_back *back, unsigned kind)
{
	size_t i;
	int found = 0;

	for (i = 0; i < back->number; i++)
		found += back->record[i]->kind == kind;
	return found;
}

static const struct st_record *first(const struct trace_back *back, unsigned kind)
{
	size_t i;

	for (i = 0; i < back->number; i++)
		if (back->record[i]->kind == kind)
			return back->record[i];
	fail_msg("no record of kind %u", kind);
	return NULL;
}

static void put(const struct scene *scene, const char *name, const char *text, size_t size)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
}

static struct trace_back *see_here(struct scene *scene, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
	return see(scene, path);
}

/* Written by transformers' save_pretrained(); 28992 and 5 are what it says itself. */
static void test_real(void **state)
{
	struct scene *scene = *state;
	char path[PATH_MAX];
	struct trace_back *back;
	const struct st_ev_index *index;
	uint64_t bytes = 0;
	size_t i;
	int tensors;

	assert_non_null(realpath(REAL "/model-00002-of-00005.safetensors", path));
	back = see(scene, path);
	index = (const void *)first(back, ST_KIND_index);
	assert_int_equal(count(back, ST_KIND_index), 1);
	assert_int_equal(index->total_size, 28992);
	assert_int_equal(index->shards, 5);
	assert_int_equal(count(back, ST_KIND_file), 5);
	tensors = count(back, ST_KIND_tensor);
	assert_int_equal(tensors, index->tensors);
	for (i = 0; i < back->number; i++)
		if (back->record[i]->kind == ST_KIND_tensor) {
			const struct st_ev_tensor *tensor = (const void *)back->record[i];

			assert_true(tensor->file >= ST_FILE_INDEXED);
			bytes += tensor->size;
		}
	assert_int_equal(bytes, 28992);
	back_drop(back);
	/* Another shard of the same index says nothing new. */
	assert_non_null(realpath(REAL "/model-00004-of-00005.safetensors", path));
	back = see(scene, path);
	assert_int_equal(count(back, ST_KIND_index), 1);
	assert_int_equal(count(back, ST_KIND_file), 5);
	back_drop(back);
}

#define MAP(entries) "{\"metadata\":{\"total_size\":64},\"weight_map\":{" entries "}}"

/* Index, then: was it found to be that of a.bin; files said; what it could not look at was said. */
static const struct {
	const char *index;
	bool found;
	int files;
	bool said;
} indexes[] = {
	{MAP("\"x\":\"a.bin\""), true, 1, false},
	{MAP("\"x\":\"a.bin\",\"y\":\"b.bin\",\"z\":\"a.bin\""), true, 2, false},
	{MAP("\"x\":\"b.bin\""), false, 0, false},
	{MAP("\"x\":\"a.bin\",\"y\":\"../a.bin\""), true, 1, true},
	{MAP("\"x\":\"a.bin\",\"y\":\"/etc/passwd\""), true, 1, true},
	{MAP("\"x\":\"a.bin\",\"y\":\"..\",\"z\":\".\",\"w\":\"\""), true, 1, true},
	{MAP("\"x\":\"a.bin\",\"y\":\"folder\""), true, 1, true},
	{MAP("\"x\":\"a.bin\",\"y\":\"pipe\""), true, 1, true},
	{MAP("\"x\":\"a.bin\",\"y\":\"not_there.bin\""), true, 1, true},
	{MAP("\"x\":\"a.bin\",\"y\":7"), false, 0, true},
	{MAP("\"x\":\"a.bin\""), true, 1, false},
	{"{\"weight_map\":{\"x\":\"a.bin\"}}", true, 1, false},
	{"{\"metadata\":{\"total_size\":1.5e3},\"weight_map\":{\"x\":\"a.bin\"}}", true, 1, false},
	{"{\"metadata\":null,\"weight_map\":{\"x\":\"a.bin\"}}", true, 1, false},
	{"{\"weight_map\":[\"a.bin\"]}", false, 0, true},
	{"{\"weight_map\":{\"x\":\"a.bin\"", false, 0, true},
	{"[]", false, 0, true},
	{"", false, 0, true},
	{"{}", false, 0, false},
};

static void test_indexes(void **state)
{
	char path[300];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
		struct trace_back *back;
		struct scene *scene;

		assert_int_equal(set_up((void **)&scene), 0);
		put(scene, "a.bin", "abc", 3);
		put(scene, "b.bin", "abcd", 4);
		snprintf(path, sizeof(path), "%s/folder", scene->folder);
		assert_int_equal(mkdir(path, 0700), 0);
		snprintf(path, sizeof(path), "%s/pipe", scene->folder);
		assert_int_equal(mkfifo(path, 0600), 0);
		put(scene, "x.bin.index.json", indexes[i].index, strlen(indexes[i].index));
		back = see_here(scene, "a.bin");
		if (count(back, ST_KIND_index) != indexes[i].found ||
		    count(back, ST_KIND_file) != indexes[i].files)
			fail_msg("%s: %d indexes, %d files", indexes[i].index, count(back, ST_KIND_index),
			         count(back, ST_KIND_file));
		/* The three bytes of a.bin are no archive: that is said of each file. */
		if ((count(back, ST_KIND_coverage) > indexes[i].files) != indexes[i].said)
			fail_msg("%s: %d coverages", indexes[i].index, count(back, ST_KIND_coverage));
		back_drop(back);
		tear_down((void **)&scene);
	}
}

/* Two indexes, the second of which names the file; then a file of the first. */
static void test_two(void **state)
{
	static const char first_map[] = MAP("\"x\":\"a.bin\""), second_map[] = MAP("\"x\":\"c.bin\"");
	struct scene *scene = *state;
	struct trace_back *back;

	put(scene, "a.bin", "abc", 3);
	put(scene, "c.bin", "abc", 3);
	put(scene, "1.bin.index.json", first_map, strlen(first_map));
	put(scene, "2.bin.index.json", second_map, strlen(second_map));
	back = see_here(scene, "c.bin");
	assert_int_equal(count(back, ST_KIND_index), 1);
	back_drop(back);
	back = see_here(scene, "a.bin");
	assert_int_equal(count(back, ST_KIND_index), 2);
	assert_int_equal(count(back, ST_KIND_file), 2);
	back_drop(back);
}

/* Without an index, and in a folder that is none. */
static void test_none(void **state)
{
	struct scene *scene = *state;
	struct trace_back *back;

	put(scene, "a.bin", "abc", 3);
	back = see_here(scene, "a.bin");
	assert_int_equal(count(back, ST_KIND_index), 0);
	back_drop(back);
	back = see(scene, "relative.bin");
	assert_int_equal(count(back, ST_KIND_index), 0);
	back_drop(back);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_real),
		cmocka_unit_test(test_indexes),
		TEST(test_two),
		TEST(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
