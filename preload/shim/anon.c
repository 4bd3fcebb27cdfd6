/* SPDX-License-Identifier: Apache-2.0 */
#include "anon.h"

#include "aside.h"
#include "event.h"
#include "maps.h"
#include "pages.h"
#include "sys.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "banned.h"

#define REGIONS 1024 /* ranges a record */
#define WORDS   4096 /* of /proc/self/pagemap at a time */

/* linux/fs.h has these from 6.7 on; they are ABI. */
struct scan_region {
	uint64_t start, end, categories;
};
struct scan_arguments {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL _IOWR('f', 16, struct scan_arguments)
#define IS_FILE    (1u << 2)
#define IS_PRESENT (1u << 3)
#define IS_SWAPPED (1u << 4)
/* Bits of one word of pagemap. */
#define WORD_PRESENT (UINT64_C(1) << 63)
#define WORD_SWAPPED (UINT64_C(1) << 62)
#define WORD_FILE    (UINT64_C(1) << 61)

/* One part of a mapping, worked on aside; records leave from there. */
struct scan {
	struct mapping part;
	enum st_moment why;
	enum st_source source;
	uint64_t from; /* not yet covered by a record */
	uint64_t bytes;
	bool found; /* copies, or it could not be seen whether there are */
	size_t count;
	uint64_t pairs[REGIONS][2];
	struct scan_region regions[REGIONS];
	uint64_t words[WORDS];
};

/* A record for what was looked at up to `to`; the next one begins there. */
static void scan_emit(struct scan *scan, uint64_t to, bool complete)
{
	EVENT_TAIL(anon, scan->pairs, scan->count * sizeof(scan->pairs[0]), .addr = scan->from,
	           .size = to - scan->from, .file = scan->part.file,
	           .offset = scan->part.offset + (scan->from - scan->part.start), .bytes = scan->bytes,
	           .reason = scan->why, .source = scan->source, .complete = complete);
	scan->from = to;
	scan->bytes = 0;
	scan->count = 0;
}

static void scan_add(struct scan *scan, uint64_t start, uint64_t end)
{
	uint64_t *last = scan->count ? scan->pairs[scan->count - 1] : NULL;

	scan->bytes += end - start;
	scan->found = true;
	if (last && last[1] == start) {
		last[1] = end;
		return;
	}
	scan->pairs[scan->count][0] = start;
	scan->pairs[scan->count][1] = end;
	if (++scan->count == REGIONS)
		scan_emit(scan, end, true);
}

/* Kernel 6.7 on. A walk is over when it gave fewer ranges than asked for: walk_end is stale then. */
static int scan_regions(struct scan *scan, int fd)
{
	struct scan_arguments arguments = {
		.size = sizeof(arguments),
		.start = scan->part.start,
		.end = scan->part.end,
		.vec = (uintptr_t)scan->regions,
		.vec_len = REGIONS,
		.category_inverted = IS_FILE,
		.category_mask = IS_FILE,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
	};
	long count;

	do {
		count = sys_call3(SYS_ioctl, fd, (long)SCAN_IOCTL, (long)&arguments);
		if (count < 0)
			return (int)count;
		scan->source = ST_SOURCE_PAGEMAP_SCAN;
		for (long i = 0; i < count; i++)
			scan_add(scan, scan->regions[i].start, scan->regions[i].end);
		if (count)
			arguments.start = scan->regions[count - 1].end;
	} while (count == REGIONS && arguments.start < arguments.end);
	return 0;
}

static bool word_anonymous(uint64_t word)
{
	return (word & WORD_SWAPPED) || ((word & WORD_PRESENT) && !(word & WORD_FILE));
}

/* Any kernel: one word a page. */
static int scan_words(struct scan *scan, int fd)
{
	uint64_t page = page_size(), at = scan->part.start;

	scan->source = ST_SOURCE_PAGEMAP;
	while (at < scan->part.end) {
		uint64_t pages = (scan->part.end - at) / page;
		size_t bytes = (pages < WORDS ? pages : WORDS) * 8;
		long count = sys_pread(fd, scan->words, bytes, (off_t)(at / page * 8));

		if (count < 8)
			return count < 0 ? (int)count : -EIO;
		for (long i = 0; i < count / 8; i++, at += page)
			if (word_anonymous(scan->words[i]))
				scan_add(scan, at, at + page);
	}
	return 0;
}

/* Runs aside. */
static int scan_run(void *arg)
{
	struct scan *scan = arg;
	long fd = sys_openat(AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	int r = fd < 0 ? (int)fd : scan_regions(scan, (int)fd);

	if (r == -ENOTTY || r == -EINVAL)
		r = scan_words(scan, (int)fd);
	if (fd >= 0)
		sys_close((int)fd);
	scan_emit(scan, scan->part.end, r == 0);
	scan->found |= r != 0;
	return 0;
}

static void scan_part(struct scan *scan, const struct mapping *part, enum st_moment why)
{
	scan->part = *part;
	scan->why = why;
	scan->source = ST_SOURCE_NONE;
	scan->from = part->start;
	scan->bytes = 0;
	scan->count = 0;
	scan->found = false;
	if (aside_run(scan_run, scan) < 0) {
		scan_emit(scan, part->end, false);
		scan->found = true;
	}
}

bool anon_note(uintptr_t start, uintptr_t end, enum st_moment why)
{
	struct scan *scan = NULL;
	bool none = true;
	struct mapping part;
	unsigned cursor = 0;

	if (!maps_count() || !event_recording())
		return false;
	while (maps_next(start, end, &cursor, &part)) {
		if (!part.writable)
			continue;
		if (!scan)
			scan = sys_mmap_anonymous(sizeof(*scan));
		if (sys_failed(scan))
			return false;
		scan_part(scan, &part, why);
		none &= !scan->found;
	}
	if (scan)
		sys_munmap(scan, sizeof(*scan));
	return none;
}
