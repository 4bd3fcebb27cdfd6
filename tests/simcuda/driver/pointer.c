/* SPDX-License-Identifier: Apache-2.0 */
/* What is at an address: pointer attributes, address ranges, hints. */
#include "tests/simcuda/driver/sim.h"

#include <string.h>

static void put(void *value, uint64_t number, size_t size)
{
	memcpy(value, &number, size); /* little-endian, both machines */
}

static bool on_host(const struct sim_block *block)
{
	return block->kind == SIM_PINNED || block->kind == SIM_REGISTERED || block->host;
}

/* One attribute of an address in `block`; NULL: of ordinary memory, about which nothing is known. */
static CUresult attribute_get(void *value, CUpointer_attribute attribute, uint64_t addr,
                              const struct sim_block *block)
{
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		put(value, block ? (uintptr_t)context_current() : 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		put(value, !block ? 0 : on_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, 4);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		put(value, block ? addr : 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		put(value, block && (on_host(block) || block->kind == SIM_MANAGED) ? addr : 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		put(value, 0, 4);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		put(value, block ? block->id : 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		put(value, block && block->kind == SIM_MANAGED, 4);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		put(value, block ? 0 : (uint32_t)-2, 4);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		put(value, block ? block->addr : 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		put(value, block ? block->size : 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		put(value, block != NULL, 4);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		put(value, 0, 8);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		put(value, block ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : 0, 4);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		put(value, block && block->kind == SIM_CHUNK ? block->owner : 0, 8);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Handles and arrays have places in the arena that are no device addresses. */
static const struct sim_block *pointer_block(uint64_t addr)
{
	const struct sim_block *block = table_find(&sim.blocks, addr);

	if (!block || block->kind == SIM_HANDLE || block->kind == SIM_ARRAY ||
	    (block->kind == SIM_CHUNK && !block->used) || addr >= block->addr + block->size)
		return NULL;
	return block;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr addr)
{
	const struct sim_block *block;
	CUresult rc = CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER();
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	block = pointer_block(addr);
	if (block)
		rc = attribute_get(value, attribute, addr, block);
	sim_unlock();
	return rc;
}

/* Unlike the single query, this one answers about any address. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr addr)
{
	CUresult rc = CUDA_SUCCESS;

	SIM_ENTER();
	if (!count || !attributes || !values)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	for (unsigned int i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = attribute_get(values[i], attributes[i], addr, pointer_block(addr));
	sim_unlock();
	return rc;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr addr)
{
	const struct sim_block *block;

	SIM_ENTER();
	sim_lock();
	block = pointer_block(addr);
	if (block && base)
		*base = block->addr;
	if (block && size)
		*size = block->size;
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult managed_hint(const char *op, uint64_t addr, uint64_t size)
{
	const struct sim_block *block;

	sim_lock();
	block = pointer_block(addr);
	if (block && block->kind != SIM_MANAGED)
		block = NULL;
	ledger_note(op, addr, size, block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr addr, size_t size, CUmemLocation location, unsigned int flags,
                               CUstream stream)
{
	SIM_ENTER();
	(void)location;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_valid(stream) ? managed_hint(__func__, addr, size) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr addr, size_t size, CUdevice dev, CUstream stream)
{
	SIM_ENTER();
	(void)dev;
	return stream_valid(stream) ? managed_hint(__func__, addr, size) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemAdvise_v2(CUdeviceptr addr, size_t size, CUmem_advise advice, CUmemLocation location)
{
	SIM_ENTER();
	(void)advice;
	(void)location;
	return managed_hint(__func__, addr, size);
}

CUresult cuMemAdvise(CUdeviceptr addr, size_t size, CUmem_advise advice, CUdevice dev)
{
	SIM_ENTER();
	(void)advice;
	(void)dev;
	return managed_hint(__func__, addr, size);
}
