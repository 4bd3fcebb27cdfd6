/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what a recording cannot take out of its ring yet, or not any more: half a record, a full disk, a trace that
 * was moved or is not to be found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/finish.h"
#include "preload/recorder/output.h"
#include "tests/unit/recording.h"

/* A program that is stopped half-way through a record, with more behind it: it is waited for, not run after. */
static void test_half_a_record(void **state)
{
	pid_t program = start(live_long), recorder = record();
	struct rusage used;
	int status;

	(void)state;
	wait_until(ST_RECORDER_RUNNING);
	assert_int_equal(waitpid(program, NULL, WUNTRACED), program); /* its marks are there */
	atomic_fetch_add(&ring->head, SIZE / 4);
	usleep(1000000);
	kill(program, SIGKILL);
	assert_int_equal(wait4(recorder, &status, 0, &used), recorder);
	end_of(program);
	assert_int_equal(status, 0);
	assert_int_equal(used.ru_utime.tv_sec + used.ru_stime.tv_sec, 0);
	assert_true(used.ru_utime.tv_usec + used.ru_stime.tv_usec < 500000);
}

static pid_t record_without_room(void)
{
	pid_t pid = fork();
	struct rlimit limit = {4096, 4096};

	if (!pid) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		become_recorder();
	}
	return pid;
}

static void die_with_much(void)
{
	become_program();
	wait_until(ST_RECORDER_RUNNING);
	produce_marks(1);
	while (!atomic_load(&ring->tail)) /* the first block finds room */
		usleep(1000);
	for (int i = 0; i < 2000; i++) {
		struct st_ev_free event = {.r.kind = ST_KIND_free, .addr = (uint64_t)i * 0x9e3779b97f4a7c15u};

		produce(&event, sizeof(event));
	}
}

static void test_full_disk(void **state)
{
	pid_t program = start(die_with_much), recorder = record_without_room();
	struct trace_back *back;

	(void)state;
	assert_int_equal(end_of(recorder), 1);
	assert_int_equal(end_of(program), 0);
	assert_int_equal(atomic_load(&ring->recorder), ST_RECORDER_FAILED);
	assert_int_equal(atomic_load(&ring->recorder_error), EFBIG);
	back = back_read(run);
	assert_true(back->blocks > 0);
	assert_int_equal(back_count(back, ST_KIND_trailer), 0);
	back_free(back);
	assert_int_equal(finish_ring(ring_path), 0); /* there is room again */
	back = back_read(run);
	assert_int_equal(back_count(back, ST_KIND_free), 2000);
	assert_int_equal(back_last(back)->kind, ST_KIND_trailer);
	back_free(back);
}

/* There is no room for the rest when the next run takes the name: the ring follows the trace. */
static void test_moved_trace(void **state)
{
	pid_t program = start(die_with_much), recorder = record_without_room(), next;
	struct trace_back *back;
	char path[160];

	(void)state;
	end_of(recorder);
	end_of(program);
	next = fork();
	if (!next) {
		struct st_file_head head = back_head((uint32_t)getpid(), 1);
		struct rlimit limit = {4096, 4096};
		struct trace *trace;

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(output_create(run, true, &head, &trace, path, sizeof(path)) ? 1 : 0);
	}
	assert_int_equal(end_of(next), 0);
	assert_int_equal(finish_ring(ring_path), 0);
	snprintf(path, sizeof(path), "%s/run.1.zst", folder);
	back = back_read(path);
	assert_int_equal(back_count(back, ST_KIND_free), 2000);
	assert_int_equal(back_last(back)->kind, ST_KIND_trailer);
	back_free(back);
}

/* A ring of a dead program whose trace is not to be found. */
static int finish_lost(uint64_t pids)
{
	ring->pids = pids;
	ring->epoch = clock_now();
	ring->pid = 4194304; /* above every pid_max */
	strcpy(ring->trace, "/none/run.zst");
	return finish_ring(ring_path);
}

/* In another container it may be there: only after a day nobody will come back to it. */
static void test_trace_out_of_sight(void **state)
{
	(void)state;
	assert_int_equal(finish_lost(1), -ENOENT);
	assert_int_equal(access(ring_path, F_OK), 0);
	assert_int_equal(finish_lost(0), 0); /* our own: taken away */
	assert_int_equal(access(ring_path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_half_a_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moved_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_trace_out_of_sight, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
