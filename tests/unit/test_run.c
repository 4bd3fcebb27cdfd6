/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the total of a run: what several processes had at one instant, worked out by hand; what two recorders see
 * of the same memory is counted once.
 */
#include "run_pair.h"

static void assert_range(struct range range, uint64_t lo, uint64_t hi)
{
	assert_int_equal(range.lo, lo);
	assert_int_equal(range.hi, hi);
}

static const struct moment *peak_of(const struct run_total *total)
{
	return &total->model->moments[MOMENT_DEMAND_PEAK];
}

/* 3 GiB and 2 GiB, but never at one time: 3 + 0, 1 + 0, 1 + 2. Plus 1 at the very end: 1 + 3 = 4, not 3 + 3. */
static void test_staggered(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	at(1);
	begin(pair, 0, 1);
	begin(pair, 1, 1);
	at(2);
	ALLOC(0, 0, GIB);
	at(3);
	ALLOC(0, 8 * GIB, 2 * GIB);
	at(4);
	FREE(0, 8 * GIB);
	at(5);
	ALLOC(1, 0, 2 * GIB);
	at(6);
	ALLOC(1, 8 * GIB, GIB);
	at(7);
	EXIT(0);
	EXIT(1);
	total = total_of(pair);
	assert_int_equal(total->part_count, 2);
	assert_int_equal(total->model->device_peak, 4 * GIB);
	assert_int_equal(total->model->device_peak_time, 6 * SECONDS);
	assert_range(peak_of(total)->demand, 4 * GIB, 4 * GIB);
	assert_int_equal(peak_of(total)->time, 6 * SECONDS);
	assert_range(total->model->needed.demand, 4 * GIB, 4 * GIB);
	assert_int_equal(total->parts[0].layers.device, GIB);
	assert_int_equal(total->parts[1].layers.device, 3 * GIB);
	assert_int_equal(total->parts[0].most, 3 * GIB);
	assert_int_equal(total->parts[0].most_at, 3 * SECONDS);
	assert_int_equal(total->parts[1].most, 3 * GIB);
}

/* What a process held is gone with it, though no record says so. */
static void test_dead_one_holds_nothing(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	at(1);
	begin(pair, 0, 1);
	begin(pair, 1, 1);
	at(2);
	ALLOC(0, 0, 3 * GIB);
	at(3);
	put(pair, 0, RECORD(exit, .how = ST_EXIT_SIGNALED, .status = 9));
	at(4);
	ALLOC(1, 0, 2 * GIB);
	at(5);
	EXIT(1);
	total = total_of(pair);
	assert_int_equal(total->model->device_peak, 3 * GIB);
	assert_range(peak_of(total)->demand, 3 * GIB, 3 * GIB);
	assert_int_equal(total->model->exit_how, ST_EXIT_SIGNALED);
	assert_true(total->parts[0].there);
	/* The other had begun, and nothing yet. */
	assert_int_equal(total->parts[1].layers.device, 0);
}

/* What stands in a trace before its first event says nothing of when the process came. */
static void test_late_one_was_not_there(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	at(1);
	begin(pair, 0, 1);
	at(2);
	ALLOC(0, 0, 3 * GIB);
	at(3);
	FREE(0, 0);
	at(4);
	begin(pair, 1, 4);
	ALLOC(1, 0, GIB);
	at(5);
	EXIT(0);
	EXIT(1);
	total = total_of(pair);
	assert_range(peak_of(total)->demand, 3 * GIB, 3 * GIB);
	assert_true(total->parts[0].there);
	assert_false(total->parts[1].there);
}

/*
 * Both were there before the first sample. 500 MiB belong to neither. Each rises from 100 MiB, the first by 300, the
 * second by 200: H is 500 MiB, and N is nothing, although each recorder saw the other's rise as N.
 */
static void test_others_are_not_each_other(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;
	const struct layers *layers;

	at(1);
	begin(pair, 0, 1);
	begin(pair, 1, 1);
	at(2);
	sample(pair, 0, 100 * MIB, 600 * MIB, 0);
	sample(pair, 1, 100 * MIB, 600 * MIB + 1, 0);
	at(3);
	sample(pair, 0, 400 * MIB, 600 * MIB, 0);
	sample(pair, 1, 100 * MIB, 900 * MIB, 0);
	at(4);
	sample(pair, 0, 400 * MIB, 800 * MIB, 0);
	sample(pair, 1, 300 * MIB, 900 * MIB + 1, 0);
	at(5);
	ALLOC(0, 0, GIB);
	at(6);
	sample(pair, 0, 400 * MIB, 800 * MIB + 1, 0);
	sample(pair, 1, 300 * MIB, 900 * MIB + 2, 0);
	at(7);
	EXIT(0);
	EXIT(1);
	total = total_of(pair);
	layers = &peak_of(total)->layers;
	assert_int_equal(layers->host.lo, 500 * MIB);
	assert_int_equal(layers->host.hi, 500 * MIB);
	/* Known up to what the recorders' memory is made of. */
	assert_in_range((uint64_t)(layers->others.lo + (int64_t)(4 * RECORDER)), 0, 8 * RECORDER);
	assert_in_range((uint64_t)(layers->others.hi + (int64_t)(4 * RECORDER)), 0, 8 * RECORDER);
	assert_in_range(peak_of(total)->demand.lo, GIB + 500 * MIB, GIB + 504 * MIB);
	assert_in_range(peak_of(total)->demand.hi, GIB + 500 * MIB, GIB + 504 * MIB);
	/* Alone, each of them takes the other for N. */
	assert_in_range(total->parts[0].model->moments[MOMENT_DEMAND_PEAK].layers.others.lo, 200 * MIB,
	                200 * MIB + 1);
}

/*
 * One that began later brings 200 MiB with it; as a copy of its parent it brings only what it rises by, and that is all
 * that others see of it.
 */
static void play_late(struct pair *pair, bool forked)
{
	at(1);
	begin(pair, 0, 1);
	at(2);
	sample(pair, 0, 100 * MIB, 500 * MIB, 0);
	at(3);
	begin(pair, 1, 3);
	if (forked)
		put(pair, 1, record_tail(RECORD(info), "forked_from=10", 14));
	at(4);
	sample(pair, 1, 200 * MIB, 600 * MIB, 0);
	sample(pair, 0, 100 * MIB, forked ? 500 * MIB + 1 : 700 * MIB, 0);
	at(5);
	sample(pair, 1, 250 * MIB, 600 * MIB + 1, 0);
	sample(pair, 0, 100 * MIB, forked ? 550 * MIB : 750 * MIB, 0);
	at(6);
	EXIT(0);
	EXIT(1);
}

static void test_late_one_brings_its_memory(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	play_late(pair, false);
	total = total_of(pair);
	assert_int_equal(peak_of(total)->layers.host.lo, 250 * MIB);
	assert_int_equal(total->parts[1].layers.host.lo, 250 * MIB);
	assert_in_range(peak_of(total)->demand.hi, 250 * MIB, 254 * MIB);
}

static void test_copy_brings_nothing(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	play_late(pair, true);
	total = total_of(pair);
	assert_true(pair->cards[1].forked);
	assert_int_equal(peak_of(total)->layers.host.lo, 50 * MIB);
	assert_in_range(peak_of(total)->demand.hi, 50 * MIB, 54 * MIB);
}

static void play_map(struct pair *pair, int process)
{
	put(pair, process,
	    record_tail(
		    RECORD(file, .id = 1, .dev = 7, .ino = 70, .size = GIB, .format = ST_FILE_SAFETENSORS),
		    process ? "w.safetensors" : "/m/w.safetensors", process ? 13 : 16));
	put(pair, process, RECORD_TENSOR(1, "t", 0, GIB));
	put(pair, process,
	    RECORD(map, .addr = MAPPED, .size = GIB, .prot = PROT_RW, .flags = MAP_PRIV, .file = 1));
}

static void play_copy(struct pair *pair, int process)
{
	ALLOC(process, 0, GIB);
	put(pair, process, RECORD(copy, .dst = DEVICE, .src = MAPPED, .size = GIB, .how = ST_COPY_H2D));
}

static void play_load(struct pair *pair, int process)
{
	play_map(pair, process);
	play_copy(pair, process);
}

/* Each of 16 cells of the file, wholly in the page cache. */
static void look_at_cache(struct pair *pair, int process)
{
	for (uint64_t i = 0; i < GIB / ST_CELL; i++)
		put(pair, process,
		    RECORD(cached, .file = 1, .offset = i * ST_CELL, .size = ST_CELL, .cached = ST_CELL));
}

/*
 * Two ranks copy the same file, by two names, out of private writable mappings: 2 GiB of D and 2 GiB of A, and 1 GiB
 * of page cache.
 */
static void test_shared_cache_once(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;
	const struct layers *layers;

	at(1);
	begin(pair, 0, 1);
	begin(pair, 1, 1);
	at(2);
	sample(pair, 0, 0, 0, 0);
	sample(pair, 1, 0, 0, 0);
	at(3);
	play_load(pair, 0);
	at(4);
	play_load(pair, 1);
	at(5);
	sample(pair, 0, GIB, GIB, 3 * GIB);
	look_at_cache(pair, 0);
	sample(pair, 1, GIB, GIB, 3 * GIB);
	look_at_cache(pair, 1);
	at(6);
	EXIT(0);
	EXIT(1);
	total = total_of(pair);
	layers = &peak_of(total)->layers;
	assert_int_equal(layers->device, 2 * GIB);
	assert_range(layers->anon, 0, 2 * GIB); /* no scan: a prediction */
	assert_range(layers->weight_cache, GIB, GIB);
	assert_range(layers->stale_cache, 2 * GIB, 2 * GIB);
	assert_int_equal(total->file_count, 1);
	assert_int_equal(total->files[0].processes, 2);
	assert_range(total->files[0].cached, GIB, GIB);
	assert_range(total->files[0].on_device, 2 * GIB, 2 * GIB);
	assert_int_equal(total->model->load.weights, 2 * GIB);
	/* What is resident: 2 of D, 2 of A as H and A together, 3 of page cache. */
	assert_in_range(total->model->load.resident.hi, 7 * GIB, 7 * GIB + 4 * MIB);
	assert_in_range(total->model->load.resident.lo, 7 * GIB - 4 * MIB, 7 * GIB + 4 * MIB);
}

/* What the recorder says of where a process comes from. */
static void test_card(void **state)
{
	struct pair *pair = *state;
	struct run_card *cards = pair->cards;

	at(1);
	begin(pair, 0, 1);
	put(pair, 0, record_tail(RECORD(info), "run=7.700 python", 16));
	put(pair, 0, RECORD(child, .pid = 11, .how = ST_CHILD_FORK));
	put(pair, 0, RECORD(child, .pid = 12, .how = ST_CHILD_EXEC));
	begin(pair, 1, 2);
	put(pair, 1, record_tail(RECORD(info), "run=7.700 bash", 14));
	at(3);
	EXIT(0);
	EXIT(1);
	total_of(pair);
	assert_string_equal(cards[0].root, "7.700 python");
	assert_false(cards[0].shell);
	assert_true(cards[1].shell);
	assert_string_equal(cards[0].keys[RUN_KEY_PORT], "29500");
	assert_int_equal(cards[0].child_count, 1);
	assert_int_equal(cards[0].children[0], 11);
	assert_string_equal(cards[0].boot_id, "one-boot");
	assert_int_equal(cards[1].start, 2 * SECONDS);
	assert_int_equal(cards[1].gone, 3 * SECONDS);
}

/* The recorder tells the pool's class anew when a driver shows itself: a glance at the trace and all of it are one. */
static void test_card_told_again(void **state)
{
	struct pair *pair = *state;
	struct run_card glance;

	at(1);
	begin(pair, 0, 1);
	at(2);
	put(pair, 0, RECORD(process, .pid = 10, .ppid = 1, .pool = ST_POOL_SIMULATED, .start = SECONDS - 10));
	begin(pair, 1, 2);
	total_of(pair);
	assert_int_equal(card_glance(pair->paths[0], &glance), 0);
	assert_int_equal(glance.start, SECONDS);
	assert_int_equal(pair->cards[0].start, SECONDS);
	assert_int_equal(pair->cards[0].ppid, 9);
	card_release(&glance);
}

/* A load that begins before its process is sampled for the first time: what was imported by then is no part of it. */
static void test_load_without_imports(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	at(1);
	begin(pair, 0, 1);
	at(2);
	sample(pair, 0, 100 * MIB, 500 * MIB, 0);
	at(3);
	begin(pair, 1, 3);
	at(4);
	play_map(pair, 1);
	at(5);
	sample(pair, 1, 200 * MIB, 600 * MIB, 0);
	at(6);
	play_copy(pair, 1);
	at(7);
	sample(pair, 1, 200 * MIB + GIB, 600 * MIB + 1, 0);
	at(8);
	EXIT(0);
	EXIT(1);
	total = total_of(pair);
	assert_in_range(peak_of(total)->demand.hi, 2 * GIB + 200 * MIB, 2 * GIB + 204 * MIB);
	assert_in_range(total->model->load.demand.hi, 2 * GIB, 2 * GIB + 4 * MIB);
	assert_in_range(total->model->load.demand.lo, 2 * GIB - 4 * MIB, 2 * GIB + 4 * MIB);
}

/* One dies with 1 of 2 GiB loaded, while the other holds 2: both together would have needed 4 at least. */
static void test_dead_load_needs_its_rest(void **state)
{
	struct pair *pair = *state;
	const struct run_total *total;

	at(1);
	begin(pair, 0, 1);
	begin(pair, 1, 1);
	at(2);
	ALLOC(1, 0, 2 * GIB);
	at(3);
	put(pair, 0,
	    record_tail(RECORD(file, .id = 1, .ino = 1, .size = 2 * GIB, .format = ST_FILE_SAFETENSORS), "/w",
	                2));
	put(pair, 0, RECORD_TENSOR(1, "a", 0, GIB));
	put(pair, 0, RECORD_TENSOR(1, "b", GIB, GIB));
	put(pair, 0,
	    RECORD(map, .addr = MAPPED, .size = 2 * GIB, .prot = PROT_R, .flags = MAP_SHARE, .file = 1));
	ALLOC(0, 0, GIB);
	put(pair, 0, RECORD(copy, .dst = DEVICE, .src = MAPPED, .size = GIB, .how = ST_COPY_H2D));
	put(pair, 0, RECORD(device_alloc, .size = GIB, .result = 2));
	at(4);
	put(pair, 0, RECORD(exit, .how = ST_EXIT_EXITED, .status = 1));
	at(5);
	EXIT(1);
	total = total_of(pair);
	assert_range(peak_of(total)->demand, 3 * GIB, 3 * GIB);
	assert_int_equal(total->model->needed.died_in, PHASE_LOAD);
	assert_int_equal(total->model->needed.demand.lo, 4 * GIB);
	assert_true(total->model->needed.lower_bound);
	assert_int_equal(total->model->failure_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_staggered),
		TEST(test_dead_one_holds_nothing),
		TEST(test_late_one_was_not_there),
		TEST(test_others_are_not_each_other),
		TEST(test_late_one_brings_its_memory),
		TEST(test_copy_brings_nothing),
		TEST(test_shared_cache_once),
		TEST(test_load_without_imports),
		TEST(test_card),
		TEST(test_card_told_again),
		TEST(test_dead_load_needs_its_rest),
	};

	return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
