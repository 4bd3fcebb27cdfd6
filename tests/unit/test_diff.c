/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what is called a difference between two runs: not what is noise, nothing that intervals leave open, everything
 * that is beyond both; and that a script is told the same.
 */
#include <analyzer/commands.h>
#include <analyzer/diff.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "diff_scene.h"

static void test_nothing(void **state)
{
	assert_string_equal(compared(*state)->verdict, "nothing changed above the noise");
	assert_int_equal(((struct pair *)*state)->diff.note_count, 0);
}

static void test_noise(void **state)
{
	struct range gib = range_of(GIB), small = range_of(10 * MIB);

	/* 1 MiB, and 0.1 %: of 1 GiB that is 1.02 MiB. */
	assert_int_equal(state_of(*state, METRIC_DEVICE, small, range_of(11 * MIB)), DIFF_SAME);
	assert_int_equal(state_of(*state, METRIC_DEVICE, small, range_of(11 * MIB + 1)), DIFF_GREW);
	assert_int_equal(state_of(*state, METRIC_DEVICE, small, range_of(9 * MIB - 1)), DIFF_SHRANK);
	assert_int_equal(state_of(*state, METRIC_DEVICE, gib, range_of(GIB + MIB + 1)), DIFF_SAME);
	assert_int_equal(state_of(*state, METRIC_DEVICE, gib, range_of(GIB + GIB / 1000 + 1)), DIFF_GREW);
	assert_int_equal(state_of(*state, METRIC_FACTOR, range_of(10000), range_of(10010)), DIFF_SAME);
	assert_int_equal(state_of(*state, METRIC_FACTOR, range_of(10000), range_of(10011)), DIFF_GREW);
	/* What is sampled has the tolerance of its metric. */
	assert_int_equal(state_of(*state, METRIC_POOL, gib, range_of(3 * GIB)), DIFF_SAME);
	assert_int_equal(state_of(*state, METRIC_POOL, gib, range_of(3 * GIB + 1)), DIFF_GREW);
}

/* A tensor for each thread may be staged, or not, at the instant of the peak. */
static void test_scheduling(void **state)
{
	struct pair *pair = *state;
	struct range gib = range_of(GIB), more = range_of(GIB + 512 * MIB);

	assert_int_equal(state_of(pair, METRIC_STAGING, gib, more), DIFF_GREW);
	pair->measures[0].scale.threads = pair->measures[1].scale.threads = 2;
	assert_int_equal(state_of(pair, METRIC_STAGING, gib, more), DIFF_SAME);
	assert_int_equal(state_of(pair, METRIC_STAGING, gib, range_of(GIB + 514 * MIB)), DIFF_GREW);
	/* Device memory by a segment of the allocator. */
	assert_int_equal(state_of(pair, METRIC_DEVICE, gib, range_of(GIB + 40 * MIB)), DIFF_SAME);
	assert_int_equal(state_of(pair, METRIC_DEVICE, gib, range_of(GIB + 44 * MIB)), DIFF_GREW);
	/* What was not there is no matter of scheduling. */
	assert_int_equal(state_of(pair, METRIC_STAGING, range_of(0), range_of(2 * MIB)), DIFF_GREW);
	assert_int_equal(state_of(pair, METRIC_STAGING, range_of(100 * MIB), range_of(0)), DIFF_SHRANK);
	assert_int_equal(state_of(pair, METRIC_STAGING, range_of(100 * MIB), range_of(203 * MIB)), DIFF_GREW);
}

/* Files come and go with two threads: one of them more may be there, unless it stays. */
static void test_scheduling_of_files(void **state)
{
	struct pair *pair = *state;
	struct range gib = range_of(GIB);

	assert_int_equal(state_of(pair, METRIC_MAPPED, gib, range_of(GIB + 512 * MIB)), DIFF_GREW);
	pair->measures[0].scale.threads = pair->measures[1].scale.threads = 2;
	assert_int_equal(state_of(pair, METRIC_MAPPED, gib, range_of(GIB + 512 * MIB)), DIFF_SAME);
	assert_int_equal(state_of(pair, METRIC_MAPPED, gib, range_of(GIB + 514 * MIB)), DIFF_GREW);
	assert_int_equal(state_of(pair, METRIC_ANON, range_of(0), range_of(2 * MIB)), DIFF_GREW);
	/* Which one is mapped when most is: no difference while the whole is the same. */
	part(pair, 0, METRIC_MAPPED, PART_FILE, "a", 600 * MIB);
	part(pair, 1, METRIC_MAPPED, PART_FILE, "b", 600 * MIB);
	state_of(pair, METRIC_MAPPED, gib, gib);
	assert_int_equal(pair->diff.load.count, 0);
	assert_int_equal(pair->diff.load.moved, 2);
	state_of(pair, METRIC_MAPPED, gib, range_of(2 * GIB));
	assert_int_equal(pair->diff.load.count, 2);
	pair->measures[0].scale.released = pair->measures[1].scale.released = 0;
	assert_int_equal(state_of(pair, METRIC_MAPPED, gib, range_of(GIB + 512 * MIB)), DIFF_GREW);
}

static void test_intervals(void **state)
{
	struct range open = {GIB, UINT64_MAX}, wide = {0, 2 * GIB}, high = {3 * GIB, 4 * GIB};

	assert_int_equal(state_of(*state, METRIC_ANON, wide, wide), DIFF_CANNOT_TELL);
	assert_int_equal(state_of(*state, METRIC_ANON, wide, high), DIFF_GREW);
	assert_int_equal(state_of(*state, METRIC_ANON, high, wide), DIFF_SHRANK);
	assert_int_equal(state_of(*state, METRIC_ANON, range_of(0), open), DIFF_GREW);
	assert_int_equal(state_of(*state, METRIC_ANON, open, range_of(0)), DIFF_SHRANK);
	assert_int_equal(state_of(*state, METRIC_ANON, open, range_of(2 * GIB)), DIFF_CANNOT_TELL);
	assert_int_equal(state_of(*state, METRIC_ANON, RANGE_UNKNOWN, range_of(0)), DIFF_CANNOT_TELL);
	assert_non_null(
		strstr(((struct pair *)*state)->diff.verdict, "cannot tell of load_anonymous_copy_peak"));
	/* What is certain of it counts. */
	state_of(*state, METRIC_ANON, wide, high);
	assert_int_equal(((struct pair *)*state)->diff.peaks[METRIC_ANON].change.lo, (int64_t)GIB);
	assert_int_equal(((struct pair *)*state)->diff.peaks[METRIC_ANON].change.hi, (int64_t)(4 * GIB));
}

static void test_verdict(void **state)
{
	struct pair *pair = *state;

	part(pair, 0, METRIC_ANON, PART_FILE, "a.bin", 0);
	part(pair, 1, METRIC_ANON, PART_FILE, "a.bin", 512 * MIB);
	part(pair, 1, METRIC_ANON, PART_TENSOR, "w", 512 * MIB);
	part(pair, 1, METRIC_ANON, PART_STACK, "map < load_file < main < <module>", 512 * MIB);
	pair->measures[1].values[METRIC_MODELLED] = range_of(GIB + 512 * MIB);
	pair->measures[1].values[METRIC_MAPPED] = range_of(8 * GIB);
	/* The sum and address space do not come before what is in it. */
	state_of(pair, METRIC_ANON, range_of(0), range_of(512 * MIB));
	assert_string_equal(
		pair->diff.verdict,
		"+512.0 MiB load_anonymous_copy_peak: 0 bytes -> 512.0 MiB; file a.bin; tensor w; "
		"stack map < load_file");
	state_of(pair, METRIC_DEVICE, range_of(4 * GIB), range_of(2 * GIB));
	assert_string_equal(pair->diff.verdict, "-2.00 GiB load_device_peak: 4.00 GiB -> 2.00 GiB");
}

/* Of three threads: a tensor more is within what an allocator's segments move, but it is there. */
static void test_verdict_of_a_part(void **state)
{
	struct pair *pair = *state;

	pair->measures[0].scale.threads = pair->measures[1].scale.threads = 3;
	part(pair, 0, METRIC_DEVICE, PART_STACK, "alloc < load", GIB);
	part(pair, 1, METRIC_DEVICE, PART_STACK, "alloc < load", GIB + 40 * MIB);
	part(pair, 1, METRIC_DEVICE, PART_TENSOR, "head", 40 * MIB);
	state_of(pair, METRIC_DEVICE, range_of(GIB), range_of(GIB + 40 * MIB));
	assert_string_equal(
		pair->diff.verdict,
		"+40.0 MiB tensor head: 0 bytes -> 40.0 MiB of load_device_peak, which is the same "
		"within the noise");
}

static void test_parts_by_bytes(void **state)
{
	struct pair *pair = *state;

	part(pair, 0, METRIC_HOST, PART_FILE, "gone", 300 * MIB);
	part(pair, 0, METRIC_HOST, PART_FILE, "kept", 5 * MIB);
	part(pair, 1, METRIC_HOST, PART_FILE, "kept", 5 * MIB + 100);
	part(pair, 1, METRIC_HOST, PART_FILE, "new", 200 * MIB);
	part(pair, 1, METRIC_HOST, PART_FILE, "newer", 300 * MIB);
	compared(pair);
	assert_int_equal(pair->diff.load.count, 3);
	assert_int_equal(pair->diff.load.small, 1);
	assert_string_equal(pair->diff.load.parts[0].growth->name, "newer");
	assert_string_equal(pair->diff.load.parts[1].growth->name, "gone");
	assert_string_equal(pair->diff.load.parts[2].growth->name, "new");
}

static int status_on(struct pair *pair, const char *fail_on)
{
	char *argv[] = {"diff", "--fail-on", (char *)fail_on, "a", "b", NULL};
	int first;

	assert_int_equal(diff_options_parse(5, argv, &pair->options, &first), 0);
	assert_int_equal(first, 3);
	return compared(pair)->status;
}

static void test_fail_on(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(status_on(pair, "0"), COMMAND_OK);
	/* Noise is no growth, whatever is asked for. */
	pair->measures[1].values[METRIC_HOST] = range_of(GIB + MIB);
	assert_int_equal(status_on(pair, "0"), COMMAND_OK);
	pair->measures[1].values[METRIC_HOST] = range_of(GIB + 100 * MIB);
	assert_int_equal(status_on(pair, "100MiB"), COMMAND_OK);
	assert_int_equal(status_on(pair, "99MiB"), COMMAND_OVER);
	assert_int_equal(status_on(pair, "load_device_peak=1MiB"), COMMAND_OK);
	assert_int_equal(status_on(pair, "load_host_peak=1MiB"), COMMAND_OVER);
	assert_string_equal(pair->diff.failures[0], "load_host_peak grew by more than 1.0 MiB: +100.0 MiB");
	/* Its own tolerance is max(5 %, 64 MiB). */
	assert_int_equal(status_on(pair, "load_host_peak"), COMMAND_OVER);
	pair->measures[1].values[METRIC_HOST] = range_of(GIB + 64 * MIB);
	assert_int_equal(status_on(pair, "load_host_peak"), COMMAND_OK);
	pair->measures[1].values[METRIC_FACTOR] = range_of(10201);
	assert_int_equal(status_on(pair, "load_factor"), COMMAND_OVER);
	assert_int_equal(status_on(pair, "load_factor=0.03"), COMMAND_OK);
	pair->models[1].device_peak = 8 * GIB;
	assert_int_equal(status_on(pair, "1GiB"), COMMAND_OVER);
	assert_int_equal(status_on(pair, "load_device_peak"), COMMAND_OK);
}

static void test_fail_on_cannot_tell(void **state)
{
	struct pair *pair = *state;

	assert_int_equal(status_on(pair, "pool_peak"), COMMAND_CANNOT_TELL);
	pair->measures[1].values[METRIC_ANON] = (struct range){GIB, 2 * GIB};
	assert_int_equal(status_on(pair, "10MiB"), COMMAND_CANNOT_TELL);
	assert_int_equal(status_on(pair, "load_host_peak"), COMMAND_OK);
	/* What is found outweighs what cannot be told. */
	pair->measures[1].values[METRIC_HOST] = range_of(2 * GIB);
	assert_int_equal(status_on(pair, "10MiB"), COMMAND_OVER);
	pair->measures[1].gaps[METRIC_DEVICE] = "not seen";
	assert_int_equal(status_on(pair, "load_device_peak"), COMMAND_CANNOT_TELL);
	assert_non_null(strstr(pair->diff.failures[0], "not seen"));
	pair->measures[1].unusable = "events were lost";
	assert_int_equal(status_on(pair, "load_staging_peak"), COMMAND_CANNOT_TELL);
	/* More than that was proven before the loss; but of the baseline more may have been lost. */
	assert_int_equal(status_on(pair, "load_host_peak"), COMMAND_OVER);
	pair->measures[1].unusable = NULL;
	pair->measures[0].unusable = "events were lost";
	assert_int_equal(status_on(pair, "load_host_peak"), COMMAND_CANNOT_TELL);
}

/* A release that was lost would have made the run's peaks lower: neither of them is proven then. */
static void test_run_peaks_unproven(void **state)
{
	struct pair *pair = *state;
	char text[] = "the trace says: a second driver library";

	pair->models[1].device_peak = 8 * GIB;
	pair->models[1].pinned_peak = 8 * GIB;
	pair->measures[1].unproven = true;
	pair->measures[1].unusable = "events were lost";
	for (int i = 0; i < METRIC_COUNT; i++)
		pair->measures[1].values[i] = RANGE_UNKNOWN;
	assert_int_equal(status_on(pair, "1GiB"), COMMAND_CANNOT_TELL);
	assert_int_equal(pair->diff.peaks[DIFF_RUN_DEVICE].state, DIFF_CANNOT_TELL);
	assert_int_equal(pair->diff.peaks[DIFF_RUN_PINNED].state, DIFF_CANNOT_TELL);
	assert_non_null(strstr(pair->diff.verdict, "cannot tell: after.zst: events were lost"));
	/* Of the run before, too. */
	pair->measures[1] = pair->measures[0];
	pair->measures[1].model = &pair->models[1];
	pair->measures[0].unproven = true;
	assert_int_equal(status_on(pair, "1GiB"), COMMAND_CANNOT_TELL);
	/* What says that the driver was not seen is said of them. */
	pair->measures[0].gaps[METRIC_DEVICE] = text;
	assert_int_equal(status_on(pair, "1GiB"), COMMAND_CANNOT_TELL);
	assert_string_equal(pair->diff.peaks[DIFF_RUN_DEVICE].gap, text);
	pair->measures[0].gaps[METRIC_DEVICE] = NULL;
	pair->measures[0].unproven = false;
	assert_int_equal(status_on(pair, "1GiB"), COMMAND_OVER);
}

/* Of a run that goes on more may come: as much as was seen is proven, no more. */
static void test_run_peaks_unfinished(void **state)
{
	struct pair *pair = *state;

	pair->models[0].load.present = true;
	pair->measures[0].values[METRIC_DEVICE].hi = UINT64_MAX;
	pair->models[1].device_peak = 8 * GIB;
	assert_int_equal(compared(pair)->peaks[DIFF_RUN_DEVICE].state, DIFF_CANNOT_TELL);
	pair->models[1].load.present = true;
	pair->measures[1].values[METRIC_DEVICE].hi = UINT64_MAX;
	pair->models[0].load.present = false;
	assert_int_equal(compared(pair)->peaks[DIFF_RUN_DEVICE].state, DIFF_GREW);
}

/* Parts of what is not proven are not said, and never to be of a peak that is the same. */
static void test_parts_unproven(void **state)
{
	struct pair *pair = *state;
	char name[] = "a.bin";

	part(pair, 1, METRIC_DEVICE, PART_FILE, name, 100 * MIB);
	pair->measures[1].values[METRIC_DEVICE] = RANGE_UNKNOWN;
	assert_null(strstr(compared(pair)->verdict, "the same within"));
	pair->measures[1].unproven = true;
	assert_int_equal(compared(pair)->load.count, 0);
	assert_int_equal(pair->diff.load.unclear, 1);
}

/* What differs does not read alike. */
static void test_close_values(void **state)
{
	struct pair *pair = *state;
	char name[] = "a.bin";

	pair->measures[1].values[METRIC_DEVICE] = range_of(GIB + 4 * MIB);
	assert_string_equal(compared(pair)->verdict,
	                    "+4.0 MiB load_device_peak: 1073741824 bytes -> 1077936128 bytes");
	assert_int_equal(status_on(pair, "1MiB"), COMMAND_OVER);
	assert_string_equal(pair->diff.failures[0], "load_device_peak grew by more than 1.0 MiB: +4.0 MiB");
	pair->measures[1].values[METRIC_DEVICE] = range_of(GIB);
	part(pair, 0, METRIC_ANON, PART_FILE, name, GIB);
	part(pair, 1, METRIC_ANON, PART_FILE, name, GIB + 4 * MIB);
	assert_non_null(strstr(compared(pair)->verdict, "a.bin: 1073741824 bytes -> 1077936128 bytes of"));
}

static void test_wrong_options(void **state)
{
	static const char *const wrong[] = {
		"", "load_x", "load_x=1", "load_factor=x", "load_host_peak=", "-1", "=1", "load_factor=-1"};
	struct diff_options options;
	int first, said = dup(STDERR_FILENO);

	(void)state;
	assert_non_null(freopen("/dev/null", "w", stderr));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *argv[] = {"diff", "--fail-on", (char *)wrong[i], NULL};

		if (!diff_options_parse(3, argv, &options, &first))
			fail_msg("\"%s\" was taken", wrong[i]);
	}
	dup2(said, STDERR_FILENO);
	close(said);
}

static void test_notes(void **state)
{
	struct measure_version old[] = {{"safetensors", "0.7.0"}, {"torch", "2.15.0"}};
	struct measure_version new[] = {{"fastsafetensors", "0.1"}, {"safetensors", "0.8.0"}};
	struct pair *pair = *state;
	const struct diff *diff;

	pair->measures[0].versions = old;
	pair->measures[1].versions = new;
	pair->measures[0].version_count = pair->measures[1].version_count = 2;
	pair->measures[1].fingerprint.device = "simulated";
	pair->measures[1].fingerprint.page_size = 65536;
	pair->measures[1].weights = 5 * GIB;
	pair->measures[1].uncounted = 65 * MIB;
	pair->measures[1].finished = false;
	diff = compared(pair);
	assert_int_equal(diff->note_count, 8);
	assert_string_equal(diff->notes[0],
	                    "after.zst: the load did not come to its end, its peaks may have been higher");
	assert_string_equal(diff->notes[1], "another kind of device: unified -> simulated");
	assert_string_equal(diff->notes[2], "another page size: 4096 bytes -> 65536 bytes");
	assert_string_equal(diff->notes[3], "fastsafetensors 0.1 loads now, and did not before");
	assert_string_equal(diff->notes[4], "safetensors 0.7.0 -> 0.8.0");
	assert_string_equal(diff->notes[5], "torch 2.15.0 loaded before, and no more");
	assert_string_equal(diff->notes[6], "the weights are not the same: 4.00 GiB -> 5.00 GiB");
}

/* Both forms, of values that are known, half known and not at all: valid JSON, and every unknown is null. */
static void test_json(void **state)
{
	struct pair *pair = *state;
	const json_t *rows, *row;
	json_t *root;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	pair->measures[1].values[METRIC_ANON] = (struct range){2 * GIB, UINT64_MAX};
	pair->measures[0].values[METRIC_HOST] = RANGE_UNKNOWN;
	pair->measures[0].values[METRIC_FACTOR] = RANGE_UNKNOWN;
	part(pair, 1, METRIC_ANON, PART_FILE, "a \"quoted\" \\ name", 512 * MIB);
	assert_int_equal(diff_write(out, compared(pair), EMIT_JSON), 0);
	fclose(out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	rows = json_object_get(json_object_get(root, "peaks"), "rows");
	assert_int_equal(json_array_size(rows), DIFF_PEAKS);
	row = json_array_get(rows, METRIC_ANON);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "change"), "low_bytes")),
	                 GIB);
	assert_true(json_is_null(json_object_get(json_object_get(row, "change"), "high_bytes")));
	assert_true(json_is_null(json_object_get(json_object_get(row, "after"), "high_bytes")));
	assert_true(json_is_null(json_object_get(json_array_get(rows, METRIC_HOST), "before")));
	assert_true(json_is_null(json_object_get(json_array_get(rows, METRIC_FACTOR), "before_low")));
	assert_string_equal(json_string_value(json_object_get(json_object_get(root, "verdict"), "text")),
	                    pair->diff.verdict);
	json_decref(root);
	free(text);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing),
		TEST(test_noise),
		TEST(test_scheduling),
		TEST(test_scheduling_of_files),
		TEST(test_intervals),
		TEST(test_verdict),
		TEST(test_verdict_of_a_part),
		TEST(test_parts_by_bytes),
		TEST(test_fail_on),
		TEST(test_fail_on_cannot_tell),
		TEST(test_run_peaks_unproven),
		TEST(test_run_peaks_unfinished),
		TEST(test_parts_unproven),
		TEST(test_close_values),
		TEST(test_wrong_options),
		TEST(test_notes),
		TEST(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
