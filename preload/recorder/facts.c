/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"
#include "ancestry.h"
#include "clock.h"
#include "pool.h"
#include "procfs.h"
#include "ringfile.h"
#include "scrub.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const rank_names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                         "SLURM_PROCID"};
static const char *const world_names[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Files of one line, as they are. */
static const struct {
	const char *name, *path;
} texts[] = {
	{"machine", "/sys/class/dmi/id/product_name"},
	{"machine_vendor", "/sys/class/dmi/id/sys_vendor"},
	{"machine_tree", "/proc/device-tree/model"},
	{"bios", "/sys/class/dmi/id/bios_version"},
	{"driver", "/proc/driver/nvidia/version"},
	{"huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"},
	{"min_free_kbytes", "/proc/sys/vm/min_free_kbytes"},
	{"swappiness", "/proc/sys/vm/swappiness"},
	{"overcommit", "/proc/sys/vm/overcommit_memory"},
};

static bool find_variable(const struct st_ring *ring, const char *const *names, size_t count, char *ret_value,
                          size_t size)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!ringfile_get(ring->environment, names[i], ret_value, size) && ret_value[0])
			return true;
	ret_value[0] = '\0';
	return false;
}

void facts_rank(const struct st_ring *ring, char *ret_rank, size_t size)
{
	find_variable(ring, rank_names, COUNT(rank_names), ret_rank, size);
}

static uint64_t number_of(const struct st_ring *ring, const char *const *names, size_t count)
{
	char value[32], *end;
	uint64_t number;

	if (!find_variable(ring, names, count, value, sizeof(value)))
		return ST_UNKNOWN;
	number = strtoull(value, &end, 10);
	return *end ? ST_UNKNOWN : number;
}

/* Ticks after boot count suspended time too, CLOCK_MONOTONIC does not. */
static uint64_t start_of(const struct st_ring *ring)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK), now = clock_now();
	uint64_t asleep = clock_read(CLOCK_BOOTTIME) - now;
	uint64_t start = ring->start_time / ticks * SECOND + ring->start_time % ticks * (SECOND / ticks);

	return start > asleep ? start - asleep : 0;
}

static void write_process(const struct facts *facts, struct out *out)
{
	const struct st_ring *ring = facts->ring;
	struct procfs_stat stat = {0};

	if (procfs_read_stat(ring->pid, &stat) || stat.start_time != ring->start_time)
		stat.ppid = 0;
	OUT(out, process, .pid = ring->pid, .ppid = stat.ppid, .uid = geteuid(),
	    .page_size = (uint64_t)sysconf(_SC_PAGESIZE), .pool = facts->pool,
	    .cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), .start = facts->start,
	    .rank = number_of(ring, rank_names, COUNT(rank_names)),
	    .world = number_of(ring, world_names, COUNT(world_names)));
}

/* --- info ------------------------------------------------------------------------------------ */

static void write_texts(struct facts *facts, struct out *out)
{
	char value[512];
	size_t i;

	for (i = 0; i < COUNT(texts); i++) {
		if (procfs_read(texts[i].path, value, sizeof(value)) <= 0)
			continue;
		value[strcspn(value, "\n")] = '\0';
		if (value[0])
			out_info(out, texts[i].name, "%s", value);
		if (!strncmp(texts[i].name, "machine", 7)) {
			size_t used = strlen(facts->machine);

			snprintf(facts->machine + used, sizeof(facts->machine) - used, "%s ", value);
		}
	}
}

static void write_command(const struct st_ring *ring, struct out *out)
{
	static char arguments[32768], line[8000];
	char path[40], exe[PATH_MAX];
	ssize_t n;
	long bytes;

	snprintf(path, sizeof(path), "/proc/%u/exe", ring->pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n > 0)
		out_info(out, "exe", "%.*s", (int)n, exe);
	snprintf(path, sizeof(path), "/proc/%u/cmdline", ring->pid);
	bytes = procfs_read(path, arguments, sizeof(arguments));
	if (bytes > 0) {
		scrub_arguments(arguments, (size_t)bytes, line, sizeof(line));
		out_info(out, "cmdline", "%s", line);
	}
	out_info(out, "cwd", "%s", ring->directory);
}

static void write_system(const struct st_ring *ring, struct out *out)
{
	struct utsname name;

	if (!uname(&name)) {
		out_info(out, "host", "%s", name.nodename);
		out_info(out, "kernel", "%s %s %s", name.sysname, name.release, name.machine);
	}
	out_info(out, "boot_id", "%.36s", ring->boot_id);
	out_info(out, "uptime_seconds", "%llu", (unsigned long long)(clock_read(CLOCK_BOOTTIME) / SECOND));
	out_info(out, "glibc", "%s", gnu_get_libc_version());
	out_info(out, "sparktrace", "%s", ST_VERSION);
	out_info(out, "ring_bytes", "%llu", (unsigned long long)ring->size);
}

/* Lines NAME=value, each an info record with its own prefix. */
static void write_lines(const char *prefix, const char *lines, struct out *out)
{
	const char *line;

	for (line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		int length = (int)strcspn(line, "\n"), equals = (int)strcspn(line, "=");
		char name[128];

		if (equals >= length ||
		    snprintf(name, sizeof(name), "%s.%.*s", prefix, equals, line) >= (int)sizeof(name))
			continue;
		out_info(out, name, "%.*s", length - equals - 1, line + equals + 1);
	}
}

void facts_write(struct facts *facts, struct st_ring *ring, struct out *out)
{
	*facts = (struct facts){.ring = ring, .start = start_of(ring)};
	facts->gpu_fd = pool_ask_gpu(ring->library_path);
	facts->pool = atomic_load(&ring->simulated) ? ST_POOL_SIMULATED : ST_POOL_UNKNOWN;
	write_texts(facts, out);
	if (facts->pool == ST_POOL_UNKNOWN)
		facts->pool = pool_class(facts->machine, NULL);
	write_process(facts, out);
	write_command(ring, out);
	write_system(ring, out);
	ancestry_write(ring, out);
	write_lines("env", ring->environment, out);
	write_lines("setting", ring->settings, out);
}

void facts_write_late(struct st_ring *ring, struct out *out)
{
	struct facts facts = {.ring = ring, .start = start_of(ring)};

	facts.pool = atomic_load(&ring->simulated) ? ST_POOL_SIMULATED : ST_POOL_UNKNOWN;
	write_process(&facts, out);
	out_info(out, "cwd", "%s", ring->directory);
	out_info(out, "boot_id", "%.36s", ring->boot_id);
	out_info(out, "sparktrace", "%s", ST_VERSION);
	write_lines("env", ring->environment, out);
	write_lines("setting", ring->settings, out);
}

/* --- later ----------------------------------------------------------------------------------- */

static void read_gpu(struct facts *facts, struct out *out)
{
	ssize_t n;

	if (facts->gpu_fd < 0)
		return;
	n = read(facts->gpu_fd, facts->gpu, sizeof(facts->gpu) - 1);
	if (n < 0)
		return; /* not yet */
	close(facts->gpu_fd);
	facts->gpu_fd = -1;
	facts->gpu[n] = '\0';
	if (n)
		out_info(out, "gpu", "%s", facts->gpu);
}

void facts_look(struct facts *facts, struct out *out)
{
	enum st_pool_class pool;

	read_gpu(facts, out);
	if (facts->pool == ST_POOL_SIMULATED)
		return;
	pool = atomic_load(&facts->ring->simulated) ? ST_POOL_SIMULATED
	                                            : pool_class(facts->machine, facts->gpu);
	if (pool == facts->pool)
		return;
	facts->pool = pool;
	write_process(facts, out);
}

void facts_release(struct facts *facts)
{
	if (facts->gpu_fd >= 0)
		close(facts->gpu_fd);
}
