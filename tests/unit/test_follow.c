/* SPDX-License-Identifier: Apache-2.0 */
/* Protects what the recorder says of its program's end: not before it has come, and not more than is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/follow.h"
#include "preload/recorder/procfs.h"
#include "tests/unit/skip.h"
#include "trace_back.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct st_ring ring;
static struct follow follow;

static void follow_pid(pid_t pid, uint64_t ring_ino)
{
	struct procfs_stat stat;

	assert_int_equal(procfs_read_stat((uint32_t)pid, &stat), 0);
	ring.pid = (uint32_t)pid;
	ring.start_time = stat.start_time;
	follow_init(&follow, &ring, ring_ino);
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Of the end of `pid`, which is over and not waited for, as `user` sees it. Returns how << 8 | status. */
static int end_seen_by(pid_t pid, uid_t user)
{
	pid_t seer = fork();
	siginfo_t info;

	if (seer == 0) {
		if (user && (setresgid(user, user, user) || setresuid(user, user, user)))
			_exit(255);
		follow_pid(pid, 0);
		while (!follow_is_over(&follow, false))
			usleep(1000);
		_exit((int)follow.how << 4 | follow.status);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return WEXITSTATUS(wait_for(seer));
}

static pid_t program_of(uid_t user)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (user && (setresgid(user, user, user) || setresuid(user, user, user)))
		_exit(9);
	_exit(7);
}

static void test_status(void **state)
{
	pid_t pid = program_of(0);

	(void)state;
	assert_int_equal(end_seen_by(pid, 0), ST_EXIT_EXITED << 4 | 7);
	wait_for(pid);
}

/* A program that has become another user: that it ended well is what the kernel says to those who may not know. */
static void test_status_not_to_be_seen(void **state)
{
	pid_t pid;

	(void)state;
	if (geteuid())
		skip_because("only root can become two users");
	pid = program_of(1234);
	assert_int_equal(end_seen_by(pid, 4321), ST_EXIT_UNKNOWN << 4);
	wait_for(pid);
}

/* The ring as this process has it mapped, in a folder to which a link leads. */
static void test_ring_behind_a_link(void **state)
{
	char folder[64], link[128], path[160];
	struct stat now;
	void *map;
	int fd;

	(void)state;
	back_make_folder(folder, sizeof(folder));
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(".", link), 0);
	snprintf(path, sizeof(path), "%s/ring-1", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 65536), 0);
	assert_int_equal(fstat(fd, &now), 0);
	map = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	snprintf(ring.path, sizeof(ring.path), "%s/ring-1", link);
	follow_pid(getpid(), now.st_ino);
	assert_false(follow_is_over(&follow, true)); /* an exec that failed */
	munmap(map, 65536);
	assert_true(follow_is_over(&follow, true));
	assert_int_equal(follow.how, ST_EXIT_EXECED);
	follow_release(&follow);
	back_remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_status_not_to_be_seen),
		cmocka_unit_test(test_ring_behind_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
