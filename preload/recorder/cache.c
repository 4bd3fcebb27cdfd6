/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CELLS_MAX (1u << 16) /* 4 TiB of one file */

/* linux/mman.h of 6.5. */
struct cachestat_range_now {
	uint64_t off, len;
};
struct cachestat_now {
	uint64_t cache, dirty, writeback, evicted, recently_evicted; /* pages */
};
#define SYS_CACHESTAT_NOW 451

void cache_init(struct cache *cache, uint64_t page_size)
{
	*cache = (struct cache){.page_size = page_size};
}

void cache_release(struct cache *cache)
{
	uint32_t i;

	for (i = 0; i < cache->count; i++) {
		close(cache->files[i].fd);
		free(cache->files[i].cells);
	}
	free(cache->files);
}

struct cache_file *cache_find(struct cache *cache, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < cache->count; i++)
		if (cache->files[i].id == id)
			return &cache->files[i];
	return NULL;
}

/* --- asking the kernel ----------------------------------------------------------------------- */

static int ask_cachestat(int fd, uint64_t offset, uint64_t size, uint64_t page_size,
                         struct cache_cell *ret_cell)
{
	struct cachestat_range_now range = {.off = offset, .len = size};
	struct cachestat_now pages;

	if (syscall(SYS_CACHESTAT_NOW, fd, &range, &pages, 0))
		return -errno;
	ret_cell->cached = pages.cache * page_size;
	ret_cell->dirty = (pages.dirty + pages.writeback) * page_size;
	ret_cell->evicted = pages.evicted * page_size;
	ret_cell->recently_evicted = pages.recently_evicted * page_size;
	return 0;
}

/* Kernels before 6.5. Whoever may not write the file is told that all of it is resident. */
static int ask_mincore(int fd, uint64_t offset, uint64_t size, uint64_t page_size,
                       struct cache_cell *ret_cell)
{
	static unsigned char resident[ST_CELL / 4096];
	size_t pages = (size_t)((size + page_size - 1) / page_size), i;
	uint64_t count = 0;
	void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, (off_t)offset);
	int err;

	if (map == MAP_FAILED)
		return -errno;
	err = mincore(map, (size_t)size, resident) ? -errno : 0;
	munmap(map, (size_t)size);
	if (err)
		return err;
	for (i = 0; i < pages; i++)
		count += resident[i] & 1;
	*ret_cell = (struct cache_cell){count * page_size, ST_UNKNOWN, ST_UNKNOWN, ST_UNKNOWN};
	return 0;
}

/* One cell at most, page-aligned. */
static int ask(const struct cache *cache, const struct cache_file *file, uint64_t offset, uint64_t size,
               struct cache_cell *ret_cell, enum st_source *ret_source)
{
	int err = ask_cachestat(file->fd, offset, size, cache->page_size, ret_cell);

	*ret_source = ST_SOURCE_CACHESTAT;
	if (err == -ENOSYS && file->own) {
		*ret_source = ST_SOURCE_MINCORE;
		err = ask_mincore(file->fd, offset, size, cache->page_size, ret_cell);
	}
	if (!err && ret_cell->cached > size)
		ret_cell->cached = size; /* the last page of the file is whole in the cache */
	return err;
}

uint64_t cache_bytes(const struct cache *cache, const struct cache_file *file, uint64_t offset, uint64_t size)
{
	uint64_t first = offset / cache->page_size * cache->page_size, bytes = 0, step;
	struct cache_cell cell;
	enum st_source source;

	for (; first < offset + size; first += step) {
		step = offset + size - first < ST_CELL ? offset + size - first : ST_CELL;
		if (ask(cache, file, first, step, &cell, &source))
			return ST_UNKNOWN;
		bytes += cell.cached;
	}
	return bytes;
}

/* --- looking --------------------------------------------------------------------------------- */

static void refuse(struct cache_file *file, struct out *out, int err)
{
	file->refused = true;
	OUT(out, cached, .file = file->id, .size = file->size, .cached = ST_UNKNOWN, .dirty = ST_UNKNOWN,
	    .evicted = ST_UNKNOWN, .recently_evicted = ST_UNKNOWN, .source = ST_SOURCE_CACHESTAT,
	    .result = (uint64_t)-err);
}

static unsigned look_at_file(const struct cache *cache, struct cache_file *file, struct out *out)
{
	unsigned changed = 0;
	uint32_t i;

	for (i = 0; i < file->count && !file->refused; i++) {
		uint64_t offset = i * ST_CELL, left = file->size - offset,
			 size = left < ST_CELL ? left : ST_CELL;
		struct cache_cell cell = {0};
		enum st_source source;
		int err = ask(cache, file, offset, size, &cell, &source);

		if (err) {
			refuse(file, out, err);
			break;
		}
		if (!memcmp(&cell, &file->cells[i], sizeof(cell)))
			continue;
		file->cells[i] = cell;
		changed++;
		OUT(out, cached, .file = file->id, .offset = offset, .size = size, .cached = cell.cached,
		    .dirty = cell.dirty, .evicted = cell.evicted, .recently_evicted = cell.recently_evicted,
		    .source = source);
	}
	return changed;
}

unsigned cache_look(struct cache *cache, struct out *out)
{
	uint64_t before = clock_cost();
	unsigned changed = 0;
	uint32_t i;

	for (i = 0; i < cache->count; i++)
		changed += look_at_file(cache, &cache->files[i], out);
	cache->cost = clock_cost() - before;
	return changed;
}

/* --- adding ---------------------------------------------------------------------------------- */

static int open_file(const char *path, const char *folder)
{
	char whole[PATH_MAX];
	int fd;

	if (snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : folder, path[0] == '/' ? "" : "/",
	             path) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	/* Reading a header must not change the access time where that can be had. */
	fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int open_same(const struct st_ev_file *record, const char *path, const char *folder,
                     struct stat *ret_stat)
{
	int fd = open_file(path, folder);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_stat) || ret_stat->st_ino != record->ino || ret_stat->st_dev != record->dev ||
	    !S_ISREG(ret_stat->st_mode)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static struct cache_file *add_slot(struct cache *cache)
{
	struct cache_file *files = cache->files;
	uint32_t room = cache->room ? cache->room * 2 : 16;

	if (cache->count == cache->room) {
		files = realloc(files, room * sizeof(*files));
		if (!files)
			return NULL;
		cache->files = files;
		cache->room = room;
	}
	return &files[cache->count];
}

static struct cache_cell *make_cells(uint32_t count)
{
	struct cache_cell *cells = malloc((count ? count : 1) * sizeof(*cells));

	if (cells)
		memset(cells, 0xff, count * sizeof(*cells)); /* equal to no answer: all are said at first */
	return cells;
}

void cache_add(struct cache *cache, struct out *out, const struct st_ev_file *record, const char *path,
               const char *folder)
{
	struct cache_file *file = add_slot(cache);
	struct stat stat_now;
	int fd = open_same(record, path, folder, &stat_now);
	uint64_t cells;

	if (fd < 0 || !file) {
		out_coverage(out, "page cache of %s is unknown: %s", path, strerror(fd < 0 ? -fd : ENOMEM));
		if (fd >= 0)
			close(fd);
		return;
	}
	cells = ((uint64_t)stat_now.st_size + ST_CELL - 1) / ST_CELL;
	*file = (struct cache_file){
		.id = (uint32_t)record->id,
		.fd = fd,
		.own = stat_now.st_uid == geteuid() || !geteuid(),
		.size = (uint64_t)stat_now.st_size,
		.count = cells < CELLS_MAX ? (uint32_t)cells : CELLS_MAX,
	};
	file->cells = make_cells(file->count);
	if (!file->cells)
		file->count = 0;
	cache->count++;
	look_at_file(cache, file, out);
}
