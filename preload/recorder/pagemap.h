/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous pages of a range of the program's memory: there, and not the file's. */
#ifndef SPARKTRACE_RECORDER_PAGEMAP_H
#define SPARKTRACE_RECORDER_PAGEMAP_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

#define PAGEMAP_RANGES 2048

struct pagemap {
	int fd; /* /proc/PID/pagemap */
	uint64_t page_size;
	bool old; /* the kernel has no PAGEMAP_SCAN (before 6.7): the map itself is read */
};

struct pagemap_ranges {
	size_t count;
	uint64_t pairs[PAGEMAP_RANGES][2]; /* first, end */
	uint64_t bytes;
	uint64_t next; /* how far they go: the end of what was asked, or less when there was no more room */
};

/* 0 or negative errno (-EACCES: the program may not be looked at). */
int pagemap_open(struct pagemap *pagemap, uint32_t pid, uint64_t page_size);
void pagemap_close(struct pagemap *pagemap);

/* Anonymous ranges of [start, end), page-aligned. 0 or negative errno (-ESRCH: that memory is gone, or going). */
int pagemap_find(struct pagemap *pagemap, uint64_t start, uint64_t end, struct pagemap_ranges *ret_ranges);

/* Which way it was found. */
enum st_source pagemap_source(const struct pagemap *pagemap);

/* For the test: entries of /proc/PID/pagemap, from address `start`, added to ranges. False: no more room. */
bool pagemap_add_entries(struct pagemap_ranges *ranges, const uint64_t *entries, size_t count, uint64_t start,
                         uint64_t page_size);

#endif
