/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the measuring of several processes: their peaks are those of the sum at one instant, and so are their parts. */
#include <analyzer/measure.h>
#include "run_pair.h"

#define HEAP (300 * GIB)

static const struct measure *measured(struct pair *pair, struct measures *ret_measures)
{
	char *paths[] = {pair->paths[1], pair->paths[0]};

	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(trace_finish(pair->traces[i], 0), 0);
	assert_int_equal(measures_read(paths, PROCESSES, ret_measures), 0);
	assert_int_equal(ret_measures->count, 1);
	assert_non_null(ret_measures->runs->total);
	return ret_measures->runs;
}

static void assert_exact(const struct measure *measure, enum metric metric, uint64_t value)
{
	assert_int_equal(measure->values[metric].lo, value);
	assert_int_equal(measure->values[metric].hi, value);
}

static uint64_t part_of(const struct measure *m, int process, enum load_peak peak, enum load_part_kind kind)
{
	const struct model *model = m->total->parts[process].model;

	for (size_t i = 0; i < model->load_part_count; i++)
		if (model->load_parts[i].peak == peak && model->load_parts[i].kind == kind)
			return model->load_parts[i].bytes.hi;
	return 0;
}

#define MAP(process_, size_) \
	put(pair, process_,  \
	    RECORD(map, .addr = MAPPED, .size = (size_), .prot = PROT_R, .flags = MAP_PRIV, .file = 1))
#define UNMAP(process_, size_)       put(pair, process_, RECORD(unmap, .addr = MAPPED, .size = (size_)))
#define HOST(process_, addr_, size_) put(pair, process_, RECORD(alloc, .addr = (addr_), .size = (size_)))
#define HOST_FREE(process_, addr_)   put(pair, process_, RECORD(free, .addr = (addr_)))

static void begin_both(struct pair *pair)
{
	at(1);
	for (int i = 0; i < PROCESSES; i++) {
		begin(pair, i, 1);
		put(pair, i, RECORD_FILE(1, i ? "/m/b.safetensors" : "/m/a.safetensors", GIB));
	}
}

/*
 * Host blocks of 3 and 2 GiB that are never there together, then 1 and 2: the peak is 3 + 0, then 1 + 2 + 1 = 4. Of
 * the device 1 + 2 = 3 while process 0 had 2 by itself.
 */
static void test_one_instant(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	const struct measure *m;

	begin_both(pair);
	at(2);
	MAP(0, GIB);
	at(3);
	HOST(0, HEAP, 3 * GIB);
	ALLOC(0, 0, 2 * GIB);
	at(4);
	HOST_FREE(0, HEAP);
	FREE(0, 0);
	at(5);
	HOST(0, HEAP, GIB);
	ALLOC(0, 0, GIB);
	UNMAP(0, GIB);
	at(6);
	MAP(1, GIB);
	at(7);
	HOST(1, HEAP, 2 * GIB);
	ALLOC(1, 0, 2 * GIB);
	at(8);
	HOST(1, HEAP + 4 * GIB, GIB);
	at(9);
	EXIT(0);
	EXIT(1);
	m = measured(pair, &measures);
	assert_exact(m, METRIC_HOST, 4 * GIB);
	assert_exact(m, METRIC_DEVICE, 3 * GIB);
	assert_exact(m, METRIC_MAPPED, GIB);
	assert_int_equal(part_of(m, 0, LOAD_PEAK_HOST, LOAD_PART_STACK), GIB);
	assert_int_equal(part_of(m, 1, LOAD_PEAK_HOST, LOAD_PART_STACK), 3 * GIB);
	assert_int_equal(part_of(m, 0, LOAD_PEAK_DEVICE, LOAD_PART_STACK), GIB);
	assert_int_equal(part_of(m, 1, LOAD_PEAK_DEVICE, LOAD_PART_STACK), 2 * GIB);
	assert_int_equal(part_of(m, 0, LOAD_PEAK_MAPPED, LOAD_PART_FILE), GIB);
	assert_int_equal(part_of(m, 1, LOAD_PEAK_MAPPED, LOAD_PART_FILE), 0);
	assert_int_equal(m->fingerprint.processes, 2);
	assert_int_equal(m->weights, 2 * GIB);
	assert_int_equal(m->scale.mappings, 1);
	measures_release(&measures);
}

/* One that is dead at the peak has no part in it, whatever it had before. */
static void test_dead_at_the_peak(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	const struct measure *m;

	begin_both(pair);
	at(2);
	MAP(0, GIB);
	HOST(0, HEAP, GIB);
	at(3);
	EXIT(0);
	at(4);
	MAP(1, GIB);
	HOST(1, HEAP, 2 * GIB);
	at(5);
	EXIT(1);
	m = measured(pair, &measures);
	assert_exact(m, METRIC_HOST, 2 * GIB);
	assert_int_equal(part_of(m, 0, LOAD_PEAK_HOST, LOAD_PART_STACK), 0);
	assert_int_equal(part_of(m, 1, LOAD_PEAK_HOST, LOAD_PART_STACK), 2 * GIB);
	measures_release(&measures);
}

/* One that comes only after a first peak has its part in the next. */
static void test_later_peak(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	const struct measure *m;

	at(1);
	begin(pair, 0, 1);
	put(pair, 0, RECORD_FILE(1, "/m/a.safetensors", GIB));
	at(2);
	MAP(0, GIB);
	HOST(0, HEAP, 2 * GIB);
	at(3);
	begin(pair, 1, 3);
	put(pair, 1, RECORD_FILE(1, "/m/b.safetensors", GIB));
	at(4);
	MAP(1, GIB);
	HOST(1, HEAP, 3 * GIB);
	at(5);
	EXIT(0);
	EXIT(1);
	m = measured(pair, &measures);
	assert_exact(m, METRIC_HOST, 5 * GIB);
	assert_int_equal(part_of(m, 0, LOAD_PEAK_HOST, LOAD_PART_STACK), 2 * GIB);
	assert_int_equal(part_of(m, 1, LOAD_PEAK_HOST, LOAD_PART_STACK), 3 * GIB);
	assert_int_equal(part_of(m, 1, LOAD_PEAK_MAPPED, LOAD_PART_FILE), GIB);
	measures_release(&measures);
}

/* Bytes read are the sum, by the weights of all. */
static void test_sums(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	const struct measure *m;

	begin_both(pair);
	at(2);
	put(pair, 0, RECORD(read, .file = 1, .size = GIB, .how = ST_READ_PREAD));
	put(pair, 1, RECORD(read, .file = 1, .size = GIB / 2, .how = ST_READ_PREAD));
	at(3);
	EXIT(0);
	EXIT(1);
	m = measured(pair, &measures);
	assert_exact(m, METRIC_READ, METRIC_RATIO_ONE * 3 / 4);
	assert_int_equal(m->fingerprint.threads, 2);
	measures_release(&measures);
}

/* The same two named one by one are two runs of one process each, and in the order of their names where they differ. */
static void test_alone(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	char *paths[] = {pair->paths[1]};

	begin_both(pair);
	at(2);
	MAP(1, GIB);
	at(3);
	EXIT(0);
	EXIT(1);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(trace_finish(pair->traces[i], 0), 0);
	assert_int_equal(measures_read(paths, 1, &measures), 0);
	assert_int_equal(measures.count, 1);
	assert_null(measures.runs->total);
	assert_non_null(measures.runs->reader);
	assert_string_equal(measures.runs->path, pair->paths[1]);
	assert_int_equal(measures.runs->fingerprint.processes, 1);
	measures_release(&measures);
}

/* Each has its header mapped for a moment: whether both have so at once is chance, though all files stay to the end. */
static void test_headers_of_several(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	const struct measure *m;

	begin_both(pair);
	for (int i = 0; i < PROCESSES; i++) {
		at(2 + 3 * (uint64_t)i);
		put(pair, i,
		    RECORD(map, .addr = HEAP, .size = GIB, .prot = PROT_RW, .flags = MAP_PRIV, .file = 1));
		MAP(i, GIB);
		at(3 + 3 * (uint64_t)i);
		put(pair, i, RECORD(unmap, .addr = HEAP, .size = GIB));
		at(4 + 3 * (uint64_t)i);
		ALLOC(i, 0, GIB);
		put(pair, i, RECORD(copy, .dst = DEVICE, .src = MAPPED, .size = GIB, .how = ST_COPY_H2D));
	}
	at(9);
	EXIT(0);
	EXIT(1);
	m = measured(pair, &measures);
	assert_exact(m, METRIC_MAPPED, 3 * GIB);
	/* In step it would have been 4. */
	assert_true(metric_tolerance(METRIC_MAPPED, 3 * GIB, &m->scale) >= GIB);
	measures_release(&measures);
}

/* A trace that is named twice (run.zst run*.zst) is no second process, and no second run. */
static void test_named_twice(void **state)
{
	struct pair *pair = *state;
	struct measures measures;
	char *paths[] = {pair->paths[0], pair->paths[0], pair->paths[1], pair->paths[0], pair->paths[1]};

	begin_both(pair);
	at(2);
	HOST(0, HEAP, GIB);
	HOST(1, HEAP, GIB);
	at(3);
	EXIT(0);
	EXIT(1);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(trace_finish(pair->traces[i], 0), 0);
	assert_int_equal(measures_read(paths, 2, &measures), 0);
	assert_int_equal(measures.count, 1);
	assert_int_equal(measures.runs->fingerprint.processes, 1);
	measures_release(&measures);
	assert_int_equal(measures_read(paths, 5, &measures), 0);
	assert_int_equal(measures.count, 1);
	assert_int_equal(measures.runs->fingerprint.processes, 2);
	measures_release(&measures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_instant), TEST(test_dead_at_the_peak),
		TEST(test_later_peak),  TEST(test_sums),
		TEST(test_alone),       TEST(test_headers_of_several),
		TEST(test_named_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
