/* SPDX-License-Identifier: Apache-2.0 */
/* Copies with pitch: 2D and 3D, between host, device and arrays. A row after the other. */
#include "tests/simcuda/driver/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One side of a copy: the address of its first byte, and how far rows and slices lie apart. */
struct side {
	uint64_t addr, pitch, slice;
	bool host;
};

struct place {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

static bool side_resolve(const struct place *place, struct side *ret_side)
{
	const struct sim_block *block;

	*ret_side = (struct side){.pitch = place->pitch, .slice = place->pitch * place->height};
	switch (place->type) {
	case CU_MEMORYTYPE_HOST:
		ret_side->addr = (uint64_t)(uintptr_t)place->host;
		ret_side->host = true;
		break;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		ret_side->addr = place->device;
		break;
	case CU_MEMORYTYPE_ARRAY:
		block = table_find(&sim.blocks, (uint64_t)(uintptr_t)place->array);
		if (!block || block->kind != SIM_ARRAY)
			return false;
		ret_side->addr = block->addr;
		ret_side->pitch = block->offset; /* bytes of a row */
		ret_side->slice = block->owner;  /* bytes of a slice */
		break;
	default:
		return false;
	}
	ret_side->addr += place->z * ret_side->slice + place->y * ret_side->pitch + place->x;
	return ret_side->addr != 0;
}

static void rows_copy(const struct side *dst, const struct side *src, size_t width, size_t height,
                      size_t depth)
{
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			memmove((void *)(dst->addr + z * dst->slice + y * dst->pitch),
			        (const void *)(src->addr + z * src->slice + y * src->pitch), width);
}

static CUresult copy_places(const char *op, const struct place *to, const struct place *from, size_t width,
                            size_t height, size_t depth)
{
	struct side dst, src;
	char extra[64];
	bool valid;

	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!width || !height || !depth)
		return CUDA_SUCCESS;
	sim_lock();
	valid = side_resolve(to, &dst) && side_resolve(from, &src);
	sim_unlock();
	if (!valid)
		return CUDA_ERROR_INVALID_VALUE;
	rows_copy(&dst, &src, width, height, depth);
	snprintf(extra, sizeof(extra), ",\"src\":\"0x%" PRIx64 "\"", src.addr);
	sim_lock();
	if (src.host && !dst.host)
		sim.counts.copied += width * height * depth;
	ledger_note(op, dst.addr, width * height * depth, CUDA_SUCCESS, extra);
	sim_unlock();
	return CUDA_SUCCESS;
}

static CUresult copy_2d(const char *op, const CUDA_MEMCPY2D *copy)
{
	struct place to, from;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	to = (struct place){copy->dstMemoryType,
	                    copy->dstHost,
	                    copy->dstDevice,
	                    copy->dstArray,
	                    copy->dstXInBytes,
	                    copy->dstY,
	                    0,
	                    copy->dstPitch ? copy->dstPitch : copy->WidthInBytes,
	                    copy->Height};
	from = (struct place){copy->srcMemoryType,
	                      copy->srcHost,
	                      copy->srcDevice,
	                      copy->srcArray,
	                      copy->srcXInBytes,
	                      copy->srcY,
	                      0,
	                      copy->srcPitch ? copy->srcPitch : copy->WidthInBytes,
	                      copy->Height};
	return copy_places(op, &to, &from, copy->WidthInBytes, copy->Height, 1);
}

static CUresult copy_3d(const char *op, const CUDA_MEMCPY3D *copy)
{
	struct place to, from;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	to = (struct place){copy->dstMemoryType,
	                    copy->dstHost,
	                    copy->dstDevice,
	                    copy->dstArray,
	                    copy->dstXInBytes,
	                    copy->dstY,
	                    copy->dstZ,
	                    copy->dstPitch ? copy->dstPitch : copy->WidthInBytes,
	                    copy->dstHeight ? copy->dstHeight : copy->Height};
	from = (struct place){copy->srcMemoryType,
	                      copy->srcHost,
	                      copy->srcDevice,
	                      copy->srcArray,
	                      copy->srcXInBytes,
	                      copy->srcY,
	                      copy->srcZ,
	                      copy->srcPitch ? copy->srcPitch : copy->WidthInBytes,
	                      copy->srcHeight ? copy->srcHeight : copy->Height};
	return copy_places(op, &to, &from, copy->WidthInBytes, copy->Height, copy->Depth);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	SIM_ENTER();
	return copy_2d(__func__, copy);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
	SIM_ENTER();
	return copy_2d(__func__, copy);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? copy_2d(__func__, copy) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	SIM_ENTER();
	return copy_3d(__func__, copy);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? copy_3d(__func__, copy) : CUDA_ERROR_INVALID_HANDLE;
}
