/* SPDX-License-Identifier: Apache-2.0 */
/* Page cache of the weight files, in cells of ST_CELL bytes; a `cached` record for each that changed. */
#ifndef SPARKTRACE_RECORDER_CACHE_H
#define SPARKTRACE_RECORDER_CACHE_H

#include "out.h"
#include <stdbool.h>

/* What is known of a cell. The kernel's answer, in bytes. */
struct cache_cell {
	uint64_t cached, dirty, evicted, recently_evicted;
};

struct cache_file {
	uint32_t id;
	int fd;
	bool own;     /* ours: mincore tells the truth */
	bool refused; /* said once: unknown */
	uint64_t size;
	uint32_t count;
	struct cache_cell *cells;
};

struct cache {
	struct cache_file *files;
	uint32_t count, room;
	uint64_t page_size;
	uint64_t cost; /* CPU time of the last pass, ns */
};

void cache_init(struct cache *cache, uint64_t page_size);
void cache_release(struct cache *cache);

/*
 * Adds the weight file of a `file` record and looks at it at once, before anything of it is read
 * here. `folder`: where a relative path starts. A file that cannot be opened, or is another by now,
 * becomes a `coverage` record.
 */
void cache_add(struct cache *cache, struct out *out, const struct st_ev_file *file, const char *path,
               const char *folder);

/* Looks at all files. Returns how many cells have changed. */
unsigned cache_look(struct cache *cache, struct out *out);

/* The file of this identifier, NULL: none. */
struct cache_file *cache_find(struct cache *cache, uint64_t id);

/* Bytes of [offset, offset + size) in the page cache; ST_UNKNOWN: not to be had. */
uint64_t cache_bytes(const struct cache *cache, const struct cache_file *file, uint64_t offset,
                     uint64_t size);

#endif
