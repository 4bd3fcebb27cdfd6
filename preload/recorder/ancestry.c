/* SPDX-License-Identifier: Apache-2.0 */
#include "ancestry.h"
#include "procfs.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64
#define LIBRARY   "/libsparktrace.so"

/* Whether our library is mapped there; of another user's process nobody may tell, and it is none of ours then. */
static bool has_library(uint32_t pid)
{
	char path[40], line[4400];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, LIBRARY) != NULL;
	fclose(maps);
	return found;
}

static void write_run(uint32_t pid, uint64_t start_time, struct out *out)
{
	char path[40], name[32];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	if (procfs_read(path, name, sizeof(name)) < 0)
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	out_info(out, "run", "%u.%llu %s", pid, (unsigned long long)start_time, name);
}

/* A copy has its stack where its parent's is; after an exec it is elsewhere. 0 and 1 stand for "may not be seen". */
static bool is_copy(const struct procfs_stat *child, const struct procfs_stat *parent)
{
	return child->start_stack > 1 && child->start_stack == parent->start_stack;
}

void ancestry_write(const struct st_ring *ring, struct out *out)
{
	struct procfs_stat stat, parent;
	uint32_t pid = ring->pid;
	int depth;

	if (procfs_read_stat(pid, &stat) || stat.start_time != ring->start_time)
		return;
	for (depth = 0; depth < DEPTH_MAX && stat.ppid; depth++) {
		/* One that began after its child is a stranger who was given the number of a parent that is gone. */
		if (procfs_read_stat(stat.ppid, &parent) || parent.start_time > stat.start_time)
			break;
		if (!depth && is_copy(&stat, &parent))
			out_info(out, "forked_from", "%u", stat.ppid);
		if (!has_library(stat.ppid))
			break;
		pid = stat.ppid;
		stat = parent;
	}
	write_run(pid, stat.start_time, out);
}
