/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what a dead program and its dead recorder left in the ring: every committed record comes, once, in
 * order; a torn one hides nothing behind it; and no ring of another process is mixed in.
 */
#include "preload/recorder/procfs.h"
#include "trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sparktrace/ring.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define RING_BYTES 1024u
#define RECORD     (sizeof(struct st_ev_free))

static struct got got;

/* A ring in a file, written to as the shim does. */
struct test_ring {
	const char *path;
	struct st_ring *ring;
};

static struct test_ring make_ring(const char *name)
{
	struct test_ring r = {.path = test_path(name)};
	struct st_file_head head = test_head("");
	int fd = open(r.path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, ST_RING_DATA + RING_BYTES), 0);
	r.ring = mmap(NULL, ST_RING_DATA + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(r.ring, MAP_FAILED);
	close(fd);
	memcpy(r.ring->magic, ST_RING_MAGIC, 8);
	r.ring->version = ST_RING_VERSION;
	r.ring->size = RING_BYTES;
	r.ring->pid = head.pid;
	r.ring->start_time = head.start_time;
	memcpy(r.ring->boot_id, head.boot_id, sizeof(head.boot_id));
	return r;
}

static void drop_ring(struct test_ring *r)
{
	munmap(r->ring, ST_RING_DATA + RING_BYTES);
	unlink(r->path);
}

static void *place(struct test_ring *r, uint64_t position)
{
	return st_ring_data(r->ring) + position % RING_BYTES;
}

/* Room for `bytes`, with the filler that the end of a lap needs before it. */
static uint64_t reserve(struct test_ring *r, uint64_t bytes)
{
	uint64_t at = r->ring->head, left = RING_BYTES - at % RING_BYTES;

	if (left < bytes) {
		if (left >= sizeof(struct st_record)) {
			struct st_record *pad = place(r, at);

			*pad = (struct st_record){
				.seq = ST_SEQ_MAGIC | at, .kind = ST_RING_PAD, .words = 9999};
		}
		at += left;
	}
	assert_true(at + bytes - r->ring->tail <= RING_BYTES);
	r->ring->head = at + bytes;
	return at;
}

static void put(struct test_ring *r, uint64_t address)
{
	uint64_t at = reserve(r, RECORD);
	struct st_ev_free record = make_free(at, address);

	memcpy(place(r, at), &record, RECORD);
}

/* Reserved and half written, but never committed. */
static void put_torn(struct test_ring *r, uint64_t bytes)
{
	uint64_t at = reserve(r, bytes);

	memset(place(r, at), 0x5A, bytes);
	memset(place(r, at), 0, 8);
}

static void committed_records_come_from_a_ring_alone(void **state)
{
	struct test_ring r = make_ring("alone");

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		put(&r, i);
	r.ring->lost_count = 3;
	r.ring->lost_bytes = 300;
	read_trace(r.path, NULL, &got);
	assert_run(&got, 0, 20);
	assert_int_equal(got.summary.ring, READER_RING_READ);
	assert_int_equal(got.summary.ring_records, 20);
	assert_int_equal(got.summary.head.pid, 4242);
	assert_int_equal(got.summary.lost, 3);
	assert_int_equal(got.summary.lost_bytes, 300);
	assert_int_equal(got.summary.torn, 0);
	assert_false(got.summary.cut);
	assert_false(got.summary.alive);
	drop_ring(&r);
}

/* Many laps, with records of all lengths, so that every kind of lap end occurs. */
static void laps_end_anywhere(void **state)
{
	struct test_ring r = make_ring("laps");
	uint64_t first = 0, next = 0;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint64_t step = 8 * (round % 5), at;

		put(&r, next++);
		at = reserve(&r, RECORD + step);
		memset(place(&r, at), 0, RECORD + step);
		*(struct st_ev_free *)place(&r, at) = make_free(at, next++);
		((struct st_record *)place(&r, at))->words = (uint16_t)((RECORD + step) / 8);
		put(&r, next++);
		read_trace(r.path, NULL, &got);
		assert_run(&got, first, next - first);
		if (round % 3) { /* the recorder takes all of it */
			r.ring->tail = r.ring->head;
			first = next;
		}
	}
	drop_ring(&r);
}

static void torn_records_hide_nothing(void **state)
{
	static const uint64_t sizes[] = {24, 32, 104, 256};

	(void)state;
	for (size_t s = 0; s < 4; s++)
		for (uint64_t before = 0; before < RING_BYTES / RECORD; before++) {
			struct test_ring r = make_ring("torn");

			for (uint64_t i = 0; i < before; i++)
				put(&r, i);
			r.ring->tail = r.ring->head;
			put(&r, 100);
			put_torn(&r, sizes[s]);
			put(&r, 101);
			put_torn(&r, sizes[0]);
			put(&r, 102);
			put_torn(&r, sizes[0]);
			read_trace(r.path, NULL, &got);
			assert_run(&got, 100, 3);
			assert_int_equal(got.summary.torn, 3);
			drop_ring(&r);
		}
}

/* A record that is committed but has an impossible length is torn too. */
static void impossible_lengths_are_torn(void **state)
{
	static const uint16_t lengths[] = {0, 2, 200, UINT16_MAX};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct test_ring r = make_ring("length");

		put(&r, 0);
		put(&r, 50);
		((struct st_record *)place(&r, RECORD))->words = lengths[i];
		put(&r, 1);
		read_trace(r.path, NULL, &got);
		assert_run(&got, 0, 2);
		assert_int_equal(got.summary.torn, 1);
		drop_ring(&r);
	}
}

/* That of a process of this boot: what is not committed is still being written. */
static void make_alive(struct test_ring *r, pid_t pid)
{
	struct procfs_stat stat;

	assert_int_equal(procfs_read_stat((uint32_t)pid, &stat), 0);
	r->ring->pid = (uint32_t)pid;
	r->ring->start_time = stat.start_time;
	assert_true(procfs_read("/proc/sys/kernel/random/boot_id", r->ring->boot_id,
	                        sizeof(r->ring->boot_id)) > 0);
	r->ring->boot_id[36] = '\0';
}

static void the_living_are_waited_for(void **state)
{
	struct test_ring r = make_ring("alive");

	(void)state;
	make_alive(&r, getpid());
	put(&r, 0);
	put(&r, 1);
	put_torn(&r, RECORD);
	put(&r, 2);
	read_trace(r.path, NULL, &got);
	assert_run(&got, 0, 2);
	assert_true(got.summary.alive);
	assert_int_equal(got.summary.torn, 0);
	r.ring->start_time++; /* its number was given to another process since */
	read_trace(r.path, NULL, &got);
	assert_run(&got, 0, 3);
	assert_false(got.summary.alive);
	drop_ring(&r);
}

static void *live_on(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* The kernel calls a process a zombie once its first thread has ended, whatever the others do. */
static void a_first_thread_is_not_all(void **state)
{
	struct test_ring r = make_ring("threads");
	pid_t pid = fork();
	struct procfs_stat now = {0};
	pthread_t thread;

	(void)state;
	if (pid == 0) {
		pthread_create(&thread, NULL, live_on, NULL);
		pthread_exit(NULL);
	}
	for (int i = 0; i < 10000 && now.state != 'Z'; i++) {
		usleep(1000);
		assert_int_equal(procfs_read_stat((uint32_t)pid, &now), 0);
	}
	assert_int_equal(now.state, 'Z');
	make_alive(&r, pid);
	put(&r, 0);
	read_trace(r.path, NULL, &got);
	assert_true(got.summary.alive);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	read_trace(r.path, NULL, &got);
	assert_false(got.summary.alive); /* none is left, and nobody took it away */
	waitpid(pid, NULL, 0);
	drop_ring(&r);
}

/* A trace of 20 records and a ring whose tail is a little behind it: 5 records come twice. */
static void make_pair(const char *path, struct test_ring *r, bool trailer)
{
	struct st_file_head head = test_head(r->path);

	make_trace(path, &head, 1, 20, trailer);
	for (uint64_t i = 0; i < 30; i++) {
		if (i == 15)
			r->ring->tail = r->ring->head;
		put(r, i);
	}
}

static void the_ring_continues_a_cut_trace(void **state)
{
	struct test_ring r = make_ring("pair");
	const char *path = test_path("pairtrace");

	(void)state;
	make_pair(path, &r, false);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 30);
	assert_int_equal(got.summary.ring, READER_RING_READ);
	assert_int_equal(got.summary.ring_records, 10);
	assert_int_equal(got.summary.repeated, 5);
	assert_true(got.summary.cut);
	assert_false(got.summary.damaged);
	unlink(path);
	drop_ring(&r);
}

static void a_whole_trace_needs_no_ring(void **state)
{
	struct test_ring r = make_ring("unneeded");
	const char *path = test_path("wholetrace");

	(void)state;
	make_pair(path, &r, true);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 20);
	assert_int_equal(got.summary.ring, READER_RING_NONE);
	unlink(path);
	drop_ring(&r);
}

static void other_rings_are_not_mixed_in(void **state)
{
	struct test_ring r = make_ring("other");
	const char *path = test_path("othertrace");

	(void)state;
	make_pair(path, &r, false);
	r.ring->start_time++;
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 20);
	assert_int_equal(got.summary.ring, READER_RING_OTHER);
	read_trace(path, r.path, &got);
	assert_int_equal(got.error, -EXDEV);
	r.ring->start_time--;
	read_trace(path, r.path, &got);
	assert_run(&got, 0, 30);
	unlink(r.path);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 20);
	assert_int_equal(got.summary.ring, READER_RING_GONE);
	read_trace(path, r.path, &got);
	assert_int_equal(got.error, -ENOENT);
	read_trace(path, path, &got);
	assert_int_equal(got.error, -EBADMSG);
	unlink(path);
	drop_ring(&r);
}

static void check_refused(struct test_ring *r)
{
	read_trace(r->path, NULL, &got);
	assert_int_equal(got.error, -EBADMSG);
}

static void impossible_rings_are_refused(void **state)
{
	struct test_ring r = make_ring("bad");

	(void)state;
	put(&r, 0);
	r.ring->version = 9;
	check_refused(&r);
	r.ring->version = ST_RING_VERSION;
	r.ring->size = 1000;
	check_refused(&r);
	r.ring->size = 2048; /* behind the file's end */
	check_refused(&r);
	r.ring->size = UINT64_C(1) << 63;
	check_refused(&r);
	r.ring->size = 0;
	check_refused(&r);
	r.ring->size = RING_BYTES;
	r.ring->head = RING_BYTES + 8;
	check_refused(&r);
	r.ring->head = 36;
	check_refused(&r);
	r.ring->head = 32;
	r.ring->tail = 64;
	check_refused(&r);
	r.ring->tail = 0;
	read_trace(r.path, NULL, &got);
	assert_run(&got, 0, 1);
	drop_ring(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(committed_records_come_from_a_ring_alone),
		cmocka_unit_test(laps_end_anywhere),
		cmocka_unit_test(torn_records_hide_nothing),
		cmocka_unit_test(impossible_lengths_are_torn),
		cmocka_unit_test(the_living_are_waited_for),
		cmocka_unit_test(a_first_thread_is_not_all),
		cmocka_unit_test(the_ring_continues_a_cut_trace),
		cmocka_unit_test(a_whole_trace_needs_no_ring),
		cmocka_unit_test(other_rings_are_not_mixed_in),
		cmocka_unit_test(impossible_rings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
