/* SPDX-License-Identifier: Apache-2.0 */
/* Plain, pitched and managed device memory; pinned and registered host memory. */
#include "tests/simcuda/driver/sim.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PITCH         512u
#define POPULATE_READ 22 /* MADV_POPULATE_READ, Linux 5.14 */

/* Takes device memory; on shortage once more after the pools gave back what they hold for nobody. */
static struct sim_block *device_take(uint64_t size, enum sim_kind kind)
{
	if (!sim_fits(size))
		pool_trim_all();
	if (!sim_fits(size))
		return NULL;
	return arena_take(&sim.device, size, kind);
}

static CUresult device_alloc(const char *op, CUdeviceptr *ret_address, uint64_t size, enum sim_kind kind)
{
	struct sim_block *block;

	if (!ret_address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	block = device_take(size, kind);
	if (block) {
		sim_count(false, (int64_t)size);
		*ret_address = block->addr;
	}
	ledger_note(op, block ? block->addr : 0, size, block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	SIM_ENTER();
	return device_alloc(__func__, address, size, SIM_PLAIN);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
	CUresult rc;

	SIM_ENTER();
	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	rc = device_alloc(__func__, address, (width + PITCH - 1) / PITCH * PITCH * height, SIM_PITCHED);
	if (rc == CUDA_SUCCESS)
		*pitch = (width + PITCH - 1) / PITCH * PITCH;
	return rc;
}

/* Managed memory is addresses until it is touched: it counts apart, and no limit refuses it. */
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned int flags)
{
	struct sim_block *block;

	SIM_ENTER();
	if (!address || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	block = arena_take(&sim.device, size, SIM_MANAGED);
	if (block) {
		sim.counts.managed += size;
		*address = block->addr;
	}
	ledger_note(__func__, block ? block->addr : 0, size, block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY,
	            "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void device_release(struct sim_block *block)
{
	if (block->kind == SIM_MANAGED)
		sim.counts.managed -= block->size;
	else
		sim_count(false, -(int64_t)block->size);
	arena_give(&sim.device, block);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct sim_block *block;
	CUresult rc = CUDA_SUCCESS;
	uint64_t size;

	SIM_ENTER();
	if (!address)
		return CUDA_SUCCESS;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	block = table_find(&sim.blocks, address);
	size = block ? block->size : 0;
	if (!block || block->addr != address || block->kind > SIM_CHUNK ||
	    (block->kind == SIM_CHUNK && !block->used))
		rc = CUDA_ERROR_INVALID_VALUE;
	else if (block->kind == SIM_CHUNK)
		pool_release_chunk(block);
	else
		device_release(block);
	pool_settle();
	ledger_note(__func__, address, size, rc, "");
	sim_unlock();
	return rc;
}

void context_sweep(void)
{
	for (uint32_t i = sim.blocks.count; i-- > 0;) {
		struct sim_block *block = &sim.blocks.blocks[i];

		if (block->kind <= SIM_MANAGED || block->kind == SIM_ARRAY)
			device_release(block);
	}
}

static CUresult pinned_alloc(const char *op, void **ret_address, uint64_t size, unsigned int flags)
{
	struct sim_block *block;

	if (!ret_address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	block = arena_take(&sim.pinned, size, SIM_PINNED);
	if (block) {
		block->owner = flags;
		sim_count(true, (int64_t)size);
		*ret_address = (void *)block->addr;
	}
	ledger_note(op, block ? block->addr : 0, size, block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostAlloc(void **address, size_t size, unsigned int flags)
{
	SIM_ENTER();
	return pinned_alloc(__func__, address, size, flags);
}

CUresult cuMemAllocHost_v2(void **address, size_t size)
{
	SIM_ENTER();
	return pinned_alloc(__func__, address, size, 0);
}

CUresult cuMemFreeHost(void *address)
{
	struct sim_block *block;
	uint64_t size = 0;

	SIM_ENTER();
	sim_lock();
	block = table_find(&sim.blocks, (uint64_t)(uintptr_t)address);
	if (block && (block->kind != SIM_PINNED || block->addr != (uint64_t)(uintptr_t)address))
		block = NULL;
	if (block) {
		size = block->size;
		sim_count(true, -(int64_t)size);
		arena_give(&sim.pinned, block);
	}
	ledger_note(__func__, (uint64_t)(uintptr_t)address, size,
	            block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Every page is made the program's own; of file mappings this is a copy-on-write broken, and counted. */
static void pages_break(uint64_t first, uint64_t span)
{
	for (uint64_t at = first, end = first + span, next; at < end; at = next) {
		enum sim_source source = proc_source(at, &next);
		uint64_t bytes;

		if (next > end)
			next = end;
		bytes = proc_break(at, next - at);
		if (source == SIM_SOURCE_COW)
			sim.counts.broken += bytes;
	}
}

/* Pins existing pages. Pinning for writing breaks copy-on-write, as it does with the real driver. */
static bool pages_pin(uint64_t first, uint64_t span, unsigned int flags)
{
	uint64_t end;

	if (flags & CU_MEMHOSTREGISTER_READ_ONLY)
		return sim_syscall(SYS_madvise, (long)first, (long)span, POPULATE_READ, 0, 0, 0) == 0;
	if (proc_source(first, &end) == SIM_SOURCE_PRIVATE)
		return false;
	pages_break(first, span);
	return true;
}

static CUresult register_pages(uint64_t address, uint64_t size, unsigned int flags)
{
	uint64_t first = address & ~(uint64_t)(SIM_PAGE - 1);
	uint64_t span = ((address + size + SIM_PAGE - 1) & ~(uint64_t)(SIM_PAGE - 1)) - first;
	uint32_t next = table_lower(&sim.blocks, first);
	struct sim_block *block;

	if (table_find(&sim.blocks, first) ||
	    (next < sim.blocks.count && sim.blocks.blocks[next].addr < first + span))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!pages_pin(first, span, flags))
		return CUDA_ERROR_INVALID_VALUE;
	block = table_insert(&sim.blocks, first, span);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->kind = SIM_REGISTERED;
	block->size = size;
	block->owner = address;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned int flags)
{
	CUresult rc;

	SIM_ENTER();
	if (!address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	rc = register_pages((uint64_t)(uintptr_t)address, size, flags);
	ledger_note(__func__, (uint64_t)(uintptr_t)address, size, rc, "");
	sim_unlock();
	return rc;
}

CUresult cuMemHostUnregister(void *address)
{
	struct sim_block *block;
	CUresult rc = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	uint64_t size = 0;

	SIM_ENTER();
	sim_lock();
	block = table_find(&sim.blocks, (uint64_t)(uintptr_t)address);
	if (block && block->kind == SIM_REGISTERED && block->owner == (uint64_t)(uintptr_t)address) {
		size = block->size;
		table_remove(&sim.blocks, block);
		rc = CUDA_SUCCESS;
	}
	ledger_note(__func__, (uint64_t)(uintptr_t)address, size, rc, "");
	sim_unlock();
	return rc;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret_address, void *address, unsigned int flags)
{
	struct sim_block *block;

	SIM_ENTER();
	if (!ret_address || flags)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	block = table_find(&sim.blocks, (uint64_t)(uintptr_t)address);
	if (block && (block->kind == SIM_PINNED || block->kind == SIM_REGISTERED))
		*ret_address = (CUdeviceptr)(uintptr_t)address;
	else
		block = NULL;
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *address)
{
	struct sim_block *block;

	SIM_ENTER();
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	block = table_find(&sim.blocks, (uint64_t)(uintptr_t)address);
	if (block && block->kind == SIM_PINNED)
		*flags = (unsigned int)block->owner | CU_MEMHOSTALLOC_DEVICEMAP;
	else
		block = NULL;
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
