/* SPDX-License-Identifier: Apache-2.0 */
#include "pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* linux/fs.h of 6.7. */
struct page_region_now {
	uint64_t start, end, categories;
};
struct pm_scan_arg_now {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define PAGEMAP_SCAN_NOW    _IOWR('f', 16, struct pm_scan_arg_now)
#define PAGE_IS_FILE_NOW    (UINT64_C(1) << 2)
#define PAGE_IS_PRESENT_NOW (UINT64_C(1) << 3)

/* Entries of the map before that: Documentation/admin-guide/mm/pagemap.rst. */
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_FILE    (UINT64_C(1) << 61)

int pagemap_open(struct pagemap *pagemap, uint32_t pid, uint64_t page_size)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	*pagemap = (struct pagemap){.fd = open(path, O_RDONLY | O_CLOEXEC), .page_size = page_size};
	return pagemap->fd < 0 ? -errno : 0;
}

void pagemap_close(struct pagemap *pagemap)
{
	if (pagemap->fd >= 0)
		close(pagemap->fd);
	pagemap->fd = -1;
}

enum st_source pagemap_source(const struct pagemap *pagemap)
{
	return pagemap->old ? ST_SOURCE_PAGEMAP : ST_SOURCE_PAGEMAP_SCAN;
}

/* False: no room. */
static bool add_range(struct pagemap_ranges *ranges, uint64_t start, uint64_t end)
{
	if (ranges->count && ranges->pairs[ranges->count - 1][1] == start) {
		ranges->pairs[ranges->count - 1][1] = end;
	} else {
		if (ranges->count == PAGEMAP_RANGES)
			return false;
		ranges->pairs[ranges->count][0] = start;
		ranges->pairs[ranges->count++][1] = end;
	}
	ranges->bytes += end - start;
	return true;
}

/*
 * walk_end tells nothing after a walk that came to its end: fewer regions than asked for is how that
 * is known.
 */
static int scan(const struct pagemap *pagemap, uint64_t start, uint64_t end, struct pagemap_ranges *ranges)
{
	static struct page_region_now regions[PAGEMAP_RANGES];
	struct pm_scan_arg_now argument = {
		.size = sizeof(argument),
		.start = start,
		.end = end,
		.vec = (uintptr_t)regions,
		.vec_len = PAGEMAP_RANGES,
		.category_inverted = PAGE_IS_FILE_NOW,
		.category_mask = PAGE_IS_FILE_NOW | PAGE_IS_PRESENT_NOW,
		.return_mask = PAGE_IS_PRESENT_NOW,
	};
	int count = ioctl(pagemap->fd, PAGEMAP_SCAN_NOW, &argument), i;

	if (count < 0)
		return -errno;
	for (i = 0; i < count; i++)
		add_range(ranges, regions[i].start, regions[i].end);
	ranges->next = count < PAGEMAP_RANGES ? end : regions[count - 1].end;
	return 0;
}

bool pagemap_add_entries(struct pagemap_ranges *ranges, const uint64_t *entries, size_t count, uint64_t start,
                         uint64_t page_size)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t at = start + i * page_size;

		if ((entries[i] & ENTRY_PRESENT) && !(entries[i] & ENTRY_FILE) &&
		    !add_range(ranges, at, at + page_size)) {
			ranges->next = at;
			return false;
		}
	}
	ranges->next = start + count * page_size;
	return true;
}

static int read_map(const struct pagemap *pagemap, uint64_t start, uint64_t end,
                    struct pagemap_ranges *ranges)
{
	static uint64_t entries[8192];
	uint64_t page = pagemap->page_size, at = start;

	while (at < end) {
		size_t want = (size_t)((end - at) / page);
		ssize_t n;

		if (want > sizeof(entries) / sizeof(entries[0]))
			want = sizeof(entries) / sizeof(entries[0]);
		n = pread(pagemap->fd, entries, want * 8, (off_t)(at / page * 8));
		if (n < 8)
			return n < 0 ? -errno : -ESRCH; /* nothing is read of a process without memory */
		if (!pagemap_add_entries(ranges, entries, (size_t)n / 8, at, page))
			return 0;
		at += (uint64_t)n / 8 * page;
	}
	return 0;
}

int pagemap_find(struct pagemap *pagemap, uint64_t start, uint64_t end, struct pagemap_ranges *ret_ranges)
{
	int err = 0;

	ret_ranges->count = 0;
	ret_ranges->bytes = 0;
	if (!pagemap->old) {
		err = scan(pagemap, start, end, ret_ranges);
		pagemap->old = err == -ENOTTY || err == -EINVAL || err == -ENOSYS;
	}
	if (pagemap->old)
		err = read_map(pagemap, start, end, ret_ranges);
	return err;
}
