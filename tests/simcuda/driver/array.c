/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: device memory whose handle is its place in the arena, rows and slices without padding. */
#include "tests/simcuda/driver/sim.h"

#include <string.h>

/* Bytes of one channel of an element, 0: a format that is not simulated. */
static size_t channel_bytes(CUarray_format format)
{
	switch ((int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static size_t at_least_one(size_t value)
{
	return value ? value : 1;
}

static CUresult array_new(const char *op, CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	uint64_t row = desc->Width * desc->NumChannels * channel_bytes(desc->Format);
	uint64_t slice = row * at_least_one(desc->Height), size = slice * at_least_one(desc->Depth);
	struct sim_block *block = NULL;

	if (!ret_array || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	if (sim_fits(size))
		block = arena_take(&sim.device, size, SIM_ARRAY);
	if (block) {
		block->offset = row;
		block->owner = slice;
		sim_count(false, (int64_t)size);
		*ret_array = (CUarray)block->addr;
	}
	ledger_note(op, block ? block->addr : 0, size, block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	SIM_ENTER();
	return desc ? array_new(__func__, array, desc) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	SIM_ENTER();
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	full.Width = desc->Width;
	full.Height = desc->Height;
	full.Format = desc->Format;
	full.NumChannels = desc->NumChannels;
	return array_new(__func__, array, &full);
}

static struct sim_block *array_find(CUarray array)
{
	struct sim_block *block = table_find(&sim.blocks, (uint64_t)(uintptr_t)array);

	return block && block->kind == SIM_ARRAY && block->addr == (uint64_t)(uintptr_t)array ? block : NULL;
}

CUresult cuArrayDestroy(CUarray array)
{
	struct sim_block *block;
	uint64_t size = 0;

	SIM_ENTER();
	sim_lock();
	block = array_find(array);
	if (block) {
		size = block->size;
		sim_count(false, -(int64_t)size);
		arena_give(&sim.device, block);
	}
	ledger_note(__func__, (uint64_t)(uintptr_t)array, size,
	            block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE, "");
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                      CUdevice dev)
{
	const struct sim_block *block;

	SIM_ENTER();
	if (!requirements || dev != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sim_lock();
	block = array_find(array);
	if (block) {
		memset(requirements, 0, sizeof(*requirements));
		requirements->size = block->size;
		requirements->alignment = SIM_PAGE;
	}
	sim_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
