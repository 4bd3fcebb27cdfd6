/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May pages be read-only that the program believes to be writable? Not where memory that was promised at the mapping
 * could be refused at the store, nor beside a thread in which a fault would kill.
 */
#include "relief.h"

#include "aside.h"
#include "signals.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "banned.h"

/* A thread that is being made has all signals blocked for a moment. */
#define LOOKS    50
#define PAUSE_NS 1000000

/* Of the calling thread, which has all signals blocked while it waits for the look. */
struct check {
	uint32_t pid, tid;
	uint64_t mask;
	const char *why;
	int error;
};

struct entry {
	uint64_t ino, offset;
	uint16_t length;
	unsigned char type;
	char name[];
};

/* Strict accounting, or a limit: both count private writable mappings when they become writable. */
static int check_memory(struct check *check)
{
	struct rlimit64 limit = {.rlim_cur = RLIM64_INFINITY};
	char text[16];

	if (sys_read_text("/proc/sys/vm/overcommit_memory", text, sizeof(text)) > 0 && text[0] == '2') {
		check->why = "relief is off: vm.overcommit_memory is 2";
		return -ENOMEM;
	}
	sys_call4(SYS_prlimit64, 0, RLIMIT_DATA, 0, (long)&limit);
	if (limit.rlim_cur != RLIM64_INFINITY) {
		check->why = "relief is off: there is a limit on data (ulimit -d)";
		return -ENOMEM;
	}
	return 0;
}

/* The folder of a thread, and what of it is asked for. */
static void thread_path(char *ret_path, size_t size, uint32_t pid, const char *rest)
{
	struct text text = text_in(ret_path, size);

	text_add(&text, "/proc/");
	text_number(&text, pid);
	text_add(&text, "/task/");
	text_add(&text, rest);
}

/* Does the status of a thread tell that SIGSEGV is really blocked in it? One that has ended has nothing blocked. */
static bool thread_deaf(const struct check *check, const char *name)
{
	char path[64], status[4096], rest[32];
	struct text text = text_in(rest, sizeof(rest));
	const char *line;

	if (strtoul(name, NULL, 10) == check->tid)
		return check->mask & SIGNAL_BIT(SIGSEGV);
	text_add(&text, name);
	text_add(&text, "/status");
	thread_path(path, sizeof(path), check->pid, rest);
	if (sys_read_text(path, status, sizeof(status)) <= 0)
		return false;
	line = strstr(status, "\nSigBlk:");
	return line && (strtoull(line + strlen("\nSigBlk:"), NULL, 16) & SIGNAL_BIT(SIGSEGV));
}

static bool any_deaf(const struct check *check, int folder)
{
	_Alignas(8) char buffer[2048];
	long bytes;

	while ((bytes = sys_call3(SYS_getdents64, folder, (long)buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < bytes;) {
			const struct entry *entry = (const void *)(buffer + at);

			at += entry->length;
			if (entry->name[0] != '.' && thread_deaf(check, entry->name))
				return true;
		}
	return false;
}

static bool look_at_threads(const struct check *check)
{
	char path[64];
	long folder;
	bool deaf;

	thread_path(path, sizeof(path), check->pid, "");
	folder = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (folder < 0)
		return true; /* cannot tell */
	deaf = any_deaf(check, (int)folder);
	sys_close((int)folder);
	return deaf;
}

/* Who blocked it by a raw system call, or before us. What goes through libc is hidden (signals.h). */
static int check_threads(struct check *check)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (int i = 0; i < LOOKS; i++) {
		if (!look_at_threads(check))
			return 0;
		sys_call3(SYS_nanosleep, (long)&pause, 0, 0);
	}
	check->why = "relief is off: a thread has SIGSEGV blocked, or /proc does not tell";
	return -EBUSY;
}

/* Runs aside: no descriptor of the program is used. */
static int check_run(void *arg)
{
	struct check *check = arg;

	check->error = check_memory(check);
	if (check->error == 0)
		check->error = check_threads(check);
	return 0;
}

int relief_check(const char **ret_why)
{
	struct check check = {
		.pid = sys_getpid(), .tid = sys_gettid(), .why = "relief is off: no look at the threads"};
	int error;

	sys_sigmask(SIG_BLOCK, NULL, &check.mask);
	error = aside_run(check_run, &check);
	*ret_why = check.why;
	return error < 0 ? error : check.error;
}
