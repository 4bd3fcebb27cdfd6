/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory pools. A pool reserves device memory in chunks; a chunk that is freed stays with
 * the pool, for the next allocation it fits, until a synchronisation finds the pool above its release
 * threshold, or somebody trims it. Copies and kernels are over when their call returns, so a free may
 * take effect at its call.
 */
#include "tests/simcuda/driver/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct sim_object *current; /* of device 0 */
static struct sim_object *standard;

CUmemoryPool pool_default(void)
{
	if (!standard)
		standard = object_new(SIM_POOL);
	if (!current)
		current = standard;
	return (CUmemoryPool)standard;
}

static void pool_reserve(struct sim_object *pool, int64_t bytes)
{
	pool->reserved += (uint64_t)bytes;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	sim_count(pool->host, bytes);
}

static void pool_use(struct sim_object *pool, int64_t bytes)
{
	pool->used += (uint64_t)bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

static struct sim_arena *pool_arena(const struct sim_object *pool)
{
	return pool->host ? &sim.pinned : &sim.device;
}

/* Gives free chunks back until no more than `keep` bytes are reserved. */
static void pool_trim(struct sim_object *pool, uint64_t keep)
{
	for (uint32_t i = sim.blocks.count; i-- > 0 && pool->reserved > keep;) {
		struct sim_block *block = &sim.blocks.blocks[i];

		if (block->kind != SIM_CHUNK || block->owner != (uintptr_t)pool || block->used)
			continue;
		pool_reserve(pool, -(int64_t)block->span);
		arena_give(pool_arena(pool), block);
	}
}

void pool_settle(void)
{
	for (struct sim_object *pool = NULL; (pool = object_next(pool, SIM_POOL));)
		if (pool->reserved > pool->threshold && pool->reserved > pool->used)
			pool_trim(pool, pool->threshold);
}

void pool_trim_all(void)
{
	for (struct sim_object *pool = NULL; (pool = object_next(pool, SIM_POOL));)
		pool_trim(pool, 0);
}

/* The smallest free chunk that fits and is not more than twice too large. */
static struct sim_block *chunk_reuse(const struct sim_object *pool, uint64_t span)
{
	struct sim_block *best = NULL;

	for (uint32_t i = 0; i < sim.blocks.count; i++) {
		struct sim_block *block = &sim.blocks.blocks[i];

		if (block->kind != SIM_CHUNK || block->owner != (uintptr_t)pool || block->used)
			continue;
		if (block->span >= span && block->span <= 2 * span && (!best || block->span < best->span))
			best = block;
	}
	return best;
}

static struct sim_block *chunk_new(struct sim_object *pool, uint64_t span)
{
	struct sim_block *block;

	if (pool->limit && pool->reserved + span > pool->limit)
		pool_trim(pool, pool->limit > span ? pool->limit - span : 0);
	if (pool->limit && pool->reserved + span > pool->limit)
		return NULL;
	if (!pool->host && !sim_fits(span))
		pool_trim_all();
	if (!pool->host && !sim_fits(span))
		return NULL;
	block = arena_take(pool_arena(pool), span, SIM_CHUNK);
	if (block) {
		block->owner = (uintptr_t)pool;
		pool_reserve(pool, (int64_t)span);
	}
	return block;
}

static struct sim_block *chunk_take(struct sim_object *pool, uint64_t size)
{
	uint64_t span = (size + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE;
	struct sim_block *block = chunk_reuse(pool, span);

	if (!block)
		block = chunk_new(pool, span);
	if (!block)
		return NULL;
	block->size = size;
	block->used = 1;
	pool_use(pool, (int64_t)size);
	return block;
}

void pool_release_chunk(struct sim_block *block)
{
	struct sim_object *pool = (struct sim_object *)(uintptr_t)block->owner;

	pool_use(pool, -(int64_t)block->size);
	block->used = 0;
	if (pool->kind != SIM_DEAD_POOL)
		return;
	pool_reserve(pool, -(int64_t)block->span);
	arena_give(pool_arena(pool), block);
	if (!pool->used)
		object_free(pool);
}

static CUresult pool_alloc(const char *op, CUdeviceptr *ret_address, uint64_t size, CUmemoryPool handle,
                           CUstream stream)
{
	struct sim_object *pool = object_get(handle, SIM_POOL);
	struct sim_block *block;
	char extra[96];

	if (!ret_address || !size || !pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	block = chunk_take(pool, size);
	if (block)
		*ret_address = block->addr;
	snprintf(extra, sizeof(extra), ",\"pool\":\"%p\",\"reserved\":%" PRIu64 ",\"used\":%" PRIu64,
	         (void *)pool, pool->reserved, pool->used);
	ledger_note(op, block ? block->addr : 0, size, block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY,
	            extra);
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
	SIM_ENTER();
	pool_default();
	return pool_alloc(__func__, address, size, (CUmemoryPool)current, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
	SIM_ENTER();
	return pool_alloc(__func__, address, size, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	struct sim_block *block;
	CUresult rc = CUDA_ERROR_INVALID_VALUE;
	uint64_t size = 0;

	SIM_ENTER();
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!address)
		return CUDA_SUCCESS;
	sim_lock();
	block = table_find(&sim.blocks, address);
	if (block && block->addr == address && block->kind == SIM_CHUNK && block->used) {
		size = block->size;
		pool_release_chunk(block);
		rc = CUDA_SUCCESS;
	}
	ledger_note(__func__, address, size, rc, "");
	sim_unlock();
	return rc == CUDA_SUCCESS || block ? rc : cuMemFree_v2(address);
}

CUresult cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
	struct sim_object *pool;

	SIM_ENTER();
	if (!ret_pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	pool = object_new(SIM_POOL);
	if (pool) {
		pool->host = props->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
		pool->limit = props->maxSize;
		*ret_pool = (CUmemoryPool)pool;
	}
	ledger_note(__func__, (uint64_t)(uintptr_t)pool, props->maxSize,
	            pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "");
	sim_unlock();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is still in use stays, and the pool with it, until it is freed. */
CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
	struct sim_object *pool = object_get(handle, SIM_POOL);

	SIM_ENTER();
	if (!pool || pool == standard)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	pool_trim(pool, 0);
	if (current == pool)
		current = standard;
	if (pool->used)
		pool->kind = SIM_DEAD_POOL;
	else
		object_free(pool);
	ledger_note(__func__, (uint64_t)(uintptr_t)pool, 0, CUDA_SUCCESS, "");
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	struct sim_object *pool = object_get(handle, SIM_POOL);

	SIM_ENTER();
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	pool_trim(pool, keep);
	ledger_note(__func__, (uint64_t)(uintptr_t)pool, pool->reserved, CUDA_SUCCESS, "");
	sim_unlock();
	return CUDA_SUCCESS;
}

/* The 64-bit value behind an attribute; NULL: it is one of the switches. */
static uint64_t *pool_value(struct sim_object *pool, CUmemPool_attribute attribute)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

static bool pool_switch(CUmemPool_attribute attribute)
{
	return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	       attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct sim_object *pool = object_get(handle, SIM_POOL);
	const uint64_t *stored;

	SIM_ENTER();
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	stored = pool_value(pool, attribute);
	if (stored)
		memcpy(value, stored, sizeof(*stored));
	else if (pool_switch(attribute))
		*(int *)value = !(pool->flags & 1u << attribute);
	sim_unlock();
	return stored || pool_switch(attribute) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pool_set(struct sim_object *pool, CUmemPool_attribute attribute, const void *value)
{
	if (pool_switch(attribute)) {
		pool->flags &= ~(1u << attribute);
		pool->flags |= *(const int *)value ? 0 : 1u << attribute;
	} else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		memcpy(&pool->threshold, value, sizeof(pool->threshold));
	} else if (*(const uint64_t *)value != 0) {
		return CUDA_ERROR_INVALID_VALUE;
	} else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
		pool->reserved_high = pool->reserved;
	} else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
		pool->used_high = pool->used;
	} else {
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct sim_object *pool = object_get(handle, SIM_POOL);
	CUresult rc;

	SIM_ENTER();
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	rc = pool_set(pool, attribute, value);
	ledger_note(__func__, (uint64_t)(uintptr_t)pool, (uint64_t)attribute, rc, "");
	sim_unlock();
	return rc;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
	SIM_ENTER();
	return object_get(pool, SIM_POOL) && (desc || !count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SIM_ENTER();
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	*pool = pool_default();
	sim_unlock();
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult rc = cuDeviceGetDefaultMemPool(pool, dev);

	if (rc == CUDA_SUCCESS)
		*pool = (CUmemoryPool)current;
	return rc;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	SIM_ENTER();
	if (!object_get(pool, SIM_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	pool_default();
	current = (struct sim_object *)pool;
	sim_unlock();
	return CUDA_SUCCESS;
}
