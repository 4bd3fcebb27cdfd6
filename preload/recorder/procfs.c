/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number of a text and the field of a sample that it goes to. */
struct number {
	const char *name;
	size_t field;
	bool add;    /* several lines make one field */
	bool prefix; /* any name that begins so */
};

#define FIELD(f) offsetof(struct st_ev_sample, f)

static const struct number meminfo_numbers[] = {
	{"MemTotal", FIELD(mem_total), 0, 0},
	{"MemFree", FIELD(mem_free), 0, 0},
	{"MemAvailable", FIELD(mem_available), 0, 0},
	{"Buffers", FIELD(buffers), 0, 0},
	{"Cached", FIELD(cached), 0, 0},
	{"SReclaimable", FIELD(sreclaimable), 0, 0},
	{"Shmem", FIELD(shmem), 0, 0},
	{"AnonPages", FIELD(anon_pages), 0, 0},
	{"Mapped", FIELD(mapped), 0, 0},
	{"Active", FIELD(active), 0, 0},
	{"Inactive", FIELD(inactive), 0, 0},
	{"Slab", FIELD(slab), 0, 0},
	{"PageTables", FIELD(page_tables), 0, 0},
	{"Unevictable", FIELD(unevictable), 0, 0},
	{"Mlocked", FIELD(mlocked), 0, 0},
	{"Dirty", FIELD(dirty), 0, 0},
	{"Writeback", FIELD(writeback), 0, 0},
	{"CmaTotal", FIELD(cma_total), 0, 0},
	{"CmaFree", FIELD(cma_free), 0, 0},
	{"SwapTotal", FIELD(swap_total), 0, 0},
	{"SwapFree", FIELD(swap_free), 0, 0},
	{NULL, 0, 0, 0},
};

static const struct number status_numbers[] = {
	{"RssAnon", FIELD(rss_anon), 0, 0},   {"RssFile", FIELD(rss_file), 0, 0},
	{"RssShmem", FIELD(rss_shmem), 0, 0}, {"VmSwap", FIELD(swap), 0, 0},
	{"VmHWM", FIELD(rss_peak), 0, 0},     {NULL, 0, 0, 0},
};

static const struct number io_numbers[] = {
	{"read_bytes", FIELD(io_read), 0, 0},
	{NULL, 0, 0, 0},
};

static const struct number own_numbers[] = {
	{"RssAnon", FIELD(recorder), 1, 0},
	{"RssShmem", FIELD(recorder), 1, 0},
	{NULL, 0, 0, 0},
};

static const struct number vmstat_numbers[] = {
	{"workingset_refault_file", FIELD(refaults), 0, 0},
	{"pgsteal_direct", FIELD(reclaimed), 0, 0},
	{"allocstall", FIELD(stalls), 1, 1},
	{"compact_fail", FIELD(compact_fails), 0, 0},
	{"oom_kill", FIELD(oom_kills), 0, 0},
	{NULL, 0, 0, 0},
};

static bool is_named(const struct number *number, const char *name, size_t length)
{
	size_t own = strlen(number->name);

	return (own == length || (number->prefix && own < length)) && !memcmp(number->name, name, own);
}

static void put_number(const struct number *number, uint64_t value, struct st_ev_sample *sample)
{
	uint64_t *field = (uint64_t *)(void *)((char *)sample + number->field);

	*field = number->add && *field != ST_UNKNOWN ? *field + value : value;
}

/* Lines "name: 12 kB" or "name 12". */
static void parse_numbers(const char *text, const struct number *numbers, struct st_ev_sample *sample)
{
	const char *line, *next;

	for (line = text; *line; line = next) {
		size_t length = strcspn(line, ": \t\n"), rest;
		const struct number *number = numbers;
		uint64_t value;
		char *end;

		next = line + strcspn(line, "\n");
		next += *next == '\n';
		rest = length + strspn(line + length, ": \t");
		if (line[rest] < '0' || line[rest] > '9')
			continue;
		while (number->name && !is_named(number, line, length))
			number++;
		if (!number->name)
			continue;
		value = strtoull(line + rest, &end, 10);
		put_number(number, strncmp(end, " kB", 3) ? value : value * 1024, sample);
	}
}

void procfs_parse_meminfo(const char *text, struct st_ev_sample *sample)
{
	parse_numbers(text, meminfo_numbers, sample);
}

void procfs_parse_status(const char *text, struct st_ev_sample *sample)
{
	parse_numbers(text, status_numbers, sample);
}

void procfs_parse_io(const char *text, struct st_ev_sample *sample)
{
	parse_numbers(text, io_numbers, sample);
}

void procfs_parse_vmstat(const char *text, struct st_ev_sample *sample)
{
	parse_numbers(text, vmstat_numbers, sample);
}

uint64_t procfs_parse_own(const char *text)
{
	struct st_ev_sample sample = {.recorder = ST_UNKNOWN};

	parse_numbers(text, own_numbers, &sample);
	return sample.recorder;
}

void procfs_parse_pressure(const char *text, struct st_ev_sample *sample)
{
	const char *some = strstr(text, "some "), *full = strstr(text, "full ");

	if (some)
		sscanf(some, "some %*s %*s %*s total=%" SCNu64, &sample->psi_some);
	if (full)
		sscanf(full, "full %*s %*s %*s total=%" SCNu64, &sample->psi_full);
}

/*
 * In a zone "high 123" is its watermark, while "high:" belongs to a CPU's list; "count:" occurs
 * in these lists only.
 */
void procfs_parse_zoneinfo(const char *text, uint64_t page_size, struct st_ev_sample *sample)
{
	uint64_t lists = 0, high = 0;
	const char *line;
	bool seen = false;

	for (line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, " \n");
		if (!strncmp(line, "count:", 6))
			lists += strtoull(line + 6, NULL, 10);
		else if (!strncmp(line, "high ", 5))
			high += strtoull(line + 5, NULL, 10);
		else
			continue;
		seen = true;
	}
	if (!seen)
		return;
	sample->percpu_free = lists * page_size;
	sample->watermark = high * page_size;
}

uint64_t procfs_parse_private(const char *text)
{
	const char *at = strstr(text, "\nPrivate_Dirty:");
	unsigned long long kilobytes;

	if (!at || sscanf(at, " Private_Dirty: %llu kB", &kilobytes) != 1)
		return ST_UNKNOWN;
	return kilobytes * 1024;
}

uint64_t procfs_parse_statm(const char *text, uint64_t page_size)
{
	uint64_t resident, shared;

	if (sscanf(text, "%*s %" SCNu64 " %" SCNu64, &resident, &shared) != 2 || shared > resident)
		return 0;
	return (resident - shared) * page_size;
}

/* The name in brackets may hold anything, brackets too: the fields begin after the last one. */
int procfs_parse_stat(const char *text, struct procfs_stat *ret_stat)
{
	const char *at = strrchr(text, ')');
	struct procfs_stat stat = {0};
	int field;

	if (!at || at[1] != ' ' || !at[2])
		return -EINVAL;
	stat.state = at[2];
	at += 3;
	for (field = 4; field <= 52 && *at; field++) {
		uint64_t value = strtoull(at, (char **)&at, 10);

		if (field == 4)
			stat.ppid = (uint32_t)value;
		else if (field == 12)
			stat.major_faults = value;
		else if (field == 20)
			stat.threads = (uint32_t)value;
		else if (field == 22)
			stat.start_time = value;
		else if (field == 28)
			stat.start_stack = value;
		else if (field == 52)
			stat.exit_code = (int)value;
	}
	if (field <= 22)
		return -EINVAL;
	*ret_stat = stat;
	return 0;
}

bool procfs_is_over(const struct procfs_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

int procfs_parse_map(char *line, struct procfs_map *ret_map)
{
	struct procfs_map map = {0};
	char mode[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &map.start, &map.end,
	           mode, &map.offset, &map.major, &map.minor, &map.ino, &at) != 7)
		return -EINVAL;
	map.read = mode[0] == 'r';
	map.write = mode[1] == 'w';
	map.execute = mode[2] == 'x';
	map.private = mode[3] == 'p';
	line[at + (int)strcspn(line + at, "\n")] = '\0';
	map.path = line + at;
	*ret_map = map;
	return 0;
}

int procfs_parse_cgroup(const char *text, char *ret_path, size_t size, bool *ret_version1)
{
	const char *line, *found = NULL;
	bool version1 = false;

	for (line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "0::/", 4) && !version1) {
			found = line + 3;
		} else {
			const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
			const char *memory = names ? strstr(names, "memory") : NULL;

			if (path && memory && memory < path && path[1] == '/' &&
			    (memory[6] == ',' || memory[6] == ':')) {
				found = path + 1;
				version1 = true;
			}
		}
	}
	if (!found || strcspn(found, "\n") >= size)
		return -ENOENT;
	snprintf(ret_path, size, "%.*s", (int)strcspn(found, "\n"), found);
	*ret_version1 = version1;
	return 0;
}

uint64_t procfs_parse_limit(const char *text)
{
	uint64_t value;
	char *end;

	value = strtoull(text, &end, 10);
	if (end == text || value >= UINT64_C(1) << 60)
		return ST_UNKNOWN;
	return value;
}

long procfs_read_fd(int fd, char *ret_text, size_t size)
{
	size_t used = 0;
	ssize_t n;

	do {
		n = pread(fd, ret_text + used, size - 1 - used, (off_t)used);
		if (n < 0)
			return -errno;
		used += (size_t)n;
	} while (n && used < size - 1);
	ret_text[used] = '\0';
	return (long)used;
}

long procfs_read(const char *path, char *ret_text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return -errno;
	n = procfs_read_fd(fd, ret_text, size);
	close(fd);
	return n;
}

int procfs_read_stat(uint32_t pid, struct procfs_stat *ret_stat)
{
	char path[40], text[1024];
	long n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	n = procfs_read(path, text, sizeof(text));
	return n < 0 ? (int)n : procfs_parse_stat(text, ret_stat);
}

bool procfs_is_alive(uint32_t pid, uint64_t start_time)
{
	struct procfs_stat stat;

	return !procfs_read_stat(pid, &stat) && stat.start_time == start_time;
}
