/* SPDX-License-Identifier: Apache-2.0 */
/* Two traces of one run, made record by record, and their total, for the tests of run_*.c. */
#ifndef SPARKTRACE_TEST_RUN_PAIR_H
#define SPARKTRACE_TEST_RUN_PAIR_H

#include <analyzer/model.h>
#include <analyzer/run.h>
#include <preload/recorder/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "records.h"

#define SECONDS   UINT64_C(1000000000)
#define DEVICE    (200 * GIB)
#define MAPPED    (100 * GIB)
#define PROCESSES 2
#define RECORDER  MIB /* RssAnon + RssShmem of each recorder; its ring is not known, so all may be either */

/* Two traces, and the total of what is in them. */
struct pair {
	char paths[PROCESSES][200];
	struct trace *traces[PROCESSES];
	struct run_card cards[PROCESSES];
	struct run_total *total;
};

static inline int pair_up(void **state)
{
	static unsigned number;
	struct pair *pair = calloc(1, sizeof(*pair));
	const char *folder = getenv("T");

	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct st_file_head head = {.major = ST_FORMAT_MAJOR,
		                            .minor = ST_FORMAT_MINOR,
		                            .pid = 10 + i,
		                            .boot_id = "one-boot"};

		memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
		snprintf(pair->paths[i], sizeof(pair->paths[i]), "%s/run.%d.%u", folder ? folder : "/tmp",
		         (int)getpid(), number++);
		unlink(pair->paths[i]);
		assert_int_equal(trace_create(pair->paths[i], &head, NULL, &pair->traces[i]), 0);
	}
	record_now = (struct st_record){.thread = 1};
	*state = pair;
	return 0;
}

static inline int pair_down(void **state)
{
	struct pair *pair = *state;

	run_total_free(pair->total);
	for (int i = 0; i < PROCESSES; i++) {
		card_release(&pair->cards[i]);
		trace_free(pair->traces[i]);
		unlink(pair->paths[i]);
	}
	free(pair);
	return 0;
}

static inline void put(struct pair *pair, int process, const struct st_record *record)
{
	assert_int_equal(trace_append(pair->traces[process], record), 0);
}

/* The next record happens then. */
static inline void at(unsigned seconds)
{
	record_now.time = seconds * SECONDS;
}

#define ALLOC(process_, addr_, size_) \
	put(pair, process_, RECORD(device_alloc, .addr = DEVICE + (addr_), .size = (size_)))
#define FREE(process_, addr_) put(pair, process_, RECORD(device_free, .addr = DEVICE + (addr_)))
#define EXIT(process_)        put(pair, process_, RECORD(exit, .how = ST_EXIT_EXITED))

/* Of its own anonymous memory, and of that of all others. */
static inline void sample(struct pair *pair, int process, uint64_t own, uint64_t others, uint64_t cached)
{
	struct st_ev_sample record;

	memset(&record, 0xff, sizeof(record));
	record.r = (struct st_record){
		.time = record_now.time, .kind = ST_KIND_sample, .words = sizeof(record) / 8};
	record.mem_total = 24 * GIB;
	record.mem_free = record.mem_available = 20 * GIB - cached;
	record.percpu_free = record.buffers = record.sreclaimable = record.shmem = 0;
	record.cached = cached;
	record.rss_anon = own;
	record.rss_shmem = record.sim_device = 0;
	record.other_anon = others;
	record.recorder = RECORDER;
	put(pair, process, &record.r);
}

/* Two ranks of one launcher. `start`: of the program, seconds. */
static inline void begin(struct pair *pair, int process, unsigned start)
{
	put(pair, process,
	    RECORD(process, .pid = 10 + (uint64_t)process, .ppid = 9, .pool = ST_POOL_UMA, .page_size = 4096,
	           .start = start * SECONDS, .rank = (uint64_t)process, .world = 2));
	put(pair, process, record_tail(RECORD(info), "env.MASTER_PORT=29500", 21));
}

/* Everything that has been put, as one run. */
static inline const struct run_total *total_of(struct pair *pair)
{
	struct run_card *cards[PROCESSES];
	const char *bad;

	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(trace_finish(pair->traces[i], 0), 0);
		assert_int_equal(card_read(pair->paths[i], &pair->cards[i]), 0);
		cards[i] = &pair->cards[i];
	}
	cards_group(pair->cards, PROCESSES, false);
	assert_int_equal(pair->cards[1].group, 0);
	assert_int_equal(run_total_build(cards, PROCESSES, NULL, &pair->total, &bad), 0);
	return pair->total;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, pair_up, pair_down)

#endif
