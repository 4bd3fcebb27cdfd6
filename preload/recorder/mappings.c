/* SPDX-License-Identifier: Apache-2.0 */
#include "mappings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t page_up(const struct mappings *mappings, uint64_t size)
{
	return (size + mappings->page_size - 1) / mappings->page_size * mappings->page_size;
}

static void insert(struct mappings *mappings, uint32_t at, struct mapping mapping)
{
	uint32_t room = mappings->room ? mappings->room * 2 : 64;

	if (mappings->count == mappings->room) {
		struct mapping *all = realloc(mappings->all, room * sizeof(*all));

		if (!all)
			return; /* its anonymous pages will not be seen */
		mappings->all = all;
		mappings->room = room;
	}
	memmove(&mappings->all[at + 1], &mappings->all[at], (mappings->count - at) * sizeof(mapping));
	mappings->all[at] = mapping;
	mappings->count++;
}

static void erase(struct mappings *mappings, uint32_t at)
{
	mappings->count--;
	memmove(&mappings->all[at], &mappings->all[at + 1],
	        (mappings->count - at) * sizeof(mappings->all[0]));
}

/* The first mapping that ends behind `address`. */
static uint32_t find(const struct mappings *mappings, uint64_t address)
{
	uint32_t low = 0, high = mappings->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (mappings->all[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Cuts so that no mapping lies across `address`. */
static void split(struct mappings *mappings, uint64_t address)
{
	uint32_t at = find(mappings, address);
	struct mapping *mapping, rest;

	if (at == mappings->count || mappings->all[at].start >= address)
		return;
	mapping = &mappings->all[at];
	rest = *mapping;
	rest.offset += address - rest.start;
	rest.start = address;
	mapping->end = address;
	mapping->seen = rest.seen = 0;
	insert(mappings, at + 1, rest);
}

static void clear(struct mappings *mappings, uint64_t start, uint64_t end)
{
	uint32_t at;

	split(mappings, start);
	split(mappings, end);
	for (at = find(mappings, start); at < mappings->count && mappings->all[at].start < end;) {
		erase(mappings, at);
		mappings->changes++;
	}
}

void mappings_map(struct mappings *mappings, const struct st_ev_map *map, bool weights)
{
	struct mapping mapping = {
		.start = map->addr,
		.end = map->addr + page_up(mappings, map->size),
		.file = map->file,
		.offset = map->offset,
		.written = (map->prot & PROT_WRITE) != 0,
	};

	if (!map->addr || mapping.end <= mapping.start)
		return;
	clear(mappings, mapping.start, mapping.end);
	if (weights && (map->flags & MAP_TYPE) == MAP_PRIVATE)
		insert(mappings, find(mappings, mapping.start), mapping);
}

void mappings_unmap(struct mappings *mappings, uint64_t start, uint64_t size)
{
	clear(mappings, start, start + page_up(mappings, size));
}

/* What stood at the old place stands at the new one, as far as its length goes. */
void mappings_remap(struct mappings *mappings, const struct st_ev_remap *remap)
{
	uint64_t old_end = remap->addr + page_up(mappings, remap->size);
	struct mapping moved = {0};
	uint32_t at;

	if (!remap->new_addr)
		return;
	split(mappings, remap->addr);
	at = find(mappings, remap->addr);
	if (at < mappings->count && mappings->all[at].start == remap->addr)
		moved = mappings->all[at];
	if (!(remap->flags & 4 /* MREMAP_DONTUNMAP */))
		clear(mappings, remap->addr, old_end);
	moved.start = remap->new_addr;
	moved.end = remap->new_addr + page_up(mappings, remap->new_size);
	moved.seen = 0;
	clear(mappings, moved.start, moved.end);
	if (moved.file && moved.end > moved.start)
		insert(mappings, find(mappings, moved.start), moved);
}

void mappings_protect(struct mappings *mappings, const struct st_ev_protect *protect)
{
	uint64_t end = protect->addr + page_up(mappings, protect->size);
	uint32_t at;

	if (!(protect->prot & PROT_WRITE))
		return;
	for (at = find(mappings, protect->addr); at < mappings->count && mappings->all[at].start < end; at++)
		mappings->all[at].written = true;
}

void mappings_release(struct mappings *mappings)
{
	free(mappings->all);
}
