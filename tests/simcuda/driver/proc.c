/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells about this process: mappings, pages, memory of the machine. Raw system calls only. */
#include "tests/simcuda/driver/sim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define POPULATE_WRITE 23

/* PROCMAP_QUERY of Linux 6.11; older headers lack it. */
struct map_query {
	uint64_t size, query_flags, query_addr;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
#define MAP_QUERY         _IOWR('f', 17, struct map_query)
#define MAP_QUERY_OR_NEXT 0x10u
#define MAP_WRITABLE      0x2u
#define MAP_IS_SHARED     0x8u

struct mapping {
	uint64_t start, end, inode;
	bool writable, shared;
};

static long proc_open(const char *path)
{
	return sim_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

static void proc_close(long fd)
{
	sim_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* One line of /proc/self/maps: "start-end rw-p offset dev inode path". */
static void maps_parse(const char *line, struct mapping *ret_mapping)
{
	char *end;

	ret_mapping->start = strtoull(line, &end, 16);
	ret_mapping->end = strtoull(end + 1, &end, 16);
	ret_mapping->writable = end[2] == 'w';
	ret_mapping->shared = end[4] == 's';
	strtoull(end + 6, &end, 16); /* offset */
	end = strchr(end + 1, ' ');  /* device */
	ret_mapping->inode = end ? strtoull(end, NULL, 10) : 0;
}

/* Kernels before 6.11: read the text. The lock is held, so one buffer serves. */
static bool maps_search(long fd, uint64_t addr, struct mapping *ret_mapping)
{
	static char text[1 << 16];
	size_t held = 0;
	long got;

	while ((got = sim_syscall(SYS_read, fd, (long)(text + held), (long)(sizeof(text) - 1 - held), 0, 0,
	                          0)) > 0) {
		char *line = text, *newline;

		text[held + (size_t)got] = '\0';
		while ((newline = strchr(line, '\n'))) {
			*newline = '\0';
			maps_parse(line, ret_mapping);
			if (ret_mapping->end > addr)
				return true;
			line = newline + 1;
		}
		held = strlen(line);
		memmove(text, line, held);
	}
	return false;
}

static bool mapping_find(uint64_t addr, struct mapping *ret_mapping)
{
	struct map_query query = {
		.size = sizeof(query), .query_addr = addr, .query_flags = MAP_QUERY_OR_NEXT};
	long fd = proc_open("/proc/self/maps"), rc;
	bool found;

	if (fd < 0)
		return false;
	rc = sim_syscall(SYS_ioctl, fd, MAP_QUERY, (long)&query, 0, 0, 0);
	found = rc == 0;
	if (found)
		*ret_mapping = (struct mapping){query.start, query.end, query.inode,
		                                query.flags & MAP_WRITABLE, query.flags & MAP_IS_SHARED};
	else
		found = maps_search(fd, addr, ret_mapping);
	proc_close(fd);
	return found;
}

enum sim_source proc_source(uint64_t addr, uint64_t *ret_end)
{
	struct mapping mapping;

	if (!mapping_find(addr, &mapping) || mapping.start > addr) {
		*ret_end = UINT64_MAX;
		return SIM_SOURCE_UNKNOWN;
	}
	*ret_end = mapping.end;
	if (mapping.inode == 0)
		return SIM_SOURCE_ANONYMOUS;
	if (mapping.shared)
		return SIM_SOURCE_SHARED;
	return mapping.writable ? SIM_SOURCE_COW : SIM_SOURCE_PRIVATE;
}

static uint64_t entries_anonymous(const uint64_t *entries, size_t count)
{
	uint64_t anonymous = 0;

	for (size_t i = 0; i < count; i++) {
		bool here = entries[i] >> 62 != 0; /* in memory or in swap */
		bool file = entries[i] >> 61 & 1;

		anonymous += here && !file;
	}
	return anonymous;
}

uint64_t proc_anonymous(uint64_t addr, uint64_t size)
{
	uint64_t first = addr / SIM_PAGE, end = (addr + size + SIM_PAGE - 1) / SIM_PAGE, anonymous = 0;
	uint64_t entries[512];
	long fd = proc_open("/proc/self/pagemap");

	if (fd < 0)
		return 0;
	while (first < end) {
		size_t count = end - first < 512 ? end - first : 512;
		long got = sim_syscall(SYS_pread64, fd, (long)entries, (long)(count * 8), (long)(first * 8),
		                       0, 0);

		if (got <= 0)
			break;
		anonymous += entries_anonymous(entries, (size_t)got / 8);
		first += (uint64_t)got / 8;
	}
	proc_close(fd);
	return anonymous;
}

/* Writes each page's own byte back; a writer that comes in between wins, and we try again. */
static void pages_rewrite(uint64_t addr, uint64_t end)
{
	for (uint64_t at = addr; at < end; at += SIM_PAGE) {
		unsigned char *byte = (unsigned char *)at;
		unsigned char value = __atomic_load_n(byte, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(byte, &value, value, false, __ATOMIC_RELAXED,
		                                    __ATOMIC_RELAXED))
			;
	}
}

uint64_t proc_break(uint64_t addr, uint64_t size)
{
	uint64_t first = addr & ~(uint64_t)(SIM_PAGE - 1);
	uint64_t end = (addr + size + SIM_PAGE - 1) & ~(uint64_t)(SIM_PAGE - 1);
	uint64_t before = proc_anonymous(first, end - first);

	if (sim_syscall(SYS_madvise, (long)first, (long)(end - first), POPULATE_WRITE, 0, 0, 0) < 0)
		pages_rewrite(first, end);
	return (proc_anonymous(first, end - first) - before) * SIM_PAGE;
}

uint64_t proc_meminfo(const char *name)
{
	char text[4096];
	long fd = proc_open("/proc/meminfo"), got;
	char *at;

	if (fd < 0)
		return 0;
	got = sim_syscall(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	proc_close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strstr(text, name);
	return at && at[strlen(name)] == ':' ? strtoull(at + strlen(name) + 1, NULL, 10) * 1024 : 0;
}
