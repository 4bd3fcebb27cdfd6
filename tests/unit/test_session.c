/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects a recording as a whole, with a program that fills its ring by hand: the trace is whole when the
 * program's destructor goes on and when the program is dead, however it died; what a killed
 * recorder leaves in the ring is there, and is put into the trace by the next one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/finish.h"
#include "tests/unit/recording.h"

static void test_exit(void **state)
{
	pid_t program = start(die_well), recorder = record();
	const struct st_ev_process *process;
	const struct st_ev_exit *end;
	struct trace_back *back;
	int status = end_of(program);

	(void)state;
	assert_int_equal(status, 3);
	assert_int_equal(end_of(recorder), 0);
	back = back_read(run);
	assert_int_equal(back_count(back, ST_KIND_mark), 10);
	assert_int_equal(back_last(back)->kind, ST_KIND_trailer);
	assert_int_equal(back_count(back, ST_KIND_trailer), 1);
	process = (const void *)back_first(back, ST_KIND_process);
	assert_int_equal(process->pid, program);
	assert_int_equal(process->rank, 3);
	assert_int_equal(process->world, 8);
	assert_true(process->start && process->start <= back->record[0]->time);
	end = (const void *)back_first(back, ST_KIND_exit);
	assert_true(end->how == ST_EXIT_UNKNOWN || (end->how == ST_EXIT_EXITED && end->status == 3));
	assert_true(back_count(back, ST_KIND_sample) >= 3);
	assert_int_equal(
		((const struct st_ev_sample *)(const void *)back_first(back, ST_KIND_sample))->reason,
		ST_MOMENT_START);
	back_free(back);
}

static void test_kill(void **state)
{
	pid_t program = start(die_killed), recorder = record();
	const struct st_ev_exit *end;
	struct trace_back *back;

	(void)state;
	assert_int_equal(end_of(recorder), 0); /* the program is a zombie till we wait for it */
	assert_int_equal(end_of(program), -SIGKILL);
	back = back_read(run);
	assert_int_equal(back_count(back, ST_KIND_mark), 15);
	end = (const void *)back_first(back, ST_KIND_exit);
	assert_int_equal(end->how, ST_EXIT_SIGNALED);
	assert_int_equal(end->status, SIGKILL);
	assert_int_equal(back_last(back)->kind, ST_KIND_trailer);
	back_free(back);
}

/* A child that the recorder had just forked (to ask NVML) holds the ring's lock until it has closed it. */
static int finish_when_free(void)
{
	int error;

	for (int i = 0; (error = finish_ring(ring_path)) == -EBUSY && i < 100; i++)
		usleep(50000);
	return error;
}

/* Both are killed; what had not come into the file is in the ring, and the next recorder writes it. */
static void test_kill_both(void **state)
{
	pid_t program = start(live_long), recorder = record();
	struct trace_back *back;

	(void)state;
	wait_until(ST_RECORDER_RUNNING);
	assert_int_equal(waitpid(program, NULL, WUNTRACED), program); /* its marks are there */
	assert_int_equal(finish_ring(ring_path), -EBUSY);             /* in work */
	kill(recorder, SIGKILL);
	end_of(recorder);
	assert_int_equal(finish_ring(ring_path), -EBUSY); /* the program lives */
	produce_marks(20);
	kill(program, SIGKILL);
	end_of(program);
	assert_int_equal(finish_when_free(), 0);
	assert_int_equal(access(ring_path, F_OK), -1);
	back = back_read(run);
	assert_true(back_count(back, ST_KIND_mark) >= 30); /* a repetition is the reader's to drop */
	assert_int_equal(back_last(back)->kind, ST_KIND_trailer);
	assert_int_equal(((const struct st_ev_trailer *)(const void *)back_last(back))->records,
	                 back->number);
	back_free(back);
}

/* A program that never had a recorder: its events are not lost when the next one clears up. */
static void test_ring_only(void **state)
{
	pid_t program = start(live_long);
	char path[160];
	struct trace_back *back;

	(void)state;
	assert_int_equal(waitpid(program, NULL, WUNTRACED), program); /* its marks are there */
	kill(program, SIGKILL);
	end_of(program);
	assert_int_equal(finish_ring(ring_path), 0);
	assert_int_equal(access(ring_path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/run.%u.zst", folder, (unsigned)program);
	back = back_read(path);
	assert_int_equal(back_count(back, ST_KIND_mark), 10);
	assert_int_equal(((const struct st_ev_process *)(const void *)back_first(back, ST_KIND_process))->pid,
	                 program);
	assert_int_equal(back_last(back)->kind, ST_KIND_trailer);
	back_free(back);
}

static void test_no_trace(void **state)
{
	pid_t program = start(live_long), recorder;

	(void)state;
	strcpy(ring->settings, "SPARKTRACE_OUTPUT=/proc/none/run.zst\n");
	recorder = record();
	assert_int_equal(end_of(recorder), 1);
	assert_int_equal(atomic_load(&ring->recorder), ST_RECORDER_FAILED);
	assert_int_equal(atomic_load(&ring->recorder_error), ENOENT);
	assert_non_null(strstr(ring->recorder_text, "/proc/none/run.zst"));
	kill(program, SIGKILL);
	end_of(program);
	assert_int_equal(finish_ring(ring_path),
	                 -ENOENT); /* nor can it be made now: nobody will read this ring */
	assert_int_equal(access(ring_path, F_OK), -1);
}

static void test_no_ring(void **state)
{
	struct ringfile file;

	(void)state;
	ring->version++;
	assert_int_equal(ringfile_open(ring_path, &file), -EINVAL);
	ring->version--;
	ring->size = SIZE * 2; /* more than the file has */
	assert_int_equal(ringfile_open(ring_path, &file), -EINVAL);
	ring->size = SIZE;
	memset(ring->directory, 'x', sizeof(ring->directory)); /* no NUL */
	ring->pid = 1;
	assert_int_equal(ringfile_open(ring_path, &file), -EINVAL);
	assert_true(ringfile_open("/proc/self/status", &file) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_exit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kill, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kill_both, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ring_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_ring, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
