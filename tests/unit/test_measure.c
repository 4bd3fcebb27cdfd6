/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the metrics of a load: what each peak is, at which instant, and what it consisted of then, worked out by hand;
 * and that memory that nobody can take back is told from mappings (the four programs of the third show).
 */
#include <analyzer/measure_parts.h>
#include "measure_scene.h"

/* --- the four programs ----------------------------------------------------------------------------- */

static void assert_costs_nothing(const struct measure *m)
{
	assert_exact(m, METRIC_HOST, 0);
	assert_exact(m, METRIC_ANON, 0);
	assert_exact(m, METRIC_STAGING, 0);
	assert_exact(m, METRIC_MODELLED, 0);
	assert_exact(m, METRIC_FACTOR, 0);
	assert_exact(m, METRIC_MAPPED, FILE_SIZE);
	assert_exact(m, METRIC_READ, 0);
	assert_int_equal(m->scale.released, 0);
	assert_int_equal(m->weights, FILE_SIZE);
	assert_true(m->finished);
	assert_null(m->unusable);
	assert_part(m->model, MAPPED, FILE, 0, FILE_SIZE);
	assert_part(m->model, MAPPED, STACK, 7, FILE_SIZE);
}

static void test_map_only(void **state)
{
	struct scene *scene = *state;
	struct measures measures;

	begin_load(scene);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1, .stack = 7);
	EXIT(0);
	assert_costs_nothing(measured(scene, &measures));
	measures_release(&measures);
}

static void test_map_and_touch(void **state)
{
	struct scene *scene = *state;
	struct measures measures;

	begin_load(scene);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1, .stack = 7);
	play_sample(scene, 19 * GIB, GIB, 101 * MIB, 0);
	play_sample(scene, 19 * GIB, GIB, 102 * MIB, 0);
	EXIT(0);
	assert_costs_nothing(measured(scene, &measures));
	measures_release(&measures);
}

/* Its tensors one by one, the second clone after the last thing that anybody saw of the weights. */
static void test_clone(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1);
	HOST(HEAP, 256 * MIB, .stack = 3);
	play_sample(scene, 19 * GIB, GIB, 356 * MIB, 0);
	HOST(HEAP + GIB, 768 * MIB, .stack = 4);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_HOST, FILE_SIZE);
	assert_exact(m, METRIC_ANON, 0);
	assert_exact(m, METRIC_STAGING, 0);
	assert_part(m->model, HOST, STACK, 3, 256 * MIB);
	assert_part(m->model, HOST, STACK, 4, 768 * MIB);
	measures_release(&measures);
}

static void play_reads(struct scene *scene, uint64_t buffer, uint64_t piece)
{
	for (uint64_t offset = 0; offset < FILE_SIZE; offset += piece)
		READ(1, offset, piece, buffer);
}

/* The buffer counts, whether it was asked for before the first read or after; the file does not. */
static void test_read_through_a_buffer(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	HOST(HEAP, MIB, .stack = 3);
	play_reads(scene, HEAP, MIB);
	HOST_FREE(HEAP);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_HOST, MIB);
	assert_exact(m, METRIC_ANON, 0);
	assert_exact(m, METRIC_STAGING, 0);
	assert_exact(m, METRIC_READ, METRIC_RATIO_ONE);
	assert_exact(m, METRIC_MAPPED, 0);
	assert_part(m->model, HOST, STACK, 3, MIB);
	measures_release(&measures);
}

/* --- each peak at its own instant ------------------------------------------------------------------ */

/* P and S are a maximum together: 512 + 0, then 256 + 384, then 0 + 600. */
static void test_staging_together(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	READ(1, 0, 4096, 0);
	ALLOC(DEVICE, FILE_SIZE);
	PIN(PINNED, 256 * MIB, .stack = 2);
	PIN(PINNED + GIB, 256 * MIB, .stack = 5);
	play(scene, RECORD(pinned_free, .addr = PINNED + GIB));
	HOST(HEAP, 384 * MIB, .stack = 3);
	READ(1, 256 * MIB, 384 * MIB, HEAP);
	COPY(DEVICE, HEAP, 384 * MIB);
	HOST_FREE(HEAP);
	play(scene, RECORD(pinned_free, .addr = PINNED));
	HOST(HEAP, 600 * MIB, .stack = 4);
	READ(1, 256 * MIB, 600 * MIB, HEAP);
	COPY(DEVICE, HEAP, 600 * MIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_STAGING, 640 * MIB);
	assert_part(m->model, STAGING, STACK, 2, 256 * MIB);
	assert_part(m->model, STAGING, STACK, 3, 384 * MIB);
	assert_no_part(m->model, STAGING, STACK, 4);
	assert_no_part(m->model, STAGING, STACK, 5);
	assert_part(m->model, STAGING, TENSOR, 1, 384 * MIB);
	measures_release(&measures);
}

/* Copy-on-write that a scan found in one file, gone before that of the other: the larger one is the peak, and whole. */
static void test_anonymous_copies(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	play_file(scene, 2, "/m/x.safetensors", 512 * MIB);
	play_tensor(scene, 2, "c", 0, 512 * MIB);
	ALLOC(DEVICE, FILE_SIZE + 512 * MIB, .stack = 9);
	MAP(MAPPED, FILE_SIZE, PROT_RW, .file = 1, .stack = 7);
	COPY(DEVICE, MAPPED, 256 * MIB);
	COPY(DEVICE + 256 * MIB, MAPPED + 256 * MIB, 768 * MIB);
	SCAN(MAPPED, FILE_SIZE, MAPPED, MAPPED + FILE_SIZE);
	UNMAP(MAPPED, FILE_SIZE);
	MAP(MAPPED, 512 * MIB, PROT_RW, .file = 2, .stack = 8);
	COPY(DEVICE + FILE_SIZE, MAPPED, 512 * MIB);
	SCAN(MAPPED, 512 * MIB, MAPPED, MAPPED + 512 * MIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_ANON, FILE_SIZE);
	assert_part(m->model, ANON, FILE, 0, FILE_SIZE);
	assert_no_part(m->model, ANON, FILE, 1);
	assert_part(m->model, ANON, TENSOR, 0, 256 * MIB);
	assert_part(m->model, ANON, TENSOR, 1, 768 * MIB);
	assert_no_part(m->model, ANON, TENSOR, 2);
	assert_part(m->model, ANON, STACK, 7, FILE_SIZE);
	assert_no_part(m->model, ANON, STACK, 8);
	assert_exact(m, METRIC_MODELLED, 2 * FILE_SIZE + 512 * MIB);
	assert_int_equal(m->scale.released, FILE_SIZE);
	assert_int_equal(m->scale.largest_tensor, 768 * MIB);
	assert_exact(m, METRIC_MAPPED, FILE_SIZE);
	assert_part(m->model, MAPPED, STACK, 7, FILE_SIZE);
	assert_no_part(m->model, MAPPED, STACK, 8);
	measures_release(&measures);
}

/* Most in mappings when both files are there; what was mapped over and moved is once there. */
static void test_mappings(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	play_file(scene, 2, "/m/x.safetensors", 512 * MIB);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1, .stack = 7);
	MAP(MAPPED + FILE_SIZE, 512 * MIB, PROT_R, .file = 2, .stack = 8);
	play(scene, RECORD(remap, .addr = MAPPED, .size = FILE_SIZE, .new_addr = MAPPED + 8 * GIB,
	                   .new_size = FILE_SIZE, .flags = 1));
	UNMAP(MAPPED + FILE_SIZE, 256 * MIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_MAPPED, FILE_SIZE + 512 * MIB);
	assert_int_equal(m->scale.mappings, 2);
	assert_part(m->model, MAPPED, FILE, 0, FILE_SIZE);
	assert_part(m->model, MAPPED, FILE, 1, 512 * MIB);
	assert_part(m->model, MAPPED, STACK, 7, FILE_SIZE);
	assert_part(m->model, MAPPED, STACK, 8, 512 * MIB);
	measures_release(&measures);
}

/* The mapping of a header goes at once; the weights stay: nothing is released that the order of files could move. */
static void test_header_mapping(void **state)
{
	struct scene *scene = *state;
	struct measures measures;

	begin_load(scene);
	ALLOC(DEVICE, FILE_SIZE);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1);
	UNMAP(MAPPED, FILE_SIZE);
	MAP(MAPPED + 2 * GIB, FILE_SIZE, PROT_R, .file = 1, .stack = 7);
	COPY(DEVICE, MAPPED + 2 * GIB, FILE_SIZE);
	EXIT(0);
	assert_int_equal(measured(scene, &measures)->scale.released, 0);
	measures_release(&measures);
}

/* Repetitions count: header thrice, one tensor once and a half. 1.5 * 256 MiB + 32 MiB of 1 GiB. */
static void test_read_amplification(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	READ(1, 0, 8 * MIB, 0);
	READ(1, 0, 8 * MIB, 0);
	READ(1, 0, 256 * MIB, 0);
	READ(1, 0, 128 * MIB, 0);
	READ(1, 0, 16 * MIB, 0);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_READ, 4063); /* 416 / 1024 = 0.40625, to the nearest */
	measures_release(&measures);
}

/* The lowest MemAvailable since the first sample, wherever it was. */
static void test_pool(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	begin_load(scene);
	MAP(MAPPED, FILE_SIZE, PROT_R, .file = 1);
	play_sample(scene, 17 * GIB, GIB, 100 * MIB, 0);
	play_sample(scene, 19 * GIB, GIB, 100 * MIB, 0);
	EXIT(0);
	m = measured(scene, &measures);
	assert_exact(m, METRIC_POOL, 2 * GIB);
	measures_release(&measures);
}

/* Two of one name are both said, but not one whose version is unknown beside another, in whatever order. */
static void test_versions(void **state)
{
	struct loader loaders[] = {{.part_count = 1, .parts = {{.name = "torch"}}},
	                           {.part_count = 1, .parts = {{.name = "torch", .version = "2.15"}}},
	                           {.part_count = 1, .parts = {{.name = "torch"}}},
	                           {.part_count = 1, .parts = {{.name = "torch", .version = "2.14"}}},
	                           {.part_count = 1, .parts = {{.name = "gguf"}}}};
	struct model model = {.loaders = loaders, .loader_count = sizeof(loaders) / sizeof(loaders[0])};
	struct measured process = {.model = &model};
	static const char *const said[][2] = {{"gguf", "unknown"}, {"torch", "2.14"}, {"torch", "2.15"}};
	struct measure m = {0};

	(void)state;
	assert_int_equal(measure_versions(&m, &process, 1), 0);
	assert_int_equal(m.version_count, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(m.versions[i].name, said[i][0]);
		assert_string_equal(m.versions[i].version, said[i][1]);
	}
	measure_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_map_only),
		TEST(test_map_and_touch),
		TEST(test_clone),
		TEST(test_read_through_a_buffer),
		TEST(test_staging_together),
		TEST(test_anonymous_copies),
		TEST(test_mappings),
		TEST(test_header_mapping),
		TEST(test_read_amplification),
		TEST(test_pool),
		TEST(test_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
