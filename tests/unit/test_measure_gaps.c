/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what `check` compares only if it may: circumstances that make the fingerprint, and whatever a trace does not
 * hold. What is not known must never look like a small number.
 */
#include <analyzer/measure_parts.h>
#include <errno.h>
#include "measure_scene.h"

#define BIT(metric) (1u << METRIC_##metric)
#define GATED       (((1u << METRIC_COUNT) - 1) & ~BIT(POOL))

static void play_load(struct scene *scene)
{
	play_sample(scene, 20 * GIB, 0, 100 * MIB, 0);
	play_file(scene, 1, "/m/w.safetensors", GIB);
	play(scene, RECORD(open, .file = 1));
	ALLOC(DEVICE, GIB);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	COPY(DEVICE, MAPPED, GIB);
}

/* --- the fingerprint ------------------------------------------------------------------------------- */

static void test_fingerprint(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct fingerprint *print;

	PROCESS(ST_POOL_UMA);
	INFO("env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
	INFO("env.PYTORCH_NO_CUDA_MEMORY_CACHING=1");
	INFO("setting.SPARKTRACE_HEAP_THRESHOLD=2MiB");
	INFO("setting.SPARKTRACE_RELIEF=readonly");
	play_load(scene);
	play(scene, RECORD(handle_create, .handle = 5, .size = 3 * GIB, .location = ST_LOCATION_DEVICE));
	EXIT(0);
	print = &measured(scene, &measures)->fingerprint;
	assert_string_equal(print->allocator,
	                    "vmm (expandable_segments:True, PYTORCH_NO_CUDA_MEMORY_CACHING=1)");
	assert_string_equal(print->device, "unified");
	assert_string_equal(print->relief, "readonly");
	assert_int_equal(print->heap_threshold, 2 * MIB);
	assert_int_equal(print->threads, 1);
	assert_int_equal(print->page_size, 4096);
	assert_int_equal(print->processes, 1);
	measures_release(&measures);
}

/* A pool of the driver's, and memory that is no choice of an allocator. What the steps ask for does not count. */
static void test_allocator_door(void **state)
{
	struct scene *scene = *state;
	struct measures measures;

	PROCESS(ST_POOL_SIMULATED);
	ALLOC(DEVICE + 8 * GIB, 2 * GIB, .how = ST_DEVICE_ASYNC);
	ALLOC(DEVICE + 16 * GIB, 3 * GIB, .how = ST_DEVICE_CONTEXT);
	ALLOC(DEVICE + 24 * GIB, 4 * GIB, .result = 2);
	play_load(scene);
	MARK("step");
	ALLOC(DEVICE + 32 * GIB, 5 * GIB);
	EXIT(0);
	assert_string_equal(measured(scene, &measures)->fingerprint.allocator, "pool");
	assert_string_equal(measures.runs->fingerprint.device, "simulated");
	assert_string_equal(measures.runs->fingerprint.relief, "off");
	assert_int_equal(measures.runs->fingerprint.heap_threshold, ST_UNKNOWN);
	measures_release(&measures);
}

/* Without a driver there is no device whose class could differ. */
static void test_no_driver(void **state)
{
	struct scene *scene = *state;
	struct measures measures;

	PROCESS(ST_POOL_DISCRETE);
	play_file(scene, 1, "/m/w.safetensors", GIB);
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	EXIT(0);
	assert_string_equal(measured(scene, &measures)->fingerprint.device, "none");
	assert_string_equal(measures.runs->fingerprint.allocator, "none");
	measures_release(&measures);
}

/* Relief that was asked for and refused is another circumstance than relief. */
static void test_relief_refused(void **state)
{
	struct scene *scene = *state;
	struct measures measures;

	PROCESS(ST_POOL_UMA);
	INFO("setting.SPARKTRACE_RELIEF=readonly");
	play_load(scene);
	play(scene, RECORD(relief, .what = ST_RELIEF_OFF, .file = 1, .result = 1));
	EXIT(0);
	assert_string_equal(measured(scene, &measures)->fingerprint.relief, "readonly (refused)");
	measures_release(&measures);
}

/* --- gaps ------------------------------------------------------------------------------------------ */

static unsigned gaps_of(const struct measure *m)
{
	unsigned gaps = 0;

	for (int i = 0; i < METRIC_COUNT; i++)
		gaps |= m->gaps[i] ? 1u << i : 0;
	return gaps;
}

static const struct measure *measured_with(struct scene *scene, const char *text,
                                           struct measures *ret_measures)
{
	PROCESS(ST_POOL_UMA);
	play_load(scene);
	COVERAGE(text);
	EXIT(0);
	return measured(scene, ret_measures);
}

static void test_no_gap(void **state)
{
	struct measures measures;
	const struct measure *m = measured_with(*state, "no Python frames: this Python is odd", &measures);

	assert_int_equal(gaps_of(m), 0);
	assert_null(m->unusable);
	assert_exact(m, METRIC_DEVICE, GIB);
	measures_release(&measures);
}

/* A driver whose calls nobody sees: more may have been asked for, or less. */
static void test_gap_of_the_driver(void **state)
{
	struct measures measures;
	const struct measure *m =
		measured_with(*state, "a second driver library, whose calls are not seen: /x", &measures);

	assert_int_equal(gaps_of(m), GATED & ~BIT(MAPPED) & ~BIT(READ));
	assert_non_null(strstr(m->gaps[METRIC_DEVICE], "a second driver library"));
	assert_value(m, METRIC_DEVICE, 0, UINT64_MAX);
	assert_exact(m, METRIC_MAPPED, GIB);
	measures_release(&measures);
}

static void test_gap_of_scans(void **state)
{
	struct measures measures;
	const struct measure *m = measured_with(
		*state, "anonymous pages of weight mappings are unknown: pagemap: Operation not permitted",
		&measures);

	assert_int_equal(gaps_of(m), BIT(ANON) | BIT(MODELLED) | BIT(FACTOR));
	assert_value(m, METRIC_ANON, 0, UINT64_MAX);
	assert_value(m, METRIC_MODELLED, GIB, UINT64_MAX);
	assert_exact(m, METRIC_DEVICE, GIB);
	measures_release(&measures);
}

/* What a newer recorder may say is not known here. */
static void test_unknown_text(void **state)
{
	struct measures measures;
	const struct measure *m = measured_with(*state, "the moon is not seen", &measures);

	assert_int_equal(gaps_of(m), GATED);
	assert_value(m, METRIC_DEVICE, 0, UINT64_MAX);
	measures_release(&measures);
}

static const char uring[] = "io_uring: what the program reads through it is not seen";

/* Nothing is missing of weights that were mapped or read in ways that were seen ... */
static void test_uring_beside_a_load(void **state)
{
	struct measures measures;

	assert_int_equal(gaps_of(measured_with(*state, uring, &measures)), 0);
	measures_release(&measures);
}

#define UNSEEN (BIT(READ) | BIT(STAGING) | BIT(HOST) | BIT(MODELLED) | BIT(FACTOR))

/* ... but of others it may be: a file that was opened, and one half of it never came. */
static void test_uring_in_a_load(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	play_load(scene);
	play_file(scene, 2, "/m/x.safetensors", GIB);
	play(scene, RECORD(open, .file = 2));
	READ(2, 0, GIB / 2, 0);
	COVERAGE(uring);
	EXIT(0);
	m = measured(scene, &measures);
	assert_int_equal(gaps_of(m), UNSEEN);
	assert_value(m, METRIC_READ, METRIC_RATIO_ONE / 4, UINT64_MAX);
	assert_exact(m, METRIC_DEVICE, GIB);
	measures_release(&measures);
}

/* A file that is read past all calls, straight into pinned memory, and copied: a load that amplifies nothing by 0. */
static void play_unseen(struct scene *scene, bool copied)
{
	PROCESS(ST_POOL_UMA);
	play_load(scene);
	play_file(scene, 2, "/m/x.safetensors", GIB);
	play_tensor(scene, 2, "c", 0, GIB);
	play(scene, RECORD(open, .file = 2));
	READ(2, 0, 4096, 0);
	PIN(PINNED, GIB);
	if (copied)
		COPY(DEVICE, PINNED, GIB);
	EXIT(0);
}

static void test_unseen_without_a_word(void **state)
{
	struct measures measures;
	const struct measure *m;

	play_unseen(*state, true);
	m = measured(*state, &measures);
	assert_int_equal(gaps_of(m), UNSEEN);
	assert_non_null(strstr(m->gaps[METRIC_READ], "/m/x.safetensors"));
	assert_int_equal(m->values[METRIC_READ].hi, UINT64_MAX);
	assert_int_equal(m->values[METRIC_STAGING].lo, GIB);
	assert_int_equal(m->values[METRIC_FACTOR].lo, 0);
	measures_release(&measures);
}

/* Only looked at: nothing of it went anywhere. */
static void test_opened_alone(void **state)
{
	struct measures measures;

	play_unseen(*state, false);
	assert_int_equal(gaps_of(measured(*state, &measures)), 0);
	measures_release(&measures);
}

/* The last part of a pattern stands at the end; what merely holds one is another text. */
static void test_patterns(void **state)
{
	(void)state;
	assert_int_equal(coverage_touches("page cache of /m/a b: c is unknown: Permission denied"), 0);
	assert_int_equal(coverage_touches("file 12: table is wrong at byte 7: no object"), 0);
	assert_int_equal(coverage_touches("/m/x.safetensors.index.json: no object"), 0);
	assert_int_equal(coverage_touches("17 bytes of the ring were torn records"), GATED | BIT(POOL));
	assert_int_equal(coverage_touches("17 bytes of the ring were torn records "), GATED);
	assert_int_equal(coverage_touches("some Python frames could not be read, and more"), GATED);
	assert_int_equal(coverage_touches("file"), GATED);
	assert_int_equal(coverage_touches(""), GATED);
}

/* --- of no use ------------------------------------------------------------------------------------- */

static void test_no_load(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	ALLOC(DEVICE, GIB);
	EXIT(0);
	m = measured(scene, &measures);
	assert_string_equal(m->unusable, "no weights were loaded in it");
	assert_false(m->finished);
	assert_value(m, METRIC_DEVICE, 0, UINT64_MAX);
	assert_int_equal(gaps_of(m), GATED | BIT(POOL));
	measures_release(&measures);
}

/* An event that is lost may have been a release: nothing is proven, but what was sampled stays. */
static void test_lost_events(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	play_load(scene);
	play(scene, RECORD(lost, .count = 3, .bytes = 200));
	EXIT(0);
	m = measured(scene, &measures);
	assert_non_null(strstr(m->unusable, "3 events"));
	assert_value(m, METRIC_DEVICE, 0, UINT64_MAX);
	assert_value(m, METRIC_POOL, 0, 0);
	assert_true(m->unproven);
	measures_release(&measures);
}

/* No trailer and no ring: at least what is there. */
static void test_no_end(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	char *paths[] = {scene->path};

	PROCESS(ST_POOL_UMA);
	play_load(scene);
	assert_int_equal(trace_flush(scene->trace), 0);
	assert_int_equal(measures_read(paths, 1, &measures), 0);
	assert_non_null(strstr(measures.runs->unusable, "has no end"));
	assert_value(measures.runs, METRIC_DEVICE, GIB, UINT64_MAX);
	assert_false(measures.runs->unproven);
	measures_release(&measures);
}

static void test_damaged(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	char *paths[] = {scene->path};
	FILE *file;

	PROCESS(ST_POOL_UMA);
	play_load(scene);
	assert_int_equal(trace_flush(scene->trace), 0);
	EXIT(0);
	assert_int_equal(trace_finish(scene->trace, 0), 0);
	file = fopen(scene->path, "r+");
	assert_non_null(file);
	fseek(file, -40, SEEK_END);
	fwrite("damage", 1, 6, file);
	fclose(file);
	assert_int_equal(measures_read(paths, 1, &measures), 0);
	assert_non_null(strstr(measures.runs->unusable, "damaged"));
	assert_value(measures.runs, METRIC_DEVICE, 0, UINT64_MAX);
	measures_release(&measures);
}

/* A load that was refused half-way is unfinished: what it had is the least. */
static void test_unfinished(void **state)
{
	struct scene *scene = *state;
	struct measures measures;
	const struct measure *m;

	PROCESS(ST_POOL_UMA);
	play_file(scene, 1, "/m/w.safetensors", GIB);
	play(scene, RECORD(open, .file = 1));
	MAP(MAPPED, GIB, PROT_R, .file = 1);
	ALLOC(DEVICE, GIB / 4);
	COPY(DEVICE, MAPPED, GIB / 4);
	ALLOC(DEVICE + GIB, GIB, .result = 2);
	EXIT(1);
	m = measured(scene, &measures);
	assert_false(m->finished);
	assert_null(m->unusable);
	assert_int_equal(m->values[METRIC_DEVICE].lo, GIB / 4);
	measures_release(&measures);
}

static void test_unreadable(void **state)
{
	struct measures measures = {0};
	char *missing[] = {"/nowhere/run.zst"}, *two[] = {"/nowhere/run.zst", "/nowhere/else.zst"};

	(void)state;
	assert_int_equal(measures_read(missing, 1, &measures), -ENOENT);
	assert_int_equal(measures_read(two, 2, &measures), -ENOENT);
	assert_int_equal(measures.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fingerprint),
		TEST(test_allocator_door),
		TEST(test_no_driver),
		TEST(test_relief_refused),
		TEST(test_no_gap),
		TEST(test_gap_of_the_driver),
		TEST(test_gap_of_scans),
		TEST(test_unknown_text),
		TEST(test_uring_beside_a_load),
		TEST(test_uring_in_a_load),
		TEST(test_unseen_without_a_word),
		TEST(test_opened_alone),
		TEST(test_no_load),
		TEST(test_lost_events),
		TEST(test_no_end),
		TEST(test_damaged),
		TEST(test_unfinished),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
