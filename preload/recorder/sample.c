/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "clock.h"
#include "others.h"
#include "procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX        (512u << 10) /* zoneinfo of a machine with many processors */
#define SIM_NAME        "/memfd:simcuda-"
#define SIM_LOOK        SECOND
#define SIM_SLACK       (UINT64_C(1) << 20)
#define OTHERS_SHARE    200 /* the look at all processes costs at most 1/200 of a core */
#define OTHERS_INTERVAL (500 * MILLISECOND)

static char text[TEXT_MAX]; /* one thread samples */

/* --- descriptors ----------------------------------------------------------------------------- */

static int open_proc(uint32_t pid, const char *name)
{
	char path[64];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/%s", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_in(const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static uint64_t read_limit(int fd)
{
	char number[64];

	return fd >= 0 && procfs_read_fd(fd, number, sizeof(number)) > 0 ? procfs_parse_limit(number)
	                                                                 : ST_UNKNOWN;
}

/* The limit that binds is the lowest from the program's cgroup up to the root. */
static void open_cgroup(struct sampler *sampler, const char *mount, const char *path, bool version1)
{
	const char *limit_name = version1 ? "memory.limit_in_bytes" : "memory.max";
	const char *used_name = version1 ? "memory.usage_in_bytes" : "memory.current";
	uint64_t lowest = ST_UNKNOWN;
	char folder[PATH_MAX];
	int at = snprintf(folder, sizeof(folder), "%s", mount);

	if (snprintf(folder + at, sizeof(folder) - (size_t)at, "%s", path) >= (int)sizeof(folder) - at)
		return;
	for (;;) {
		int limit = open_in(folder, limit_name);
		uint64_t value = read_limit(limit);

		if (value < lowest || (limit >= 0 && sampler->fd[SAMPLE_CGROUP_LIMIT] < 0)) {
			lowest = value;
			close(sampler->fd[SAMPLE_CGROUP_LIMIT]);
			close(sampler->fd[SAMPLE_CGROUP_USED]);
			sampler->fd[SAMPLE_CGROUP_LIMIT] = limit;
			sampler->fd[SAMPLE_CGROUP_USED] = open_in(folder, used_name);
		} else {
			close(limit);
		}
		if (strlen(folder) <= (size_t)at)
			return;
		*strrchr(folder, '/') = '\0';
	}
}

static void find_cgroup(struct sampler *sampler)
{
	char path[40], cgroup[1024], name[4096];
	struct stat stat_now;
	bool version1;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", sampler->ring->pid);
	if (procfs_read(path, name, sizeof(name)) <= 0 ||
	    procfs_parse_cgroup(name, cgroup, sizeof(cgroup), &version1))
		return;
	if (version1)
		open_cgroup(sampler, "/sys/fs/cgroup/memory", cgroup, true);
	else if (!stat("/sys/fs/cgroup/unified", &stat_now))
		open_cgroup(sampler, "/sys/fs/cgroup/unified", cgroup, false);
	else
		open_cgroup(sampler, "/sys/fs/cgroup", cgroup, false);
}

void sampler_init(struct sampler *sampler, struct st_ring *ring)
{
	*sampler = (struct sampler){.ring = ring, .page_size = (uint64_t)sysconf(_SC_PAGESIZE)};
	sampler->others = ST_UNKNOWN;
	sampler->fd[SAMPLE_STATUS] = open_proc(ring->pid, "status");
	sampler->fd[SAMPLE_IO] = open_proc(ring->pid, "io");
	sampler->fd[SAMPLE_STAT] = open_proc(ring->pid, "stat");
	sampler->fd[SAMPLE_MEMINFO] = open_proc(0, "meminfo");
	sampler->fd[SAMPLE_ZONEINFO] = open_proc(0, "zoneinfo");
	sampler->fd[SAMPLE_VMSTAT] = open_proc(0, "vmstat");
	sampler->fd[SAMPLE_PRESSURE] = open_proc(0, "pressure/memory");
	sampler->fd[SAMPLE_OWN] = open_proc(0, "self/status");
	sampler->fd[SAMPLE_CGROUP_USED] = -1;
	sampler->fd[SAMPLE_CGROUP_LIMIT] = -1;
	find_cgroup(sampler);
}

void sampler_release(struct sampler *sampler)
{
	int i;

	for (i = 0; i < SAMPLE_SOURCES; i++)
		close(sampler->fd[i]);
}

/* --- the program ----------------------------------------------------------------------------- */

/*
 * Descriptors are looked at, never opened: an open one would keep the memory after the program's death. They are
 * made some time after the driver is loaded, and what is not found yet would count as the program's own memory.
 */
static void find_simulated(struct sampler *sampler)
{
	char folder[40], link[128], name[300];
	struct dirent *entry;
	DIR *dir;

	sampler->sim_next = clock_now() + SIM_LOOK;
	snprintf(folder, sizeof(folder), "/proc/%u/fd", sampler->ring->pid);
	dir = opendir(folder);
	if (!dir)
		return;
	sampler->sim_count = 0;
	while ((entry = readdir(dir)) && sampler->sim_count < 4) {
		ssize_t n;

		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		n = readlink(name, link, sizeof(link) - 1);
		if (n > 0 && !strncmp(link, SIM_NAME, sizeof(SIM_NAME) - 1))
			sampler->sim_fd[sampler->sim_count++] = atoi(entry->d_name);
	}
	closedir(dir);
}

static uint64_t sum_simulated(const struct sampler *sampler)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < sampler->sim_count; i++) {
		struct stat stat_now;
		char path[64];

		snprintf(path, sizeof(path), "/proc/%u/fd/%d", sampler->ring->pid, sampler->sim_fd[i]);
		if (!stat(path, &stat_now))
			bytes += (uint64_t)stat_now.st_blocks * 512;
	}
	return bytes;
}

/* Shared memory that is not explained may be a part of the device that was not there when it was last looked for. */
static uint64_t simulated_bytes(struct sampler *sampler, uint64_t shared)
{
	uint64_t bytes;

	if (!atomic_load(&sampler->ring->simulated))
		return 0;
	bytes = sum_simulated(sampler);
	if (sampler->sim_count && bytes + SIM_SLACK >= shared && clock_now() < sampler->sim_next)
		return bytes;
	find_simulated(sampler);
	return sum_simulated(sampler);
}

/* --- the others ------------------------------------------------------------------------------ */

static void look_at_others(struct sampler *sampler, bool exact)
{
	uint64_t before = clock_cost(), now = clock_now(), pause;

	if (now < sampler->others_next && !(exact && now + 10 * sampler->others_cost > sampler->others_next))
		return;
	sampler->others = others_anon(sampler->ring->pid, sampler->page_size);
	sampler->others_cost = clock_cost() - before;
	pause = sampler->others_cost * OTHERS_SHARE;
	sampler->others_next = now + (pause > OTHERS_INTERVAL ? pause : OTHERS_INTERVAL);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void sample_clear(struct st_ev_sample *sample)
{
	memset(sample, 0xff, sizeof(*sample));
	sample->r = (struct st_record){.kind = ST_KIND_sample};
}

static bool read_source(const struct sampler *sampler, enum sample_source source)
{
	return sampler->fd[source] >= 0 && procfs_read_fd(sampler->fd[source], text, sizeof(text)) > 0;
}

static void read_faults(const struct sampler *sampler, struct st_ev_sample *sample)
{
	struct procfs_stat stat;

	if (read_source(sampler, SAMPLE_STAT) && !procfs_parse_stat(text, &stat))
		sample->major_faults = stat.major_faults;
}

/* The program and the pool first and close together: these are subtracted from each other. */
static void read_sources(struct sampler *sampler, struct st_ev_sample *sample)
{
	if (read_source(sampler, SAMPLE_STATUS))
		procfs_parse_status(text, sample);
	if (sample->rss_shmem != ST_UNKNOWN)
		sample->sim_device = simulated_bytes(sampler, sample->rss_shmem);
	if (sample->sim_device != ST_UNKNOWN && sample->sim_device > sample->rss_shmem)
		sample->sim_device = sample->rss_shmem;
	if (read_source(sampler, SAMPLE_MEMINFO))
		procfs_parse_meminfo(text, sample);
	if (read_source(sampler, SAMPLE_ZONEINFO))
		procfs_parse_zoneinfo(text, sampler->page_size, sample);
	if (read_source(sampler, SAMPLE_IO))
		procfs_parse_io(text, sample);
	read_faults(sampler, sample);
	if (read_source(sampler, SAMPLE_VMSTAT))
		procfs_parse_vmstat(text, sample);
	if (read_source(sampler, SAMPLE_PRESSURE))
		procfs_parse_pressure(text, sample);
	if (read_source(sampler, SAMPLE_OWN))
		sample->recorder = procfs_parse_own(text);
	sample->cgroup_used = read_limit(sampler->fd[SAMPLE_CGROUP_USED]);
	sample->cgroup_limit = read_limit(sampler->fd[SAMPLE_CGROUP_LIMIT]);
}

void sampler_take(struct sampler *sampler, struct out *out, enum st_moment reason, bool exact)
{
	uint64_t before = clock_cost(), cost;
	struct st_ev_sample sample;

	sample_clear(&sample);
	sample.reason = reason;
	sample.r.time = clock_now();
	read_sources(sampler, &sample);
	cost = clock_cost() - before;
	look_at_others(sampler, exact);
	sample.other_anon = sampler->others;
	sampler->cost = cost > sampler->cost ? cost : sampler->cost - (sampler->cost - cost) / 8;
	sampler->last = sample;
	out_put(out, &sample.r, sizeof(sample), NULL, 0);
}

uint64_t sampler_spare(const struct sampler *sampler)
{
	const struct st_ev_sample *last = &sampler->last;

	if (last->mem_available == ST_UNKNOWN)
		return 0;
	return last->mem_available + (last->percpu_free == ST_UNKNOWN ? 0 : last->percpu_free);
}
