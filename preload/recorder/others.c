/* SPDX-License-Identifier: Apache-2.0 */
#include "others.h"
#include "procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct other {
	uint32_t pid, ppid;
	uint64_t start_stack;
};

struct others {
	struct other *all;
	size_t count, room;
};

static uint64_t anon_of(uint32_t pid, uint64_t page_size)
{
	char path[40], line[128];

	snprintf(path, sizeof(path), "/proc/%u/statm", pid);
	return procfs_read(path, line, sizeof(line)) > 0 ? procfs_parse_statm(line, page_size) : 0;
}

/* Private_Dirty, which anonymous pages are that nobody else maps; never more than `most`. */
static uint64_t own_anon_of(uint32_t pid, uint64_t most)
{
	char path[40], text[2048];
	uint64_t own;

	snprintf(path, sizeof(path), "/proc/%u/smaps_rollup", pid);
	if (procfs_read(path, text, sizeof(text)) <= 0)
		return most;
	own = procfs_parse_private(text);
	return own < most ? own : most;
}

/*
 * The shim scans mappings in short-lived processes that share the program's memory, and so does every vfork: what
 * they have is the other's. Asked before their bytes are read, so that one that ends meanwhile counts nothing.
 */
static bool shares_memory(uint32_t pid, uint32_t other)
{
	return syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0;
}

static int other_compare(const void *left, const void *right)
{
	const struct other *a = left, *b = right;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Where the stack begins is random for each exec, and a copy's begins where its parent's does. */
static bool is_copy(const struct others *others, const struct other *other)
{
	const struct other key = {.pid = other->ppid};
	const struct other *parent;

	if (other->start_stack <= 1)
		return false;
	parent = bsearch(&key, others->all, others->count, sizeof(key), other_compare);
	return parent && parent->start_stack == other->start_stack;
}

static void other_add(struct others *others, uint32_t pid)
{
	struct procfs_stat stat;

	if (procfs_read_stat(pid, &stat))
		return;
	if (others->count == others->room) {
		size_t room = others->room ? others->room * 2 : 256;
		struct other *moved = realloc(others->all, room * sizeof(*moved));

		if (!moved)
			return;
		others->all = moved;
		others->room = room;
	}
	others->all[others->count++] = (struct other){pid, stat.ppid, stat.start_stack};
}

static int others_list(struct others *others)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			other_add(others, (uint32_t)atoi(entry->d_name));
	closedir(dir);
	if (others->count)
		qsort(others->all, others->count, sizeof(*others->all), other_compare);
	return 0;
}

static uint64_t other_anon(const struct others *others, const struct other *other, uint64_t page_size)
{
	uint64_t anon;

	if (!is_copy(others, other))
		return anon_of(other->pid, page_size);
	if (shares_memory(other->ppid, other->pid))
		return 0;
	anon = anon_of(other->pid, page_size);
	return own_anon_of(other->pid, anon);
}

uint64_t others_anon(uint32_t pid, uint64_t page_size)
{
	struct others others = {0};
	uint64_t bytes = 0;
	size_t i;

	if (others_list(&others))
		return ST_UNKNOWN;
	for (i = 0; i < others.count; i++) {
		const struct other *other = &others.all[i];

		if (other->pid != pid && other->pid != (uint32_t)getpid() && !shares_memory(pid, other->pid))
			bytes += other_anon(&others, other, page_size);
	}
	free(others.all);
	return bytes;
}
