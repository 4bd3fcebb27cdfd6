/* SPDX-License-Identifier: Apache-2.0 */
/* Replay, host side: mappings, host blocks, pinned blocks. */
#include <analyzer/range.h>
#include <analyzer/replay_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Ranges whose end would pass the end of the address space are damage. */
static bool extent_is_sane(uint64_t addr, uint64_t size)
{
	return addr && size && addr <= UINT64_MAX - size && size < REPLAY_SIZE_MAX;
}

/* The kernel maps and unmaps whole pages. */
static uint64_t page_up(const struct replay *replay, uint64_t size)
{
	uint64_t mask = replay->page_size - 1;

	return size > UINT64_MAX - mask ? size : (size + mask) & ~mask;
}

static uint32_t mapping_take(struct replay *replay)
{
	uint32_t slot = replay->mapping_free;

	if (slot) {
		replay->mapping_free = replay->mappings[slot - 1].next;
		return slot - 1;
	}
	if (replay->mapping_count == replay->mapping_room) {
		uint32_t room = replay->mapping_room ? replay->mapping_room * 2 : 64;
		void *mappings = realloc(replay->mappings, room * sizeof(*replay->mappings));

		if (!mappings)
			return CATALOG_NONE;
		replay->mappings = mappings;
		replay->mapping_room = room;
	}
	return replay->mapping_count++;
}

/* A piece of a mapping is gone; with the last one the mapping itself. */
static void map_gone(void *context, const struct span *piece)
{
	struct replay *replay = context;
	struct mapping *mapping = replay_mapping(replay, piece);

	replay->arenas -= piece->a & MAP_ARENA ? piece->hi - piece->lo : 0;
	replay_gone(replay, REGION_MAPPING, piece);
	if (!mapping)
		return;
	replay->weights_mapped -= piece->hi - piece->lo;
	mapping->bytes -= piece->hi - piece->lo;
	if (mapping->bytes)
		return;
	mapping->next = replay->mapping_free;
	replay->mapping_free = (uint32_t)(mapping - replay->mappings) + 1;
	replay->mappings_live--;
}

static void maps_clear(struct replay *replay, uint64_t lo, uint64_t hi)
{
	replay_note(replay, livemap_cut(&replay->maps, lo, hi, map_gone, replay));
}

/* Puts a span where nothing is any more, and counts it to its mapping. */
static void map_put(struct replay *replay, const struct span *span)
{
	int error = livemap_insert(&replay->maps, span);
	struct mapping *mapping = replay_mapping(replay, span);

	replay_note(replay, error);
	if (!error && span->a & MAP_ARENA)
		replay->arenas += span->hi - span->lo;
	if (error || !mapping)
		return;
	mapping->bytes += span->hi - span->lo;
	replay->weights_mapped += span->hi - span->lo;
}

static bool is_arena(const struct replay *replay, const struct st_ev_map *record)
{
	return !record->file && record->size >= ARENA_SIZE && record->flags & MAP_ANONYMOUS &&
	       record->flags & MAP_PRIVATE && replay->watch.arena &&
	       replay->watch.arena(replay->watch.context, (uint32_t)record->stack);
}

void replay_host_map(struct replay *replay, const struct st_ev_map *record)
{
	uint64_t size = page_up(replay, record->size);
	uint32_t weight, slot = CATALOG_NONE;
	struct span span = {record->addr, record->addr + size, map_word(0, (uint32_t)record->prot), 0};

	if (!extent_is_sane(record->addr, size))
		return;
	maps_clear(replay, span.lo, span.hi);
	weight = record->file ? catalog_weight(replay->catalog, record->file) : CATALOG_NONE;
	span.a |= is_arena(replay, record) ? MAP_ARENA : 0;
	if (weight != CATALOG_NONE) {
		slot = mapping_take(replay);
		if (slot == CATALOG_NONE) {
			replay_note(replay, -ENOMEM);
			return;
		}
		replay->mappings[slot] = (struct mapping){.weight = weight,
		                                          .flags = (uint32_t)record->flags,
		                                          .stack = (uint32_t)record->stack,
		                                          .serial = replay->mapping_serial++,
		                                          .anon_final = UINT64_MAX};
		replay->mappings_live++;
		span.a = map_word(slot + 1, (uint32_t)record->prot);
		span.b = record->offset - record->addr;
	}
	map_put(replay, &span);
}

void replay_host_unmap(struct replay *replay, uint64_t addr, uint64_t size)
{
	size = page_up(replay, size);
	if (extent_is_sane(addr, size))
		maps_clear(replay, addr, addr + size);
}

/* What a remap takes along: the lowest piece of the old range stands for all of it, as the kernel demands. */
void replay_host_remap(struct replay *replay, const struct st_ev_remap *record)
{
	uint64_t old_size = page_up(replay, record->size), size = page_up(replay, record->new_size);
	bool known, keep = (record->flags & MREMAP_DONTUNMAP) || !old_size;
	struct mapping *mapping;
	struct span span;

	if (!extent_is_sane(record->new_addr, size) || !extent_is_sane(record->addr, old_size ? old_size : 1))
		return;
	known = livemap_find(&replay->maps, record->addr, &span);
	if (!known)
		span.a = map_word(0, PROT_READ | PROT_WRITE);
	mapping = replay_mapping(replay, &span);
	span.b = mapping ? span.b + record->addr - record->new_addr : 0;
	if (mapping) /* so that the cuts below do not end it */
		mapping->bytes++;
	if (!keep)
		maps_clear(replay, record->addr, record->addr + old_size);
	span.lo = record->new_addr;
	span.hi = record->new_addr + size;
	maps_clear(replay, span.lo, span.hi);
	map_put(replay, &span);
	if (mapping)
		mapping->bytes--;
}

struct protect {
	struct replay *replay;
	uint32_t prot;
	uint64_t next;
	struct span piece;
	bool found;
};

static void protect_find(void *context, const struct span *piece)
{
	struct protect *protect = context;

	if (!protect->found) {
		protect->piece = *piece;
		protect->found = true;
	}
}

/* Piece by piece, because a piece cannot be changed while the map is walked. */
void replay_host_protect(struct replay *replay, const struct st_ev_protect *record)
{
	struct protect protect = {.replay = replay, .prot = (uint32_t)record->prot, .next = record->addr};
	uint64_t hi = record->addr + page_up(replay, record->size);

	if (!extent_is_sane(record->addr, page_up(replay, record->size)))
		return;
	for (;; protect.next = protect.piece.hi) {
		protect.found = false;
		livemap_each(&replay->maps, protect.next, hi, protect_find, &protect);
		if (!protect.found)
			return;
		replay_note(replay,
		            livemap_cut(&replay->maps, protect.piece.lo, protect.piece.hi, NULL, NULL));
		protect.piece.a = (protect.piece.a & ~UINT64_C(7)) | (protect.prot & 7);
		replay_note(replay, livemap_insert(&replay->maps, &protect.piece));
	}
}

static void host_gone(void *context, const struct span *piece)
{
	struct replay *replay = context;
	uint64_t bytes = piece->hi - piece->lo;

	replay->host_left += bytes;
	replay->host_since -= piece->a & HOST_SINCE ? bytes : 0;
	if (piece->b == replay->host_looks)
		replay->host_fresh -= bytes;
	else
		replay->host_left_old += bytes;
	replay_gone(replay, REGION_HOST, piece);
}

void replay_host_looked(struct replay *replay)
{
	replay->host_looks++;
	replay->host_fresh = replay->host_left = replay->host_left_old = 0;
}

static void pinned_gone(void *context, const struct span *piece)
{
	replay_gone(context, REGION_PINNED, piece);
}

int replay_block_put(struct replay *replay, struct livemap *map, const struct span *span, livemap_visit *gone)
{
	int error = livemap_insert_alone(map, span);
	struct span old;

	while (error == -EEXIST && livemap_next(map, span->lo, &old) && old.lo < span->hi) {
		livemap_remove(map, old.lo, &old);
		if (gone)
			gone(replay, &old);
		error = livemap_insert_alone(map, span);
	}
	replay_note(replay, error);
	return error;
}

void replay_host_alloc(struct replay *replay, const struct st_ev_alloc *record)
{
	struct span span = {record->addr, record->addr + record->size,
	                    (uint32_t)record->stack | (replay->loading ? HOST_SINCE : 0) |
	                            replay->host_blocks << HOST_SERIAL,
	                    replay->host_looks};

	replay->host_blocks++;
	if (!extent_is_sane(record->addr, record->size) ||
	    replay_block_put(replay, &replay->host, &span, host_gone))
		return;
	replay->host_fresh += record->size;
	replay->host_since += replay->loading ? record->size : 0;
}

void replay_host_free(struct replay *replay, uint64_t addr)
{
	struct span span;

	/* Blocks below the threshold are freed without having been noted: that is no loss. */
	if (!livemap_remove(&replay->host, addr, &span))
		host_gone(replay, &span);
}

void replay_pinned_alloc(struct replay *replay, const struct st_ev_pinned_alloc *record)
{
	struct span span = {record->addr, record->addr + record->size, record->stack, 0};
	struct refusal refusal = {ST_KIND_pinned_alloc, (uint32_t)record->stack, record->size, 0,
	                          (int64_t)record->result};

	if (record->result) {
		replay_refused(replay, &record->r, &refusal);
		return;
	}
	if (!extent_is_sane(record->addr, record->size))
		return;
	replay_block_put(replay, &replay->pinned, &span, pinned_gone);
	replay_granted(replay, &record->r, record->size);
}

void replay_pinned_free(struct replay *replay, uint64_t addr)
{
	struct span span;

	if (livemap_remove(&replay->pinned, addr, &span))
		replay->unknown_frees++;
	else
		pinned_gone(replay, &span);
}

void replay_host_register(struct replay *replay, const struct st_ev_register *record)
{
	struct span span = {record->addr, record->addr + record->size, record->stack, 0};
	struct refusal refusal = {ST_KIND_register, (uint32_t)record->stack, record->size, 0,
	                          (int64_t)record->result};

	if (record->result)
		replay_refused(replay, &record->r, &refusal);
	else if (extent_is_sane(record->addr, record->size))
		replay_block_put(replay, &replay->registered, &span, NULL);
}
