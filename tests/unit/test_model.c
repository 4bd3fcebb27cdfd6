/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the figures that the report stands on: each of the loads that issue 3 shows, with numbers worked out by
 * hand, through writer, reader and all three passes.
 */
#include "scene.h"

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)
#define BUFFER (300 * GIB)

/* One file of 1 GiB with four tensors. */
static void play_weights(struct scene *scene)
{
	static const char *const names[] = {"t0", "t1", "t2", "t3"};

	play_file(scene, 1, "/m/w.safetensors", GIB);
	for (uint64_t i = 0; i < 4; i++)
		play_tensor(scene, 1, names[i], i * 256 * MIB, 256 * MIB);
}

static void assert_range(struct range range, uint64_t lo, uint64_t hi)
{
	assert_int_equal(range.lo, lo);
	assert_int_equal(range.hi, hi);
}

static void assert_factor(const struct load *load, unsigned thousandths)
{
	assert_int_equal((unsigned)(load->factor_lo * 1000 + 0.5), thousandths);
	assert_int_equal((unsigned)(load->factor_hi * 1000 + 0.5), thousandths);
}

/* Line 2: D = A = 1 GiB, factor 2.00, at the last copy; a scan at the unmap makes the prediction exact. */
static void test_copy_on_write(void **state)
{
	struct scene *scene = *state;
	const struct model *model;
	const struct moment *peak;

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1, .stack = 3);
	ALLOC(DEVICE, GIB);
	for (uint64_t i = 0; i < 4; i++)
		COPY(DEVICE + i * 256 * MIB, MAPPED + i * 256 * MIB, 256 * MIB, .stack = 4);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + GIB);
	UNMAP(MAPPED, GIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_factor(&model->load, 2000);
	assert_range(model->load.modelled, 2 * GIB, 2 * GIB);
	assert_range(model->load.duplicated, GIB, GIB);
	assert_range(model->needed.demand, 2 * GIB, 2 * GIB);
	assert_int_equal(model->needed.died_in, PHASE_COUNT);
	assert_range(model->files[0].at_peak.on_device, GIB, GIB);
	assert_range(model->files[0].at_peak.anon, GIB, GIB);
	assert_range(model->files[0].at_settled.anon, 0, 0);
	assert_range(model->tensors[2].at_peak.on_device, 256 * MIB, 256 * MIB);
	assert_true(model->load.from_private_writable);
	assert_int_equal(model->load.copied_from[COPY_PRIVATE_WRITABLE], GIB);
	assert_int_equal(model->files[0].mapping_count, 1);
	assert_int_equal(model->files[0].mappings[0].stack, 3);
	assert_int_equal(model->files[0].mappings[0].copied, GIB);
	assert_false(model->files[0].mappings[0].kept);
	peak = &model->moments[MOMENT_LOAD_DEMAND_PEAK];
	assert_int_equal(peak->phase, PHASE_LOAD);
	assert_int_equal(peak->stack, 4);
	assert_int_equal(peak->tensor, 3);
	/* One slot of 256 MiB for the one loader thread: what 1b cannot save. */
	assert_int_equal(model->load.spare, 256 * MIB);
	assert_range(model->load.repaired, GIB + 256 * MIB, GIB + 256 * MIB);
	assert_true(model->moments[MOMENT_SETTLED].valid);
	assert_range(model->moments[MOMENT_SETTLED].modelled, GIB, GIB);
}

/* Without any scan the prediction stays one. */
static void test_copy_on_write_unseen(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, GIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->load.modelled, GIB, 2 * GIB);
	assert_range(model->load.anon_copied, 0, GIB);
}

/* Line 2, read-only: A = 0, factor 1.00, and what is twice there is page cache. */
static void test_read_only(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, GIB);
	play(scene, RECORD(cached, .file = 1, .size = GIB, .cached = GIB));
	UNMAP(MAPPED, GIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_factor(&model->load, 1000);
	assert_range(model->load.anon, 0, 0);
	assert_range(model->load.reclaimable, GIB, GIB);
	assert_range(model->load.resident, 2 * GIB, 2 * GIB);
	assert_range(model->load.repaired, GIB, GIB);
	assert_false(model->load.from_private_writable);
}

/* Line 4: the same file touched and cloned; page cache is never demand. */
static void touch_or_clone(struct scene *scene, uint64_t cloned)
{
	play_sample(scene, 20 * GIB, GIB, 100 * MIB, 50 * MIB);
	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	play_sample(scene, 20 * GIB - (GIB + cloned) / 2, GIB + GIB / 2, 100 * MIB + cloned / 2, 50 * MIB);
	play(scene, RECORD(cached, .file = 1, .size = GIB, .cached = GIB / 2));
	play_sample(scene, 20 * GIB - GIB - cloned, 2 * GIB, 100 * MIB + cloned, 50 * MIB);
	play(scene, RECORD(cached, .file = 1, .size = GIB, .cached = GIB));
	EXIT(0);
	scene_model(scene, true);
	assert_range(scene->model->load.demand, cloned, cloned);
	assert_range(scene->model->moments[MOMENT_LOAD_RESIDENT_PEAK].layers.weight_cache, GIB, GIB);
	assert_int_equal(scene->model->moments[MOMENT_DEMAND_PEAK].layers.kernel.hi, 0);
	assert_true(scene->model->host_seen);
}

static void test_touch(void **state)
{
	touch_or_clone(*state, 0);
}

static void test_clone(void **state)
{
	touch_or_clone(*state, GIB);
}

/* Eight shards, mapped and kept; five loaded, the sixth refused. */
static void play_shards(struct scene *scene)
{
	for (uint64_t i = 0; i < 8; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/m/model-%05u-of-00008.safetensors", (unsigned)i + 1);
		play_file(scene, i + 1, path, 256 * MIB);
		MAP(MAPPED + i * GIB, 256 * MIB, PROT_R, .file = i + 1);
	}
	for (uint64_t i = 0; i < 5; i++) {
		ALLOC(DEVICE + i * GIB, 256 * MIB);
		COPY(DEVICE + i * GIB, MAPPED + i * GIB, 256 * MIB);
	}
	ALLOC(0, 256 * MIB, .result = 2);
}

/* Line 6: observed 1.25 GiB, needed 2.00 GiB; the refused request is part of that, not on top. */
static void test_dead_load(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_shards(scene);
	EXIT(1);
	model = scene_model(scene, true);
	assert_int_equal(model->device_peak, 1280 * MIB);
	assert_false(model->load.finished);
	assert_range(model->load.loaded, 1280 * MIB, 1280 * MIB);
	assert_range(model->load.remaining, 768 * MIB, 768 * MIB);
	assert_range(model->needed.modelled, 2 * GIB, 2 * GIB);
	assert_int_equal(model->needed.died_in, PHASE_LOAD);
	assert_int_equal(model->needed.request, 0);
	assert_int_equal(model->failures[0].outcome, FAILURE_FATAL);
	assert_range(model->load.repaired, 1280 * MIB, 1280 * MIB);
	assert_true(model->files[7].mappings[0].kept);
	assert_int_equal(model->files[7].shards, 8);
}

/* The same killed before the refusal came back, and through copies that break copy-on-write. */
static void test_killed_load(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_RW, .file = 1);
	ALLOC(DEVICE, GIB); /* all of it ahead */
	COPY(DEVICE, MAPPED, 512 * MIB);
	SCAN(MAPPED, GIB, MAPPED, MAPPED + 512 * MIB);
	play(scene, RECORD(exit, .how = ST_EXIT_SIGNALED, .status = 9));
	model = scene_model(scene, false);
	assert_range(model->moments[MOMENT_DEMAND_PEAK].demand, GIB + 512 * MIB, GIB + 512 * MIB);
	assert_int_equal(model->load.ahead, 512 * MIB);
	assert_range(model->needed.demand, 2 * GIB, 2 * GIB);
	assert_range(model->needed.anon, GIB, GIB);
	assert_true(model->needed.lower_bound);
}

/* Line 6, the other half: what was freed and tried again with success is no OOM. */
static void test_retried_load(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_shards(scene);
	FREE(DEVICE);
	for (uint64_t i = 5; i < 8; i++) {
		FREE(DEVICE + (i - 4) * GIB);
		ALLOC(DEVICE + i * GIB, 256 * MIB);
		COPY(DEVICE + i * GIB, MAPPED + i * GIB, 256 * MIB);
	}
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->failure_count, 1);
	assert_int_equal(model->failures[0].outcome, FAILURE_RETRIED);
	assert_int_equal(model->failures[0].freed_between, 512 * MIB);
	assert_true(model->load.finished);
	assert_int_equal(model->needed.died_in, PHASE_COUNT);
	assert_range(model->needed.demand, 1280 * MIB, 1280 * MIB);
}

/* Line 7: 1 GiB loaded, then 512 MiB of steps; without any sample, so nothing is said of the host. */
static void test_caching_allocator(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_weights(scene);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, GIB);
	UNMAP(MAPPED, GIB);
	ALLOC(DEVICE + GIB, 256 * MIB, .stack = 6);
	FREE(DEVICE + GIB);
	ALLOC(DEVICE + GIB, 512 * MIB, .stack = 7);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->moments[MOMENT_SETTLED].demand, GIB, GIB);
	assert_int_equal(model->moments[MOMENT_SETTLED].layers.device, GIB);
	assert_int_equal(model->moments[MOMENT_STEPS_PEAK].layers.device, GIB + 512 * MIB);
	assert_int_equal(model->moments[MOMENT_DEMAND_PEAK].phase, PHASE_STEPS);
	assert_range(model->load.modelled, GIB, GIB);
	assert_int_equal(model->samples, 0);
	assert_false(model->host_seen);
	assert_false(change_is_known(model->moments[MOMENT_STEPS_PEAK].layers.host));
	assert_int_equal(model->first.free, ST_UNKNOWN);
	assert_int_equal(model->holders[0].stack, 0);
	assert_int_equal(model->holders[0].at_peak, GIB);
	assert_int_equal(model->holders[1].stack, 7);
	assert_int_equal(model->holders[1].at_load_peak, 0);
}

/* Line 8: 1 GiB through one pinned buffer of 64 MiB; with and without the destinations of the reads. */
static void staging(struct scene *scene, uint64_t buffer)
{
	play_weights(scene);
	play(scene, RECORD(pinned_alloc, .addr = BUFFER, .size = 64 * MIB));
	ALLOC(DEVICE, GIB);
	for (uint64_t i = 0; i < 16; i++) {
		READ(1, i * 64 * MIB, 64 * MIB, buffer);
		COPY(DEVICE + i * 64 * MIB, BUFFER, 64 * MIB);
	}
	EXIT(0);
	scene_model(scene, true);
	assert_int_equal(scene->model->staging_peak, 64 * MIB);
	assert_int_equal(scene->model->load.staging_all, 64 * MIB);
	assert_int_equal(scene->model->load.staging, 0); /* it is in P */
	assert_range(scene->model->load.modelled, 1088 * MIB, 1088 * MIB);
	assert_int_equal(scene->model->load.threads, 1);
}

static void test_staging(void **state)
{
	struct scene *scene = *state;

	staging(scene, BUFFER);
	assert_range(scene->model->files[0].at_settled.on_device, GIB, GIB);
	assert_range(scene->model->tensors[1].at_settled.on_device, 256 * MIB, 256 * MIB);
	assert_true(scene->model->files[0].exact);
	assert_int_equal(scene->model->files[0].copied_bytes, GIB);
	assert_true(scene->model->load.factor_lo == 1.0625);
}

static void test_staging_unseen(void **state)
{
	struct scene *scene = *state;

	staging(scene, 0);
	assert_range(scene->model->files[0].at_settled.on_device, 0, GIB);
	assert_range(scene->model->tensors[1].at_settled.on_device, 0, 256 * MIB);
	assert_false(scene->model->files[0].exact);
	assert_true(scene->model->load.finished);
}

/* Line 9: only what was said is known, and a lone allocation is the need. */
static void test_order(void **state)
{
	struct scene *scene = *state;
	const struct model *model;
	struct st_ev_sample sample;

	memset(&sample, 0xff, sizeof(sample));
	sample.r = (struct st_record){.kind = ST_KIND_sample, .words = sizeof(sample) / 8};
	sample.mem_free = 40 * GIB;
	sample.mem_available = 110 * GIB;
	play(scene, &sample.r);
	ALLOC(DEVICE, 60 * GIB);
	EXIT(0);
	model = scene_model(scene, true);
	assert_range(model->needed.demand, 60 * GIB, 60 * GIB);
	assert_int_equal(model->first.free, 40 * GIB);
	assert_int_equal(model->first.total, ST_UNKNOWN);
	assert_false(model->load.present);
	assert_true(range_is_open(model->moments[MOMENT_DEMAND_PEAK].layers.stale_cache));
}

/* Beyond 4 TiB page cache is one cell: what a look at a part of it saw does not hold for the rest. */
static void test_endless_file(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_file(scene, 1, "/m/w.safetensors", 5 * 1024 * GIB);
	MAP(100 * GIB, 5 * 1024 * GIB, PROT_R, .file = 1);
	play(scene, RECORD(cached, .file = 1, .size = 5 * 1024 * GIB, .cached = 0));
	play(scene, RECORD(cached, .file = 1, .offset = 4200 * GIB, .size = 64 * MIB, .cached = 64 * MIB));
	play(scene, RECORD(cached, .file = 1, .offset = 4300 * GIB, .size = 64 * MIB, .cached = 0));
	model = scene_model(scene, true);
	assert_true(model->files[0].at_end.cached.lo <= 64 * MIB);
	assert_true(model->files[0].at_end.cached.hi >= 64 * MIB);
}

/* Words that no list has, of damage or of a later version, are unknown: never an index into the words there are. */
static void test_unheard_words(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play(scene, RECORD(process, .pid = 1, .pool = 4711, .page_size = 4096));
	play_file(scene, 1, "/m/w.safetensors", GIB);
	play(scene, RECORD(file, .id = 2, .size = GIB, .format = 4711));
	play(scene, record_tail(RECORD(tensor, .file = 1, .size = GIB, .dtype = UINT64_MAX), "a", 1));
	play(scene, RECORD(exit, .how = 4711));
	model = scene_model(scene, false);
	assert_int_equal(model->pool, ST_POOL_UNKNOWN);
	assert_int_equal(model->exit_how, ST_EXIT_UNKNOWN);
	assert_int_equal(model->files[1].format, ST_FILE_OTHER);
	assert_int_equal(model->tensors[0].dtype, ST_DTYPE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_copy_on_write),
		TEST(test_copy_on_write_unseen),
		TEST(test_read_only),
		TEST(test_touch),
		TEST(test_clone),
		TEST(test_dead_load),
		TEST(test_killed_load),
		TEST(test_retried_load),
		TEST(test_caching_allocator),
		TEST(test_staging),
		TEST(test_staging_unseen),
		TEST(test_order),
		TEST(test_endless_file),
		TEST(test_unheard_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
