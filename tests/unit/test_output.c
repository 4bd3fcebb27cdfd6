/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the names of traces: run.zst is the newest, a finished older one is moved and never
 * overwritten, a live one or a stranger's file is never touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/output.h"
#include "preload/recorder/procfs.h"
#include "trace_back.h"

#include <errno.h>
#include <limits.h>

#define DEAD_PID 4194304 /* above every pid_max */

static char folder[64], run[128];
static struct procfs_stat own;

static int set_up(void **state)
{
	(void)state;
	back_make_folder(folder, sizeof(folder));
	snprintf(run, sizeof(run), "%s/run.zst", folder);
	return procfs_read_stat((uint32_t)getpid(), &own);
}

static int tear_down(void **state)
{
	(void)state;
	back_remove_folder(folder);
	return 0;
}

/* A trace of that process as a recorder leaves it; returns its name in the folder. */
static const char *record(uint32_t pid, uint64_t start_time, bool finish)
{
	static char path[PATH_MAX];
	struct st_file_head head = back_head(pid, start_time);
	struct trace *trace;

	assert_int_equal(output_create(run, true, &head, &trace, path, sizeof(path)), 0);
	if (finish)
		assert_int_equal(trace_finish(trace, 0), 0);
	trace_free(trace);
	return strrchr(path, '/') + 1;
}

static uint32_t pid_in(const char *name)
{
	char path[PATH_MAX];
	unsigned char *bytes;
	struct st_file_head head;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (back_read_file(path, &bytes) < BACK_HEAD)
		return 0;
	memcpy(&head, bytes + 8, sizeof(head));
	free(bytes);
	return head.pid;
}

static void test_newest_is_run(void **state)
{
	(void)state;
	assert_string_equal(record(DEAD_PID + 1, 1, true), "run.zst");
	assert_string_equal(record(DEAD_PID + 2, 1, false),
	                    "run.zst"); /* dead without a trailer is over too */
	assert_string_equal(record(DEAD_PID + 3, 1, true), "run.zst");
	assert_int_equal(pid_in("run.1.zst"), DEAD_PID + 1);
	assert_int_equal(pid_in("run.2.zst"), DEAD_PID + 2);
	assert_int_equal(pid_in("run.zst"), DEAD_PID + 3);
}

/* Between two runs somebody made a file of the next name. */
static void test_nothing_is_overwritten(void **state)
{
	char path[PATH_MAX];
	FILE *file;

	(void)state;
	record(DEAD_PID + 1, 1, true);
	snprintf(path, sizeof(path), "%s/run.1.zst", folder);
	file = fopen(path, "w");
	fputs("mine", file);
	fclose(file);
	record(DEAD_PID + 2, 1, true);
	assert_int_equal(pid_in("run.1.zst"), 0);
	assert_int_equal(pid_in("run.2.zst"), DEAD_PID + 1);
	assert_int_equal(pid_in("run.zst"), DEAD_PID + 2);
}

static void test_beside_a_live_one(void **state)
{
	char name[64];

	(void)state;
	assert_string_equal(record((uint32_t)getpid(), own.start_time, false), "run.zst");
	snprintf(name, sizeof(name), "run.%u.zst", DEAD_PID + 9);
	assert_string_equal(record(DEAD_PID + 9, 1, true), name);
	/* The same pid again, much later: what it left is over and moved. */
	assert_string_equal(record(DEAD_PID + 9, 2, true), name);
	snprintf(name, sizeof(name), "run.%u.1.zst", DEAD_PID + 9);
	assert_int_equal(pid_in(name), DEAD_PID + 9);
	assert_int_equal(pid_in("run.zst"), (uint32_t)getpid());
}

/* After an exec the same process starts a second trace: the first has its trailer. */
static void test_after_exec(void **state)
{
	(void)state;
	record((uint32_t)getpid(), own.start_time, true);
	assert_string_equal(record((uint32_t)getpid(), own.start_time, false), "run.zst");
	assert_int_equal(pid_in("run.1.zst"), (uint32_t)getpid());
}

/* What is written late is no newest run. */
static void test_late(void **state)
{
	struct st_file_head head = back_head(DEAD_PID + 8, 1);
	char path[PATH_MAX], wanted[PATH_MAX];
	struct trace *trace;

	(void)state;
	record(DEAD_PID + 7, 1, true);
	assert_int_equal(output_create(run, false, &head, &trace, path, sizeof(path)), 0);
	trace_free(trace);
	snprintf(wanted, sizeof(wanted), "%s/run.%u.zst", folder, DEAD_PID + 8);
	assert_string_equal(path, wanted);
	assert_int_equal(pid_in("run.zst"), DEAD_PID + 7);
}

/* A process of the same pid and start, but before the last boot, is dead. */
static void test_other_boot(void **state)
{
	struct st_file_head head = back_head((uint32_t)getpid(), own.start_time);
	struct trace *trace;

	(void)state;
	memset(head.boot_id, 'x', 36);
	assert_int_equal(trace_create(run, &head, NULL, &trace), 0);
	trace_free(trace);
	assert_string_equal(record(DEAD_PID + 1, 1, true), "run.zst");
}

static void test_strangers_file(void **state)
{
	char name[64], text[16] = "";
	FILE *file = fopen(run, "w");

	(void)state;
	fputs("not a trace", file);
	fclose(file);
	snprintf(name, sizeof(name), "run.%u.zst", DEAD_PID + 4);
	assert_string_equal(record(DEAD_PID + 4, 1, true), name);
	file = fopen(run, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "not a trace");
}

static void test_no_folder(void **state)
{
	struct st_file_head head = back_head(DEAD_PID, 1);
	struct trace *trace;
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(output_create("/proc/none/run.zst", true, &head, &trace, path, sizeof(path)),
	                 -ENOENT);
}

static void check_expand(const char *pattern, const char *expected)
{
	struct output_names names = {.pid = 12, .host = "spark", .rank = "3", .directory = folder};
	char path[PATH_MAX], wanted[PATH_MAX];

	snprintf(wanted, sizeof(wanted), "%s%s%s", expected[0] == '/' ? "" : folder,
	         expected[0] == '/' ? "" : "/", expected);
	assert_int_equal(output_expand(pattern, &names, path, sizeof(path)), 0);
	assert_string_equal(path, wanted);
}

static void test_expand(void **state)
{
	char there[128], tiny[8];
	struct output_names names = {.pid = 12, .host = "spark", .rank = "3", .directory = folder};

	(void)state;
	check_expand("run.zst", "run.zst");
	check_expand("/abs/x.zst", "/abs/x.zst");
	check_expand("t-%p-%h-%r-%%-%q.zst", "t-12-spark-3-%-%q.zst");
	check_expand("new/", "new/run.zst");
	snprintf(there, sizeof(there), "%s/there", folder);
	assert_int_equal(mkdir(there, 0700), 0);
	check_expand("there", "there/run.zst");
	check_expand("100%", "100%");
	assert_int_equal(output_expand("run.zst", &names, tiny, sizeof(tiny)), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_newest_is_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_overwritten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_beside_a_live_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_exec, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_boot, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strangers_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_expand, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
