/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of a recording as a whole: a program that fills its ring by hand, and its recorder, both children. */
#ifndef TESTS_UNIT_RECORDING_H
#define TESTS_UNIT_RECORDING_H

#include "preload/recorder/clock.h"
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

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
{
	(void)state;
	munmap(ring, ST_RING_DATA + SIZE);
	back_remove_folder(folder);
	return 0;
}

/* --- the program ----------------------------------------------------------------------------- */

static inline void produce(const void *source, size_t bytes)
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
static inline void become_program(void)
{
	while (!*(volatile uint32_t *)&ring->pid)
		usleep(100);
}

static inline void produce_marks(int count)
{
	struct {
		struct st_ev_mark mark;
		char text[8];
	} mark = {.mark.r.kind = ST_KIND_mark, .text = "step"};

	while (count--)
		produce(&mark, sizeof(mark));
}

static inline void produce_moment(void)
{
	const struct st_ev_moment moment = {.r.kind = ST_KIND_moment, .what = ST_MOMENT_FAILED};

	produce(&moment, sizeof(moment));
}

static inline void wait_until(enum st_ring_recorder state)
{
	int tries;

	for (tries = 0; tries < 2000 && atomic_load(&ring->recorder) != (uint32_t)state; tries++)
		usleep(1000);
	if (tries == 2000)
		_exit(98);
}

static inline void die_well(void)
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

static inline void die_killed(void)
{
	become_program();
	produce_marks(10);
	wait_until(ST_RECORDER_RUNNING);
	produce_marks(5);
	kill(getpid(), SIGKILL);
}

/* Stops once its marks are there. */
static inline void live_long(void)
{
	become_program();
	produce_marks(10);
	raise(SIGSTOP);
	for (;;)
		pause();
}

/* --- the recorder ---------------------------------------------------------------------------- */

/* What the program cannot say itself: qemu-user shows a process its own /proc/PID/stat without a start. */
static inline pid_t start(void (*program)(void))
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
static inline void become_recorder(void)
{
	struct ringfile file;
	struct stat stat_now;
	int err = ringfile_open(ring_path, &file);

	if (err || stat(ring_path, &stat_now))
		_exit(90);
	err = session_run(file.ring, stat_now.st_ino);
	_exit(err ? 1 : 0);
}

static inline pid_t record(void)
{
	pid_t pid = fork();

	if (!pid)
		become_recorder();
	return pid;
}

static inline int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
