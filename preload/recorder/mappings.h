/* SPDX-License-Identifier: Apache-2.0 */
/* Private mappings of weight files that are alive, as the events tell. */
#ifndef SPARKTRACE_RECORDER_MAPPINGS_H
#define SPARKTRACE_RECORDER_MAPPINGS_H

#include <sparktrace/format.h>
#include <stdbool.h>

struct mapping {
	uint64_t start, end; /* whole pages */
	uint64_t file, offset;
	bool written;  /* is or was writable: only then can it have pages of its own */
	uint64_t seen; /* hash of what the last scan found, 0: none yet */
};

struct mappings {
	struct mapping *all; /* by address */
	uint32_t count, room;
	uint64_t page_size;
	uint64_t changes; /* how often mappings were taken away or moved */
};

/* The events; `mapped` is called for maps of every kind, `weights` says that the file holds weights. */
void mappings_map(struct mappings *mappings, const struct st_ev_map *map, bool weights);
void mappings_unmap(struct mappings *mappings, uint64_t start, uint64_t size);
void mappings_remap(struct mappings *mappings, const struct st_ev_remap *remap);
void mappings_protect(struct mappings *mappings, const struct st_ev_protect *protect);
void mappings_release(struct mappings *mappings);

#endif
