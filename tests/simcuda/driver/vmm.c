/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management. Physical memory belongs to a handle and lives until its references and its
 * mappings are both gone; addresses are reserved apart. A handle's identity is its place in the arena,
 * where its pages are never looked at: they are seen at the reserved addresses only.
 */
#include "tests/simcuda/driver/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static bool granular(uint64_t value)
{
	return value % SIM_GRANULE == 0;
}

static struct sim_block *handle_find(CUmemGenericAllocationHandle handle)
{
	struct sim_block *block = table_find(&sim.blocks, handle);

	return block && block->addr == handle && block->kind == SIM_HANDLE ? block : NULL;
}

/* Real addresses are aligned to the granularity, so a little more is mapped and its edges given back. */
static uint64_t addresses_take(uint64_t size, uint64_t alignment)
{
	long at = sim_syscall(SYS_mmap, 0, (long)(size + alignment), PROT_NONE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t first;

	if (at < 0 && at > -4096)
		return 0;
	first = ((uint64_t)at + alignment - 1) / alignment * alignment;
	if (first > (uint64_t)at)
		sim_syscall(SYS_munmap, at, (long)(first - (uint64_t)at), 0, 0, 0, 0);
	if (first < (uint64_t)at + alignment)
		sim_syscall(SYS_munmap, (long)(first + size), (long)((uint64_t)at + alignment - first), 0, 0,
		            0, 0);
	return first;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
	struct sim_block *range = NULL;
	uint64_t at;

	SIM_ENTER();
	(void)hint; /* a wish that the driver need not grant */
	if (!address || !size || !granular(size) || flags || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	at = addresses_take(size, alignment > SIM_GRANULE ? alignment : SIM_GRANULE);
	if (at)
		range = table_insert(&sim.reserved, at, size);
	if (range) {
		range->kind = SIM_RESERVED;
		range->size = size;
		*address = at;
	}
	ledger_note(__func__, at, size, range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "");
	sim_unlock();
	return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* True when any mapping lies in the range. */
static bool range_mapped(uint64_t addr, uint64_t size)
{
	uint32_t next = table_lower(&sim.blocks, addr);

	return table_find(&sim.blocks, addr) ||
	       (next < sim.blocks.count && sim.blocks.blocks[next].addr < addr + size);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
	struct sim_block *range;
	CUresult rc = CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER();
	sim_lock();
	range = table_find(&sim.reserved, address);
	if (range && range->addr == address && range->size == size && !range_mapped(address, size)) {
		sim_syscall(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0);
		table_remove(&sim.reserved, range);
		rc = CUDA_SUCCESS;
	}
	ledger_note(__func__, address, size, rc, "");
	sim_unlock();
	return rc;
}

static bool location_host(const CUmemAllocationProp *prop)
{
	return prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
	SIM_ENTER();
	(void)option;
	if (!granularity || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = SIM_GRANULE;
	return CUDA_SUCCESS;
}

static CUresult handle_new(uint64_t size, bool host, CUmemGenericAllocationHandle *ret_handle)
{
	struct sim_block *block;

	if (!host && !sim_fits(size))
		pool_trim_all();
	if (!host && !sim_fits(size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	block = arena_take(host ? &sim.pinned : &sim.device, size, SIM_HANDLE);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->host = host;
	block->used = 1;
	sim_count(host, (int64_t)size);
	*ret_handle = block->addr;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
	CUmemGenericAllocationHandle made = 0;
	CUresult rc;

	SIM_ENTER();
	if (!handle || !size || !granular(size) || !prop || flags ||
	    prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	rc = handle_new(size, location_host(prop), &made);
	if (rc == CUDA_SUCCESS)
		*handle = made;
	ledger_note(__func__, made, size, rc, location_host(prop) ? ",\"host\":true" : "");
	sim_unlock();
	return rc;
}

/* Frees a handle that nothing holds any more. */
static void handle_settle(struct sim_block *block)
{
	if (block->used || block->maps)
		return;
	sim_count(block->host, -(int64_t)block->size);
	arena_give(block->host ? &sim.pinned : &sim.device, block);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct sim_block *block;
	CUresult rc = CUDA_ERROR_INVALID_VALUE;
	uint64_t size = 0;

	SIM_ENTER();
	sim_lock();
	block = handle_find(handle);
	if (block && block->used) {
		size = block->size;
		block->used--;
		handle_settle(block);
		rc = CUDA_SUCCESS;
	}
	ledger_note(__func__, handle, size, rc, "");
	sim_unlock();
	return rc;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	struct sim_block *mapping, *block = NULL;

	SIM_ENTER();
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	mapping = table_find(&sim.blocks, (uint64_t)(uintptr_t)address);
	if (mapping && mapping->kind == SIM_MAPPED)
		block = handle_find(mapping->owner);
	if (block) {
		block->used++;
		*handle = block->addr;
	}
	ledger_note(__func__, block ? block->addr : 0, block ? block->size : 0,
	            block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
	struct sim_block *block;

	SIM_ENTER();
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	block = handle_find(handle);
	if (block) {
		memset(prop, 0, sizeof(*prop));
		prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop->location.type = block->host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
	}
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult handle_map(uint64_t addr, uint64_t size, uint64_t offset, struct sim_block *handle)
{
	const struct sim_block *range = table_find(&sim.reserved, addr);
	const struct sim_arena *arena;
	struct sim_block *mapping;
	uint64_t identity;

	if (!handle || !range || addr + size > range->addr + range->span || offset + size > handle->size ||
	    range_mapped(addr, size))
		return CUDA_ERROR_INVALID_VALUE;
	arena = handle->host ? &sim.pinned : &sim.device;
	identity = handle->addr;
	if (arena_map(arena, addr, size, identity - arena->base + offset))
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->maps++;
	mapping = table_insert(&sim.blocks, addr, size); /* `handle` is stale from here */
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapping->kind = SIM_MAPPED;
	mapping->size = size;
	mapping->owner = identity;
	mapping->offset = offset;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
	char extra[64];
	CUresult rc;

	SIM_ENTER();
	if (!address || !size || !granular(size) || !granular(offset) || !granular(address) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(extra, sizeof(extra), ",\"handle\":\"0x%" PRIx64 "\"", (uint64_t)handle);
	sim_lock();
	rc = handle_map(address, size, offset, handle_find(handle));
	ledger_note(__func__, address, size, rc, extra);
	sim_unlock();
	return rc;
}

/* Removes every mapping of [addr, end); they must fill it and not reach beyond. */
static CUresult mappings_remove(uint64_t addr, uint64_t end)
{
	struct sim_block *mapping, *handle;
	uint64_t at;

	for (at = addr; at < end; at = mapping->addr + mapping->span) {
		mapping = table_find(&sim.blocks, at);
		if (!mapping || mapping->kind != SIM_MAPPED || mapping->addr != at ||
		    at + mapping->span > end)
			return CUDA_ERROR_INVALID_VALUE;
	}
	arena_unmap(addr, end - addr);
	while (addr < end) {
		mapping = table_find(&sim.blocks, addr);
		addr += mapping->span;
		at = mapping->owner;
		table_remove(&sim.blocks, mapping);
		handle = handle_find(at);
		handle->maps--;
		handle_settle(handle);
	}
	return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	CUresult rc;

	SIM_ENTER();
	if (!address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	rc = mappings_remove(address, address + size);
	ledger_note(__func__, address, size, rc, "");
	sim_unlock();
	return rc;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult rc = CUDA_SUCCESS;

	SIM_ENTER();
	if (!address || !size || !desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	for (uint64_t at = address; at < address + size && rc == CUDA_SUCCESS;) {
		struct sim_block *mapping = table_find(&sim.blocks, at);

		if (!mapping || mapping->kind != SIM_MAPPED) {
			rc = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		mapping->used = desc[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		at = mapping->addr + mapping->span;
	}
	ledger_note(__func__, address, size, rc, "");
	sim_unlock();
	return rc;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	struct sim_block *mapping;

	SIM_ENTER();
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	mapping = table_find(&sim.blocks, address);
	if (mapping && mapping->kind == SIM_MAPPED)
		*flags = mapping->used ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	else
		mapping = NULL;
	sim_unlock();
	return mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
