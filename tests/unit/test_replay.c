/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the count of what lives where: device bytes must be exact by every way a program can take, and a
 * request that was refused, a handle given back or a release that failed must leave no trace in it.
 */
#include <analyzer/replay.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "records.h"

#define FILE_ID 7

struct scene {
	struct catalog catalog;
	struct replay replay;
	struct refusal refusal; /* the last one */
	unsigned refusals;
	uint64_t granted; /* bytes of the last request met */
	uint64_t gone[5]; /* bytes by region */
	uint64_t peak;
};

static void note_gone(void *context, enum region region, const struct span *piece)
{
	((struct scene *)context)->gone[region] += piece->hi - piece->lo;
}

static void note_refused(void *context, const struct st_record *record, const struct refusal *refusal)
{
	struct scene *scene = context;

	(void)record;
	scene->refusal = *refusal;
	scene->refusals++;
}

static void note_granted(void *context, const struct st_record *record, uint64_t bytes)
{
	(void)record;
	((struct scene *)context)->granted = bytes;
}

static int scene_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct replay_watch watch = {
		.context = scene, .gone = note_gone, .refused = note_refused, .granted = note_granted};

	catalog_record(&scene->catalog, RECORD_FILE(FILE_ID, "/m/w.safetensors", GIB));
	replay_init(&scene->replay, &scene->catalog, &watch);
	*state = scene;
	return 0;
}

static int scene_down(void **state)
{
	struct scene *scene = *state;

	replay_release(&scene->replay);
	catalog_release(&scene->catalog);
	free(scene);
	return 0;
}

static void play(struct scene *scene, const struct st_record *record)
{
	assert_int_equal(replay_record(&scene->replay, record), 0);
	if (scene->replay.device > scene->peak)
		scene->peak = scene->replay.device;
}

#define ALLOC(addr_, size_, ...) \
	play(scene, RECORD(device_alloc, .addr = (addr_), .size = (size_), __VA_ARGS__))
#define FREE(addr_)            play(scene, RECORD(device_free, .addr = (addr_)))
#define CREATE(handle_, size_) play(scene, RECORD(handle_create, .handle = (handle_), .size = (size_)))
#define RELEASE(handle_)       play(scene, RECORD(handle_release, .handle = (handle_)))
#define MAP_HANDLE(handle_, addr_, size_) \
	play(scene, RECORD(handle_map, .handle = (handle_), .addr = (addr_), .size = (size_)))
#define UNMAP_HANDLE(addr_, size_) play(scene, RECORD(handle_unmap, .addr = (addr_), .size = (size_)))
#define MAP(addr_, size_, ...)     play(scene, RECORD(map, .addr = (addr_), .size = (size_), __VA_ARGS__))
#define UNMAP(addr_, size_)        play(scene, RECORD(unmap, .addr = (addr_), .size = (size_)))

/* Five doors, five kinds: each counted once. */
static void test_blocks(void **state)
{
	static const enum st_device_how how[] = {ST_DEVICE_PLAIN, ST_DEVICE_PITCHED, ST_DEVICE_MANAGED,
	                                         ST_DEVICE_ASYNC, ST_DEVICE_ARRAY};
	struct scene *scene = *state;

	for (uint64_t i = 0; i < 5; i++)
		ALLOC((i + 1) << 32, 256 * MIB, .how = how[i]);
	assert_int_equal(scene->replay.device, 1280 * MIB);
	for (uint64_t i = 0; i < 5; i++)
		play(scene, RECORD(device_free, .addr = (i + 1) << 32, .how = how[i]));
	play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT)); /* the pool of the asynchronous one */
	assert_int_equal(scene->replay.device, 0);
	assert_int_equal(scene->peak, 1280 * MIB);
	assert_int_equal(scene->replay.unknown_frees, 0);
}

static void test_not_memory(void **state)
{
	struct scene *scene = *state;

	ALLOC(0, GIB, .result = 2);
	ALLOC(1 << 20, GIB, .flags = 1u << ST_CALL_CAPTURING);
	ALLOC(2 * GIB, GIB, .how = ST_DEVICE_IPC);
	play(scene, RECORD(reserve, .addr = 100 * GIB, .size = 147 * GIB));
	play(scene, RECORD(register, .addr = 8 * GIB, .size = GIB));
	assert_int_equal(scene->replay.device, 0);
	assert_int_equal(replay_pinned(&scene->replay), 0);
	assert_int_equal(scene->refusals, 1);
	assert_int_equal(scene->refusal.asked, GIB);
	FREE(2 * GIB);
	assert_int_equal(scene->replay.device, 0);
}

/* An address that is given out again although its release was never seen. */
static void test_lost_release(void **state)
{
	struct scene *scene = *state;

	ALLOC(GIB, 64 * MIB);
	ALLOC(GIB, 32 * MIB);
	assert_int_equal(scene->replay.device, 32 * MIB);
	assert_int_equal(scene->gone[REGION_DEVICE], 64 * MIB);
	FREE(GIB);
	assert_int_equal(scene->replay.device, 0);
	FREE(5 * GIB);
	assert_int_equal(scene->replay.unknown_frees, 1);
}

static void test_revoked(void **state)
{
	struct scene *scene = *state;
	struct st_ev_device_free release = {.r = {.seq = ST_SEQ_MAGIC | 0x1000,
	                                          .kind = ST_KIND_device_free,
	                                          .words = sizeof(release) / 8},
	                                    .addr = GIB};
	uint64_t revoked = 0x1000;

	scene->replay.revoked = &revoked;
	scene->replay.revoked_count = 1;
	ALLOC(GIB, 64 * MIB);
	play(scene, &release.r);
	assert_int_equal(scene->replay.device, 64 * MIB);
	release.r.seq = ST_SEQ_MAGIC | 0x2000;
	play(scene, &release.r);
	assert_int_equal(scene->replay.device, 0);
}

/* A handle lives while it has a reference or a mapping, in whatever order they end. */
static void test_handles(void **state)
{
	struct scene *scene = *state;

	CREATE(1, 20 * MIB);
	CREATE(2, 20 * MIB);
	assert_int_equal(scene->replay.device, 0); /* the request goes on */
	MAP_HANDLE(1, GIB, 20 * MIB);
	MAP_HANDLE(2, GIB + 20 * MIB, 20 * MIB);
	assert_int_equal(scene->replay.device, 40 * MIB);
	assert_int_equal(scene->granted, 40 * MIB);
	RELEASE(1);
	assert_int_equal(scene->replay.device, 40 * MIB);
	UNMAP_HANDLE(GIB, 40 * MIB);
	assert_int_equal(scene->replay.device, 20 * MIB);
	play(scene, RECORD(handle_retain, .handle = 2));
	RELEASE(2);
	assert_int_equal(scene->replay.device, 20 * MIB);
	RELEASE(2);
	assert_int_equal(scene->replay.device, 0);
	assert_int_equal(scene->gone[REGION_DEVICE], 40 * MIB);
}

static void test_handle_kept_unmapped(void **state)
{
	struct scene *scene = *state;

	CREATE(1, 20 * MIB);
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM));
	assert_int_equal(scene->replay.device, 20 * MIB);
	RELEASE(1);
	assert_int_equal(scene->replay.device, 0);
	play(scene, RECORD(handle_create, .handle = 3, .size = MIB, .location = ST_LOCATION_HOST));
	assert_int_equal(replay_pinned(&scene->replay), MIB);
	CREATE(4, MIB);
	replay_finish(&scene->replay);
	assert_int_equal(scene->replay.device, MIB);
}

/* A slow request: its handles count while it goes on, and it is still one request when it is met. */
static void test_slow_request(void **state)
{
	struct scene *scene = *state;

	CREATE(1, 20 * MIB);
	CREATE(2, 20 * MIB);
	record_now.time += UINT64_C(2000000000);
	play(scene, RECORD(sample, .mem_free = 1));
	assert_int_equal(scene->replay.device, 40 * MIB);
	MAP_HANDLE(1, GIB, 20 * MIB);
	MAP_HANDLE(2, GIB + 20 * MIB, 20 * MIB);
	assert_int_equal(scene->replay.device, 40 * MIB);
	assert_int_equal(scene->granted, 40 * MIB);
}

/* Expandable segments: 402 handles of a 9 GiB request, a refusal, all given back; and all of it again. */
static void test_refused_burst(void **state)
{
	struct scene *scene = *state;

	ALLOC(GIB, 100 * MIB);
	for (int attempt = 0; attempt < 2; attempt++) {
		for (uint64_t i = 1; i <= 402; i++)
			CREATE(i, 20 * MIB);
		play(scene, RECORD(handle_create, .size = 20 * MIB, .result = 2, .stack = 9));
		assert_int_equal(scene->refusal.attempted, 402 * 20 * MIB);
		assert_int_equal(scene->refusal.asked, 403 * 20 * MIB);
		for (uint64_t i = 1; i <= 402; i++)
			RELEASE(i);
	}
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM));
	assert_int_equal(scene->peak, 100 * MIB);
	assert_int_equal(scene->refusals, 2);
	assert_int_equal(scene->replay.device, 100 * MIB);
}

/* What a pool holds counts: a block that went back to it has not left the process. */
static void test_pools(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(pool_state, .pool = 5, .reserved = 0, .used = 0, .threshold = UINT64_MAX - 1));
	ALLOC(GIB, 64 * MIB, .how = ST_DEVICE_ASYNC, .pool = 5);
	play(scene, RECORD(device_free, .addr = GIB, .how = ST_DEVICE_ASYNC));
	play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT));
	assert_int_equal(scene->replay.device, 64 * MIB);
	ALLOC(GIB, 48 * MIB, .how = ST_DEVICE_ASYNC, .pool = 5);
	assert_int_equal(scene->replay.device, 64 * MIB);
	ALLOC(2 * GIB, 32 * MIB, .how = ST_DEVICE_ASYNC, .pool = 5);
	assert_int_equal(scene->replay.device, 80 * MIB);
	play(scene,
	     RECORD(pool_state, .pool = 5, .reserved = 96 * MIB, .used = 80 * MIB, .threshold = ST_UNKNOWN));
	assert_int_equal(scene->replay.device, 96 * MIB);
	play(scene, RECORD(pool_state, .pool = 5, .reserved = 80 * MIB, .used = 80 * MIB, .threshold = 0));
	play(scene, RECORD(device_free, .addr = GIB, .how = ST_DEVICE_ASYNC));
	assert_int_equal(scene->replay.device, 80 * MIB);
	play(scene, RECORD(sync, .how = ST_SYNC_STREAM));
	assert_int_equal(scene->replay.device, 32 * MIB);
	play(scene, RECORD(pool_create, .pool = 6, .location = ST_LOCATION_HOST));
	ALLOC(3 * GIB, MIB, .how = ST_DEVICE_POOL, .pool = 6);
	assert_int_equal(replay_pinned(&scene->replay), MIB);
}

static void test_context_end(void **state)
{
	struct scene *scene = *state;

	play(scene, RECORD(context, .handle = 11, .alive = 1));
	ALLOC(GIB, 64 * MIB, .how = ST_DEVICE_CONTEXT);
	assert_int_equal(scene->replay.context_bytes, 64 * MIB);
	CREATE(1, 20 * MIB);
	MAP_HANDLE(1, 4 * GIB, 20 * MIB);
	RELEASE(1);
	play(scene, RECORD(pinned_alloc, .addr = 9 * GIB, .size = MIB));
	play(scene, RECORD(context, .handle = 11, .alive = 0));
	assert_int_equal(scene->replay.device, 0);
	assert_int_equal(replay_pinned(&scene->replay), 0);
}

static uint64_t file_offset(const struct scene *scene, uint64_t address)
{
	struct span span;

	assert_true(livemap_find(&scene->replay.maps, address, &span));
	assert_non_null(replay_mapping(&scene->replay, &span));
	return address + span.b;
}

static void test_mappings(void **state)
{
	struct scene *scene = *state;
	struct span span;

	MAP(GIB, 10 * MIB - 5, .prot = PROT_RW, .flags = MAP_PRIV, .file = FILE_ID, .offset = 4096);
	assert_int_equal(scene->replay.weights_mapped, 10 * MIB); /* whole pages */
	UNMAP(GIB + 4 * MIB, 2 * MIB);                            /* a hole */
	assert_int_equal(scene->replay.weights_mapped, 8 * MIB);
	assert_int_equal(file_offset(scene, GIB + 7 * MIB), 7 * MIB + 4096);
	assert_false(livemap_find(&scene->replay.maps, GIB + 5 * MIB, &span));
	MAP(GIB + MIB, MIB, .prot = PROT_RW, .flags = MAP_PRIV | MAP_FIX); /* anonymous, over it */
	assert_int_equal(scene->replay.weights_mapped, 7 * MIB);
	play(scene, RECORD(protect, .addr = GIB + 2 * MIB, .size = 6 * MIB, .prot = PROT_R));
	assert_true(livemap_find(&scene->replay.maps, GIB + 3 * MIB, &span));
	assert_int_equal(span.a & 7, PROT_R);
	assert_int_equal(file_offset(scene, GIB + 3 * MIB), 3 * MIB + 4096);
	assert_true(livemap_find(&scene->replay.maps, GIB, &span));
	assert_int_equal(span.a & 7, PROT_RW);
	UNMAP(GIB, 10 * MIB);
	assert_int_equal(scene->replay.weights_mapped, 0);
	assert_int_equal(scene->replay.maps.count, 0);
}

static void test_remap(void **state)
{
	struct scene *scene = *state;
	struct span span;

	MAP(GIB, 4 * MIB, .prot = PROT_RW, .flags = MAP_PRIV, .file = FILE_ID, .offset = MIB);
	play(scene, RECORD(remap, .addr = GIB, .size = 4 * MIB, .new_addr = 8 * GIB, .new_size = 6 * MIB,
	                   .flags = 1));
	assert_int_equal(scene->replay.weights_mapped, 6 * MIB);
	assert_false(livemap_find(&scene->replay.maps, GIB, &span));
	assert_int_equal(file_offset(scene, 8 * GIB + 5 * MIB), 6 * MIB);
	play(scene,
	     RECORD(remap, .addr = 8 * GIB, .size = 6 * MIB, .new_addr = 8 * GIB, .new_size = 2 * MIB));
	assert_int_equal(scene->replay.weights_mapped, 2 * MIB);
	UNMAP(8 * GIB, 2 * MIB);
	MAP(GIB, MIB, .prot = PROT_R, .flags = MAP_PRIV, .file = FILE_ID);
	assert_int_equal(file_offset(scene, GIB), 0); /* the slot of the old mapping is used again */
	assert_int_equal(scene->replay.mapping_count, 1);
}

static void test_host(void **state)
{
	struct scene *scene = *state;
	struct span span;

	play(scene, RECORD(alloc, .addr = GIB, .size = 5 * MIB));
	play(scene, RECORD(pinned_alloc, .addr = 2 * GIB, .size = 64 * MIB));
	play(scene, RECORD(pinned_alloc, .size = 64 * MIB, .result = 2));
	assert_int_equal(replay_region(&scene->replay, GIB + 1, &span), REGION_HOST);
	assert_int_equal(replay_region(&scene->replay, 2 * GIB, &span), REGION_PINNED);
	assert_int_equal(replay_region(&scene->replay, 3 * GIB, &span), REGION_NONE);
	assert_int_equal(replay_pinned(&scene->replay), 64 * MIB);
	play(scene, RECORD(free, .addr = GIB));
	play(scene, RECORD(free, .addr = 77)); /* a small block that nobody noted */
	play(scene, RECORD(pinned_free, .addr = 2 * GIB));
	assert_int_equal(replay_pinned(&scene->replay), 0);
	assert_int_equal(scene->gone[REGION_HOST], 5 * MIB);
	assert_int_equal(scene->gone[REGION_PINNED], 64 * MIB);
	assert_int_equal(scene->replay.unknown_frees, 0);
}

/* Fields that no kernel or driver would say must not upset anything: input is untrusted. */
static void test_hostile(void **state)
{
	struct scene *scene = *state;
	static const uint64_t odd[] = {0, 1, 4096, UINT64_MAX, UINT64_MAX - 4095, UINT64_C(1) << 63};

	for (size_t i = 0; i < 6; i++)
		for (size_t k = 0; k < 6; k++) {
			uint64_t a = odd[i], s = odd[k];

			ALLOC(a, s);
			MAP(a, s, .file = FILE_ID, .offset = s);
			play(scene, RECORD(remap, .addr = a, .size = s, .new_addr = s, .new_size = a));
			play(scene, RECORD(protect, .addr = a, .size = s));
			CREATE(a, s);
			MAP_HANDLE(a, s, s);
			play(scene, RECORD(pool_state, .pool = a, .reserved = s, .used = a));
			play(scene, RECORD(alloc, .addr = a, .size = s));
			play(scene, RECORD(process, .page_size = s));
			play(scene, RECORD(context, .handle = a, .alive = 1));
			UNMAP(a, s);
			UNMAP_HANDLE(a, s);
			FREE(a);
			RELEASE(a);
		}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_up, scene_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_blocks),       TEST(test_not_memory),    TEST(test_lost_release),
		TEST(test_revoked),      TEST(test_handles),       TEST(test_handle_kept_unmapped),
		TEST(test_slow_request), TEST(test_refused_burst), TEST(test_pools),
		TEST(test_context_end),  TEST(test_mappings),      TEST(test_remap),
		TEST(test_host),         TEST(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
