/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what an index adds: shards that were never opened count with their exact sizes, one that has two identifiers
 * is one file, and a load that died between two shards is known to be unfinished.
 */
#include "scene.h"

#define DEVICE (200 * GIB)
#define MAPPED (100 * GIB)

static void play_index(struct scene *scene, const char *path, uint64_t total, uint64_t shards)
{
	play(scene, record_tail(RECORD(index, .total_size = total, .shards = shards, .tensors = shards), path,
	                        strlen(path)));
}

static void play_shard(struct scene *scene, uint64_t id, uint64_t ino, const char *path, uint64_t size)
{
	play(scene, record_tail(RECORD(file, .id = id, .dev = 1, .ino = ino, .size = size,
	                               .format = ST_FILE_SAFETENSORS),
	                        path, strlen(path)));
}

/* The first of three shards, of 64, 32 and 16 MiB, is loaded whole; the recorder then finds the index. */
static void play_load(struct scene *scene, uint64_t total, unsigned there)
{
	static const char *const paths[] = {"/m/a.safetensors", "/m/b.safetensors", "/m/c.safetensors"};
	unsigned i;

	play_shard(scene, 5, 11, "/m/a.safetensors", 64 * MIB);
	MAP(MAPPED, 64 * MIB, PROT_R, .file = 5);
	ALLOC(DEVICE, 112 * MIB);
	COPY(DEVICE, MAPPED, 64 * MIB);
	play_index(scene, "/m/x.index.json", total, 3);
	for (i = 0; i < there; i++)
		play_shard(scene, ST_FILE_INDEXED + i, 11 + i, paths[i], (64 * MIB) >> i);
}

static void test_one_file(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene, 112 * MIB, 3);
	play_shard(scene, 6, 12, "/m/b.safetensors", 32 * MIB); /* opened after all */
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->file_count, 3);
	assert_int_equal(model->index_count, 1);
	assert_string_equal(model->indexes[0].path, "/m/x.index.json");
	assert_int_equal(model->files[0].id, 5);
	assert_int_equal(model->files[1].id, 6);
	assert_true(model->files[0].opened && model->files[1].opened && !model->files[2].opened);
	assert_int_equal(model->files[0].index, 0);
	assert_int_equal(model->files[2].index, 0);
}

/* What is not opened belongs to no load that finished. */
static void test_finished(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene, 112 * MIB, 3);
	EXIT(0);
	model = scene_model(scene, true);
	assert_true(model->load.finished);
	assert_int_equal(model->load.weights, 64 * MIB);
	assert_int_equal(model->load.remaining.hi, 0);
	assert_int_equal(model->load.shards_missing, 2);
}

static void test_died(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene, 112 * MIB, 3);
	EXIT(137);
	model = scene_model(scene, true);
	assert_false(model->load.finished);
	assert_int_equal(model->load.shards_missing, 2);
	assert_int_equal(model->load.would_load.lo, 112 * MIB);
	assert_int_equal(model->load.would_load.hi, 112 * MIB);
	assert_int_equal(model->load.remaining.lo, 48 * MIB);
	assert_int_equal(model->load.remaining.hi, 48 * MIB);
}

/* The third shard is not there; what the index says in all tells its size. */
static void test_not_there(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene, 112 * MIB, 2);
	EXIT(137);
	model = scene_model(scene, true);
	assert_int_equal(model->load.shards_missing, 2);
	assert_int_equal(model->load.remaining.lo, 48 * MIB);
	assert_int_equal(model->load.remaining.hi, 48 * MIB);
}

/* Nor does the index say how much it is: the others bound it. */
static void test_not_told(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_load(scene, ST_UNKNOWN, 2);
	EXIT(137);
	model = scene_model(scene, true);
	assert_int_equal(model->load.remaining.lo, 32 * MIB);
	assert_int_equal(model->load.remaining.hi, (32 + 64) * MIB);
}

/* An index beside files that nobody loads has no part in it. */
static void test_other_index(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_file(scene, 5, "/m/a.safetensors", 64 * MIB);
	play_index(scene, "/m/x.index.json", GIB, 2);
	play_shard(scene, ST_FILE_INDEXED, 77, "/m/z.safetensors", GIB);
	MAP(MAPPED, 64 * MIB, PROT_R, .file = 5);
	ALLOC(DEVICE, 64 * MIB);
	COPY(DEVICE, MAPPED, 64 * MIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->load.shards_missing, 0);
	assert_int_equal(model->load.weights, 64 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_file),  TEST(test_finished), TEST(test_died),
		TEST(test_not_there), TEST(test_not_told), TEST(test_other_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
