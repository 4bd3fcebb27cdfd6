/* SPDX-License-Identifier: Apache-2.0 */
/* Replay, device blocks and the pools of stream-ordered allocation. */
#include <analyzer/range.h>
#include <analyzer/replay_parts.h>
#include <errno.h>
#include <stdlib.h>

static uint64_t block_word(const struct st_ev_device_alloc *record)
{
	return (record->stack & UINT32_MAX) | record->how << 32;
}

/* Memory that another process counts has no weight here. */
static bool block_weighs(uint64_t word)
{
	uint64_t how = word >> 32;

	return how != ST_DEVICE_IPC && how != ST_DEVICE_IMPORT;
}

static struct pool *pool_find(const struct replay *replay, uint64_t handle)
{
	for (size_t i = 0; i < replay->pool_count; i++)
		if (replay->pools[i].handle == handle)
			return &replay->pools[i];
	return NULL;
}

static struct pool *pool_take(struct replay *replay, uint64_t handle)
{
	struct pool *pool = pool_find(replay, handle);
	size_t room = replay->pool_room ? replay->pool_room * 2 : 8;

	if (pool)
		return pool;
	if (replay->pool_count == REPLAY_POOLS_MAX)
		return NULL;
	if (replay->pool_count == replay->pool_room) {
		pool = realloc(replay->pools, room * sizeof(*pool));
		if (!pool) {
			replay_note(replay, -ENOMEM);
			return NULL;
		}
		replay->pools = pool;
		replay->pool_room = room;
	}
	pool = &replay->pools[replay->pool_count++];
	*pool = (struct pool){.handle = handle};
	return pool;
}

static void pool_surplus_set(struct replay *replay, struct pool *pool, uint64_t bytes)
{
	replay->device += bytes - pool->surplus;
	replay->freed += bytes_sub(pool->surplus, bytes);
	pool->surplus = bytes;
}

/* A block came from a pool (went back to it): what the pool holds does not change by that. */
static void pool_move(struct replay *replay, uint64_t handle, uint64_t how, int64_t bytes)
{
	struct pool *pool;

	if (how != ST_DEVICE_ASYNC && how != ST_DEVICE_POOL)
		return;
	pool = pool_take(replay, handle);
	if (!pool)
		return;
	if (bytes < 0) {
		pool_surplus_set(replay, pool, pool->surplus + -(uint64_t)bytes);
		replay->freed -= -(uint64_t)bytes; /* nothing has left the process */
	} else {
		uint64_t from = bytes_min(pool->surplus, (uint64_t)bytes);

		pool_surplus_set(replay, pool, pool->surplus - from);
		replay->freed -= from;
	}
}

static void block_gone(struct replay *replay, const struct span *piece, uint64_t bytes)
{
	uint64_t how = piece->a >> 32;

	if (!block_weighs(piece->a))
		return;
	replay_held(replay, piece->a & UINT32_MAX, -(int64_t)bytes);
	if (how == ST_DEVICE_CONTEXT)
		replay->context_bytes -= bytes;
	pool_move(replay, piece->b, how, -(int64_t)bytes);
}

static void block_piece_gone(void *context, const struct span *piece)
{
	block_gone(context, piece, piece->hi - piece->lo);
	replay_gone(context, REGION_DEVICE, piece);
}

/* Arrays have a handle instead of an address: one that would collide with addresses of blocks. */
static int array_put(struct replay *replay, const struct st_ev_device_alloc *record)
{
	struct span old, span = {record->addr, record->addr + 1, block_word(record), record->size};

	if (!livemap_remove(&replay->arrays, record->addr, &old))
		replay_held(replay, old.a & UINT32_MAX, -(int64_t)old.b);
	return livemap_insert_alone(&replay->arrays, &span);
}

static void block_add(struct replay *replay, const struct st_ev_device_alloc *record)
{
	struct span span = {record->addr, record->addr + record->size, block_word(record), record->pool};
	bool array = record->how == ST_DEVICE_ARRAY;
	int error = array ? array_put(replay, record)
	                  : replay_block_put(replay, &replay->blocks, &span, block_piece_gone);

	replay_note(replay, error);
	if (error || !block_weighs(span.a))
		return;
	replay_held(replay, record->stack, (int64_t)record->size);
	if (record->how == ST_DEVICE_CONTEXT)
		replay->context_bytes += record->size;
	pool_move(replay, record->pool, record->how, (int64_t)record->size);
}

/* A pool on the host gives pinned memory. */
static bool pool_is_host(const struct replay *replay, const struct st_ev_device_alloc *record)
{
	const struct pool *pool = record->pool ? pool_find(replay, record->pool) : NULL;

	return pool && pool->host;
}

void replay_device_alloc(struct replay *replay, const struct st_ev_device_alloc *record)
{
	struct refusal refusal = {ST_KIND_device_alloc, (uint32_t)record->stack,
	                          bytes_max(record->size, record->asked), 0, (int64_t)record->result};
	struct st_ev_pinned_alloc pinned = {record->r, record->addr, record->size, 0, 0, 0, record->stack};

	if (record->result) {
		replay_refused(replay, &record->r, &refusal);
		return;
	}
	/* Inside a capture a graph is described, nothing is allocated yet. */
	if (record->flags & 1u << ST_CALL_CAPTURING)
		return;
	if (!record->addr || !record->size || record->size >= REPLAY_SIZE_MAX ||
	    record->addr > UINT64_MAX - record->size)
		return;
	if (pool_is_host(replay, record)) {
		replay_pinned_alloc(replay, &pinned);
		return;
	}
	block_add(replay, record);
	replay_granted(replay, &record->r, record->size);
}

void replay_device_free(struct replay *replay, const struct st_ev_device_free *record)
{
	struct span span;

	if (!record->addr || record->flags & 1u << ST_CALL_CAPTURING)
		return;
	if (record->how != ST_DEVICE_ARRAY && !livemap_remove(&replay->blocks, record->addr, &span))
		block_piece_gone(replay, &span);
	else if (!livemap_remove(&replay->arrays, record->addr, &span))
		block_gone(replay, &span, span.b);
	else
		replay_pinned_free(replay, record->addr);
}

static void array_gone(void *context, const struct span *piece)
{
	block_gone(context, piece, piece->b);
}

static void pinned_piece_gone(void *context, const struct span *piece)
{
	replay_gone(context, REGION_PINNED, piece);
}

/* With the last context everything goes that was made in one. */
static void device_drop_all(struct replay *replay)
{
	replay_note(replay, livemap_cut(&replay->blocks, 0, UINT64_MAX, block_piece_gone, replay));
	replay_note(replay, livemap_cut(&replay->arrays, 0, UINT64_MAX, array_gone, replay));
	replay_note(replay, livemap_cut(&replay->pinned, 0, UINT64_MAX, pinned_piece_gone, replay));
	for (size_t i = 0; i < replay->pool_count; i++)
		pool_surplus_set(replay, &replay->pools[i], 0);
	replay_vmm_drop_all(replay);
}

void replay_device_context(struct replay *replay, const struct st_ev_context *record)
{
	struct span span = {record->handle, record->handle + 1, 0, 0};

	if (record->handle == UINT64_MAX)
		return;
	if (record->alive) {
		if (!livemap_touches(&replay->contexts, span.lo, span.hi))
			replay_note(replay, livemap_insert_alone(&replay->contexts, &span));
		return;
	}
	if (!livemap_remove(&replay->contexts, record->handle, &span) && !replay->contexts.count)
		device_drop_all(replay);
}

void replay_pool_create(struct replay *replay, const struct st_ev_pool_create *record)
{
	struct pool *pool = pool_take(replay, record->pool);

	if (pool)
		pool->host = record->location == ST_LOCATION_HOST;
}

void replay_pool_destroy(struct replay *replay, uint64_t handle)
{
	struct pool *pool = pool_find(replay, handle);

	if (!pool)
		return;
	pool_surplus_set(replay, pool, 0);
	*pool = replay->pools[--replay->pool_count];
}

void replay_pool_state(struct replay *replay, const struct st_ev_pool_state *record)
{
	struct pool *pool = pool_take(replay, record->pool);

	if (!pool)
		return;
	if (record->threshold != ST_UNKNOWN)
		pool->threshold = record->threshold;
	if (record->reserved != ST_UNKNOWN && record->used != ST_UNKNOWN &&
	    record->reserved - record->used < REPLAY_SIZE_MAX)
		pool_surplus_set(replay, pool, record->reserved - record->used);
}

/*
 * At a synchronisation a pool gives back what it holds beyond its threshold. How much of the threshold its
 * blocks use is not followed for each pool: a threshold is in practice nothing or everything.
 */
void replay_pools_trim(struct replay *replay)
{
	for (size_t i = 0; i < replay->pool_count; i++) {
		struct pool *pool = &replay->pools[i];

		if (pool->surplus > pool->threshold)
			pool_surplus_set(replay, pool, pool->threshold);
	}
}
