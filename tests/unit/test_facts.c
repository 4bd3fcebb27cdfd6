/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what is said about machine and run: the class of the pool, the rank, the settings' defaults, and
 * that NVML is asked without being waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/clock.h"
#include "preload/recorder/facts.h"
#include "preload/recorder/pool.h"
#include "preload/recorder/procfs.h"
#include "preload/recorder/ringfile.h"
#include "preload/recorder/settings.h"
#include "tests/unit/skip.h"
#include "trace_back.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_pool_class(void **state)
{
	(void)state;
	assert_int_equal(pool_class("NVIDIA DGX Spark ", ""), ST_POOL_UMA);
	assert_int_equal(pool_class("", "NVIDIA GB10"), ST_POOL_UMA);
	assert_int_equal(pool_class("NVIDIA Jetson AGX Orin Developer Kit", NULL), ST_POOL_UMA);
	assert_int_equal(pool_class("Standard PC", "NVIDIA H100 PCIe"), ST_POOL_DISCRETE);
	assert_int_equal(pool_class("Standard PC", ""), ST_POOL_UNKNOWN); /* no answer is no answer */
	assert_int_equal(pool_class("Standard PC", NULL), ST_POOL_UNKNOWN);
}

static void test_rank(void **state)
{
	static struct st_ring ring;
	char rank[8];

	(void)state;
	strcpy(ring.environment, "LOCAL_RANK=5\nSLURM_PROCID=4\nRANK=\nOMPI_COMM_WORLD_RANK=2\n");
	facts_rank(&ring, rank, sizeof(rank));
	assert_string_equal(rank, "2"); /* not LOCAL_RANK, not the empty one */
	ring.environment[0] = '\0';
	facts_rank(&ring, rank, sizeof(rank));
	assert_string_equal(rank, "");
}

static void test_settings(void **state)
{
	static const char lines[] =
		"SPARKTRACE_OUTPUT=/x=y/%p.zst\nSPARKTRACE_SAMPLE_LOAD=7\nSPARKTRACE_SAMPLE_REST=0\n";
	char value[64];

	(void)state;
	recorder_setting(lines, "SPARKTRACE_OUTPUT", value, sizeof(value));
	assert_string_equal(value, "/x=y/%p.zst");
	recorder_setting("", "SPARKTRACE_OUTPUT", value, sizeof(value));
	assert_string_equal(value, "run.zst");
	assert_int_equal(recorder_setting_ms(lines, "SPARKTRACE_SAMPLE_LOAD"), 7 * MILLISECOND);
	assert_int_equal(recorder_setting_ms(lines, "SPARKTRACE_SAMPLE_EDGE"), 10 * MILLISECOND);
	assert_int_equal(recorder_setting_ms(lines, "SPARKTRACE_SAMPLE_REST"),
	                 MILLISECOND); /* never a busy loop */
	assert_int_equal(ringfile_get(lines, "SPARKTRACE_OUT", value, sizeof(value)), -ENOENT);
	assert_int_equal(ringfile_get(lines, "SPARKTRACE_OUTPUT", value, 4), -ENOENT);
}

/* Without a library the pipe ends without a word, and at once. */
static void test_no_gpu(void **state)
{
	uint64_t before = clock_now();
	struct pollfd answer = {.fd = pool_ask_gpu("/none:/nowhere"), .events = POLLIN};
	char name[96];

	(void)state;
	assert_true(answer.fd >= 0);
	assert_true(clock_now() - before < 2 * SECOND);
	assert_int_equal(poll(&answer, 1, 20000), 1);
	assert_true(read(answer.fd, name, sizeof(name)) >= 0);
	close(answer.fd);
}

/* The child that asks, the only one of this process. */
static pid_t asker(void)
{
	char text[64] = "";

	procfs_read("/proc/thread-self/children", text, sizeof(text));
	return (pid_t)atoi(text);
}

/* A library that never comes to an end: the alarm must reach whoever waits for it, with all signals blocked here. */
static void test_hanging_gpu(void **state)
{
	char folder[64], path[128];
	struct pollfd answer = {.events = POLLIN};
	sigset_t all, before;
	pid_t pid;

	(void)state;
	while (waitpid(-1, NULL, 0) > 0) /* of the tests before */
		continue;
	back_make_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	answer.fd = pool_ask_gpu(folder);
	pid = asker();
	for (int i = 0; pid > 0 && i < 100 && !poll(&answer, 1, 100); i++)
		kill(pid, SIGALRM);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(answer.fd);
	back_remove_folder(folder);
	if (pid <= 0)
		skip_because("this kernel does not tell who a process's children are");
	kill(pid, SIGKILL); /* where the alarm did not */
	waitpid(pid, NULL, 0);
	assert_true(answer.revents & POLLHUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_class),  cmocka_unit_test(test_rank),
		cmocka_unit_test(test_settings),    cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_hanging_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
