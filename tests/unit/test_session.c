/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects a recording as a whole, with a program that fills its ring by hand: the trace is whole when the
 * program's destructor goes on and when the program is dead, however it died; what a full disk or a killed
 * recorder leaves in the ring is there, and is put into the trace by the next one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/clock.h"
#include "preload/recorder/finish.h"
#include "preload/recorder/procfs.h"
#include "preload/recorder/ringfile.h"
#include "preload/recorder/session.h"
#include "trace_back.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SIZE (256u << 10)

static char folder[64], run[128], ring_path[128];
static struct st_ring *ring;

static int set_up(void **state)
{
	int fd;

	(void)state;
	back_make_folder(folder, sizeof(folder));
	snprintf(run, sizeof(run), "%s/run.zst", folder);
	snprintf(ring_path, sizeof(ring_path), "%s/ring-1", folder);
	fd = open(ring_path, O_RDWR | O_CREAT, 0600);
	if (ftruncate(fd, ST_RING_DATA + SIZE))
		return -1;
	ring = mmap(NULL, ST_RING_DATA + SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	memcpy(ring->magic, ST_RING_MAGIC, sizeof(ring->magic));
	ring->version = ST_RING_VERSION;
	ring->size = SIZE;
	strcpy(ring->path, ring_path);
	strcpy(ring->directory, folder);
	strcpy(ring->environment, "RANK=3\nWORLD_SIZE=8\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(ring, ST_RING_DATA + SIZE);
	back_remove_folder(folder);
	return 0;
}

/* --- the program ----------------------------------------------------------------------------- */

static void produce(const void *source, size_t bytes)
{
	uint64_t position = atomic_fetch_add(&ring->head, bytes);
	struct st_record *record = (void *)(st_ring_data(ring) + position % SIZE);

	memcpy(record, source, bytes);
	record->words = (uint16_t)(bytes / 8);
	record->time = clock_now();
	record->thread = (uint32_t)getpid();
	atomic_store((_Atomic uint64_t *)(void *)record, ST_SEQ_MAGIC | position);
	if (atomic_exchange(&ring->sleeping, 0))
		ringfile_wake(ring);
}

/* The ring is complete once its pid is there. */
static void become_program(void)
{
	while (!*(volatile uint32_t *)&ring->pid)
		usleep(100);
}

static void produce_marks(int count)
{
	struct {
		struct st_ev_mark mark;
		char text[8];
	} mark = {.mark.r.kind = ST_KIND_mark, .text = "step"};

	while (count--)
		produce(&mark, sizeof(mark));
}

static void produce_moment(void)
{
	const struct st_ev_moment moment = {.r.kind = ST_KIND_moment, .what = ST_MOMENT_FAILED};

	produce(&moment, sizeof(moment));
}

static void wait_until(enum st_ring_recorder state)
{
	int tries;

	for (tries = 0; tries < 2000 && atomic_load(&ring->recorder) != (uint32_t)state; tries++)
		usleep(1000);
	if (tries == 2000)
		_exit(98);
}

static void die_well(void)
{
	become_program();
	produce_marks(10);
	wait_until(ST_RECORDER_RUNNING);
	produce_moment();
	atomic_store(&ring->exiting, 1);
	ringfile_wake(ring);
	wait_until(ST_RECORDER_DONE);
	_exit(back_count(back_read(run), ST_KIND_trailer) == 1 ? 3 : 97); /* whole before we go on */
}

static void die_killed(void)
{
	become_program();
	produce_marks(10);
	wait_until(ST_RECORDER_RUNNING);
	produce_marks(5);
	kill(getpid(), SIGKILL);
}

/* Stops once its marks are there. */
static void live_long(void)
{
	become_program();
	produce_marks(10);
	raise(SIGSTOP);
	for (;;)
		pause();
}

/* --- the recorder ---------------------------------------------------------------------------- */

/* What the program cannot say itself: qemu-user shows a process its own /proc/PID/stat without a start. */
static pid_t start(void (*program)(void))
{
	struct st_file_head head = back_head(0, 0);
	struct procfs_stat stat = {0};
	pid_t pid = fork();

	if (!pid) {
		program();
		_exit(0);
	}
	assert_int_equal(procfs_read_stat((uint32_t)pid, &stat), 0);
	memcpy(ring->boot_id, head.boot_id, sizeof(head.boot_id));
	ring->start_time = stat.start_time;
	*(volatile uint32_t *)&ring->pid = (uint32_t)pid;
	return pid;
}

/* As main.c does it, without leaving: the recorder is this test's child. */
static void become_recorder(void)
{
	struct ringfile file;
	struct stat stat_now;
	int err = ringfile_open(ring_path, &file);

	if (err || stat(ring_path, &stat_now))
		_exit(90);
	err = session_run(file.ring, stat_now.st_ino);
	_exit(err ? 1 : 0);
}

static pid_t record(void)
{
	pid_t pid = fork();

	if (!pid)
		become_recorder();
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- tests ----------------------------------------------------------------------------------- */

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
		cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ring_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_ring, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
