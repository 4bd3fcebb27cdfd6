/* SPDX-License-Identifier: Apache-2.0 */
/* Protects rings of programs that live: whoever clears up must not take one for a dead program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/clock.h"
#include "preload/recorder/procfs.h"
#include "preload/recorder/ringfile.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOUR (3600 * SECOND)

/* The ring of a process of ours, as the shim makes it. */
static struct st_ring ring_of(pid_t pid)
{
	struct st_ring ring = {.pid = (uint32_t)pid, .epoch = clock_now()};
	struct procfs_stat process;
	struct stat space;

	assert_true(procfs_read("/proc/sys/kernel/random/boot_id", ring.boot_id, sizeof(ring.boot_id)) > 0);
	ring.boot_id[36] = '\0';
	assert_int_equal(procfs_read_stat(ring.pid, &process), 0);
	assert_int_equal(stat("/proc/self/ns/pid", &space), 0);
	ring.start_time = process.start_time;
	ring.pids = space.st_ino;
	return ring;
}

static struct st_ring own_ring(void)
{
	return ring_of(getpid());
}

static void test_own(void **state)
{
	struct st_ring ring = own_ring();

	(void)state;
	assert_false(ringfile_is_dead(&ring));
	ring.epoch = 0; /* however old */
	assert_false(ringfile_is_dead(&ring));
	ring.pids = 0; /* made where there is no /proc */
	assert_false(ringfile_is_dead(&ring));
	ring.start_time++;
	assert_true(ringfile_is_dead(&ring));
}

static void *live_on(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* Its first thread has ended, as the kernel says of the whole; the others go on. */
static void test_first_thread_ended(void **state)
{
	struct procfs_stat process = {0};
	pid_t pid = fork();
	struct st_ring ring;
	pthread_t thread;

	(void)state;
	if (pid == 0) {
		pthread_create(&thread, NULL, live_on, NULL);
		pthread_exit(NULL);
	}
	ring = ring_of(pid);
	for (int i = 0; i < 10000 && process.state != 'Z'; i++) {
		usleep(1000);
		procfs_read_stat(ring.pid, &process);
	}
	assert_int_equal(process.state, 'Z');
	assert_false(ringfile_is_dead(&ring));
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_true(ringfile_is_dead(&ring)); /* none is left, and nobody took it away */
	waitpid(pid, NULL, 0);
}

static void test_other_boot(void **state)
{
	struct st_ring ring = own_ring();

	(void)state;
	ring.boot_id[0] ^= 1;
	assert_true(ringfile_is_dead(&ring));
}

/*
 * A container that shares our shared memory and not our processes: its numbers mean nothing here, and its recorder may
 * be about to come. Only of an old ring that nobody holds is it known that none will.
 */
static void test_other_container(void **state)
{
	struct st_ring ring = own_ring();

	(void)state;
	ring.pids++;
	ring.start_time++;
	assert_false(ringfile_is_dead(&ring));
	ring.epoch = 0;
	assert_int_equal(ringfile_is_dead(&ring), clock_now() > HOUR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_first_thread_ended),
		cmocka_unit_test(test_other_boot),
		cmocka_unit_test(test_other_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
