/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/array.h>
#include <analyzer/transients.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LIVES_MAX 262144u /* of 32 bytes */

/* b of a span: record of its birth; was it the source of a copy to the device, or the destination of one back? */
#define BIRTH_COPIED   UINT64_C(1)
#define BIRTH_RETURNED UINT64_C(2)
#define BIRTH(index)   ((index) << 2)

static size_t slot_of(const struct transients *transients, enum transient_kind kind, uint32_t stack)
{
	uint64_t key = (uint64_t)stack * TRANSIENT_KINDS + kind;
	size_t mask = transients->slot_room - 1,
	       i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;

	for (;; i = (i + 1) & mask) {
		const struct transient_site *site;

		if (!transients->slots[i])
			return i;
		site = &transients->sites[transients->slots[i] - 1];
		if (site->stack == stack && site->kind == kind)
			return i;
	}
}

static int slots_grow(struct transients *transients)
{
	size_t room = transients->slot_room ? transients->slot_room * 2 : 64;
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(transients->slots);
	transients->slots = slots;
	transients->slot_room = room;
	for (uint32_t i = 0; i < transients->site_count; i++)
		slots[slot_of(transients, transients->sites[i].kind, transients->sites[i].stack)] = i + 1;
	return 0;
}

/* *ret_site: its index. */
static int site_get(struct transients *transients, enum transient_kind kind, uint64_t stack,
                    uint64_t *ret_site)
{
	size_t slot;
	int error = 0;

	if (transients->site_count * 2 >= transients->slot_room)
		error = slots_grow(transients);
	if (!error)
		error = array_reserve(&transients->sites, sizeof(*transients->sites), transients->site_count,
		                      &transients->site_room);
	if (error)
		return error;
	slot = slot_of(transients, kind, (uint32_t)stack);
	if (!transients->slots[slot]) {
		transients->sites[transients->site_count] =
			(struct transient_site){.kind = kind, .stack = (uint32_t)stack};
		transients->slots[slot] = (uint32_t)++transients->site_count;
	}
	*ret_site = transients->slots[slot] - 1;
	return 0;
}

static int life_add(struct transients *transients, const struct span *piece, uint64_t bytes)
{
	struct transient_site *site = &transients->sites[piece->a];
	int error;

	site->count++;
	site->bytes = bytes_add(site->bytes, bytes);
	site->largest = bytes_max(site->largest, bytes);
	if (piece->b & BIRTH_COPIED)
		site->copied = bytes_add(site->copied, bytes);
	if (piece->b & BIRTH_RETURNED)
		site->returned = bytes_add(site->returned, bytes);
	if (transients->life_count == LIVES_MAX) {
		transients->cut = true;
		return 0;
	}
	error = array_reserve(&transients->lives, sizeof(*transients->lives), transients->life_count,
	                      &transients->life_room);
	if (!error)
		transients->lives[transients->life_count++] =
			(struct lifetime){piece->b >> 2, transients->index, bytes, (uint32_t)piece->a};
	return error;
}

struct ending {
	struct transients *transients;
	int error;
	bool counts, only_copied;
};

static void piece_gone(void *context, const struct span *piece)
{
	struct ending *ending = context;

	if (ending->counts && !ending->error && (!ending->only_copied || (piece->b & BIRTH_COPIED)))
		ending->error = life_add(ending->transients, piece, piece->hi - piece->lo);
}

/* What lives in [lo, hi) goes; `phase` says whether that makes it a transient. */
static int cut(struct transients *transients, enum transient_kind kind, uint64_t lo, uint64_t hi,
               enum phase phase)
{
	struct ending ending = {transients, 0, phase == PHASE_LOAD, false};
	int error;

	if (kind == TRANSIENT_HOST && phase == PHASE_SETTLE)
		ending.counts = ending.only_copied = true;
	if (lo >= hi || !livemap_touches(&transients->live[kind], lo, hi))
		return 0;
	error = livemap_cut(&transients->live[kind], lo, hi, piece_gone, &ending);
	return error == -ENOMEM ? error : ending.error;
}

/* The block that begins at `addr` goes. */
static int drop(struct transients *transients, enum transient_kind kind, uint64_t addr, enum phase phase)
{
	struct span span;

	if (!livemap_find(&transients->live[kind], addr, &span) || span.lo != addr)
		return 0;
	return cut(transients, kind, span.lo, span.hi, phase);
}

static int born(struct transients *transients, enum transient_kind kind, uint64_t addr, uint64_t size,
                uint64_t stack, enum phase phase)
{
	struct span span = {addr, addr + size, 0, BIRTH(transients->index)};
	int error;

	if (!addr || !size || addr > UINT64_MAX - size)
		return 0;
	error = cut(transients, kind, span.lo, span.hi, phase);
	if (error || phase != PHASE_LOAD)
		return error;
	error = site_get(transients, kind, stack, &span.a);
	if (!error)
		error = livemap_insert_alone(&transients->live[kind], &span);
	return error == -ENOMEM ? error : 0;
}

/* The end of whole pages; none is smaller. */
static uint64_t page_up(uint64_t addr, uint64_t size)
{
	uint64_t end = bytes_add(addr, size);

	return end > UINT64_MAX - 4095 ? end : (end + 4095) & ~UINT64_C(4095);
}

/* Reserved addresses are no memory, and pages of files are not the program's own. */
static int map_seen(struct transients *transients, const struct st_ev_map *map, enum phase phase)
{
	uint64_t hi = page_up(map->addr, map->size);

	if ((map->flags & MAP_ANONYMOUS) && (map->prot & PROT_WRITE))
		return born(transients, TRANSIENT_HOST, map->addr, hi - map->addr, map->stack, phase);
	return cut(transients, TRANSIENT_HOST, map->addr, hi, phase);
}

/* The host block at `addr` takes part in a copy, and is marked as a whole. */
static int host_mark(struct transients *transients, uint64_t addr, uint64_t mark)
{
	struct livemap *host = &transients->live[TRANSIENT_HOST];
	struct span span;
	int error;

	if (!livemap_find(host, addr, &span) || (span.b & mark))
		return 0;
	error = livemap_cut(host, span.lo, span.hi, NULL, NULL);
	span.b |= mark;
	return error ? error : livemap_insert_alone(host, &span);
}

static int copy_seen(struct transients *transients, const struct st_ev_copy *copy, enum phase phase,
                     const struct replay *replay)
{
	struct span where;
	int error;

	if (copy->result || phase != PHASE_LOAD)
		return 0;
	if (replay_region(replay, copy->dst, &where) != REGION_DEVICE)
		return host_mark(transients, copy->dst, BIRTH_RETURNED);
	error = host_mark(transients, copy->src, BIRTH_COPIED);
	return error ? error : born(transients, TRANSIENT_REUSED, copy->dst, copy->size, copy->stack, phase);
}

static int block_gone(struct transients *transients, uint64_t addr, enum phase phase)
{
	struct span span;

	/* What was copied into it went with it, and is counted with it. */
	if (livemap_find(&transients->live[TRANSIENT_DEVICE], addr, &span) && span.lo == addr)
		cut(transients, TRANSIENT_REUSED, span.lo, span.hi, PHASE_END);
	return drop(transients, TRANSIENT_DEVICE, addr, phase);
}

/* The stack of a VMM mapping is that of its handle. */
static int handle_mapped(struct transients *transients, const struct st_ev_handle_map *map, enum phase phase,
                         const struct replay *replay)
{
	struct span at;
	const struct handle *handle;

	if (!livemap_find(&replay->handle_at, map->handle, &at))
		return 0;
	handle = &replay->handles[at.a];
	if (handle->host)
		return 0;
	return born(transients, TRANSIENT_DEVICE, map->addr, map->size, handle->stack, phase);
}

static int handle_unmapped(struct transients *transients, uint64_t lo, uint64_t hi, enum phase phase)
{
	if (livemap_touches(&transients->live[TRANSIENT_DEVICE], lo, hi))
		cut(transients, TRANSIENT_REUSED, lo, hi, PHASE_END);
	return cut(transients, TRANSIENT_DEVICE, lo, hi, phase);
}

static int host_seen(struct transients *transients, const struct st_record *record, enum phase phase)
{
	switch (record->kind) {
	case ST_KIND_map:
		return map_seen(transients, (const void *)record, phase);
	case ST_KIND_unmap: {
		const struct st_ev_unmap *unmap = (const void *)record;

		return cut(transients, TRANSIENT_HOST, unmap->addr, page_up(unmap->addr, unmap->size), phase);
	}
	case ST_KIND_alloc: {
		const struct st_ev_alloc *alloc = (const void *)record;

		return born(transients, TRANSIENT_HOST, alloc->addr, alloc->size, alloc->stack, phase);
	}
	case ST_KIND_free:
		return drop(transients, TRANSIENT_HOST, ((const struct st_ev_free *)record)->addr, phase);
	default:
		return 0;
	}
}

/* Arrays have no address; the others are memory of another process, or of the driver itself. */
static bool is_no_block(uint64_t how)
{
	return how == ST_DEVICE_ARRAY || how == ST_DEVICE_IPC || how == ST_DEVICE_IMPORT ||
	       how == ST_DEVICE_CONTEXT;
}

static int device_seen(struct transients *transients, const struct st_record *record, enum phase phase,
                       const struct replay *replay)
{
	switch (record->kind) {
	case ST_KIND_device_alloc: {
		const struct st_ev_device_alloc *alloc = (const void *)record;

		if (alloc->result || is_no_block(alloc->how))
			return 0;
		return born(transients, TRANSIENT_DEVICE, alloc->addr, alloc->size, alloc->stack, phase);
	}
	case ST_KIND_device_free:
		return block_gone(transients, ((const struct st_ev_device_free *)record)->addr, phase);
	case ST_KIND_handle_map:
		return handle_mapped(transients, (const void *)record, phase, replay);
	case ST_KIND_handle_unmap: {
		const struct st_ev_handle_unmap *unmap = (const void *)record;

		return handle_unmapped(transients, unmap->addr, bytes_add(unmap->addr, unmap->size), phase);
	}
	case ST_KIND_copy:
		return copy_seen(transients, (const void *)record, phase, replay);
	case ST_KIND_memset: {
		const struct st_ev_memset *set = (const void *)record;

		return cut(transients, TRANSIENT_REUSED, set->addr, bytes_add(set->addr, set->size), phase);
	}
	default:
		return 0;
	}
}

/* Releases that did not take place are none: replay knows them, and skips them as well. */
int transients_record(struct transients *transients, const struct st_record *record, enum phase phase,
                      const struct replay *replay)
{
	int error;

	transients->index++;
	if (phase < PHASE_LOAD || phase > PHASE_SETTLE || replay_is_revoked(replay, record))
		return 0;
	error = host_seen(transients, record, phase);
	return error ? error : device_seen(transients, record, phase, replay);
}

void transients_release(struct transients *transients)
{
	for (int kind = 0; kind < TRANSIENT_KINDS; kind++)
		livemap_release(&transients->live[kind]);
	free(transients->sites);
	free(transients->slots);
	free(transients->lives);
	*transients = (struct transients){0};
}
