/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: each call ends in exactly one driver entry, the same one as in the real runtime. */
#include "tests/simcuda/runtime/rt.h"

#include <stdint.h>
#include <string.h>

cudaError_t cudaMalloc(void **address, size_t size)
{
	RT_ENTER();
	return rt_done((int)rt->mem_alloc((CUdeviceptr *)address, size));
}

cudaError_t cudaMallocManaged(void **address, size_t size, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->mem_alloc_managed((CUdeviceptr *)address, size, flags));
}

cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
	RT_ENTER();
	return rt_done((int)rt->mem_alloc_pitch((CUdeviceptr *)address, pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ret_pointer, struct cudaExtent extent)
{
	size_t rows = extent.height * extent.depth;

	RT_ENTER();
	ret_pointer->xsize = extent.width;
	ret_pointer->ysize = extent.height;
	return rt_done((int)rt->mem_alloc_pitch((CUdeviceptr *)&ret_pointer->ptr, &ret_pointer->pitch,
	                                        extent.width, rows, 4));
}

cudaError_t cudaFree(void *address)
{
	RT_ENTER();
	return rt_done((int)rt->mem_free((CUdeviceptr)(uintptr_t)address));
}

cudaError_t cudaHostAlloc(void **address, size_t size, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->host_alloc(address, size, flags));
}

cudaError_t cudaMallocHost(void **address, size_t size)
{
	return cudaHostAlloc(address, size, 0);
}

cudaError_t cudaFreeHost(void *address)
{
	RT_ENTER();
	return address ? rt_done((int)rt->host_free(address)) : cudaSuccess;
}

cudaError_t cudaHostRegister(void *address, size_t size, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->host_register(address, size, flags));
}

cudaError_t cudaHostUnregister(void *address)
{
	RT_ENTER();
	return rt_done((int)rt->host_unregister(address));
}

cudaError_t cudaHostGetDevicePointer(void **ret_address, void *address, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->host_pointer((CUdeviceptr *)ret_address, address, flags));
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *address)
{
	RT_ENTER();
	return rt_done((int)rt->host_flags(flags, address));
}

cudaError_t cudaMallocAsync(void **address, size_t size, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->alloc_async((CUdeviceptr *)address, size, stream));
}

cudaError_t cudaMallocAsync_ptsz(void **address, size_t size, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt_per_thread->alloc_async((CUdeviceptr *)address, size, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->alloc_from_pool((CUdeviceptr *)address, size, pool, stream));
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->free_async((CUdeviceptr)(uintptr_t)address, stream));
}

cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt_per_thread->free_async((CUdeviceptr)(uintptr_t)address, stream));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	RT_ENTER();
	return rt_done((int)rt->pool_create(pool, (const CUmemPoolProps *)props));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	RT_ENTER();
	return rt_done((int)rt->pool_destroy(pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	RT_ENTER();
	return rt_done((int)rt->pool_trim(pool, keep));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	RT_ENTER();
	return rt_done((int)rt->pool_set(pool, (CUmemPool_attribute)attribute, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	RT_ENTER();
	return rt_done((int)rt->pool_get(pool, (CUmemPool_attribute)attribute, value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
	RT_ENTER();
	return rt_done((int)rt->pool_access(pool, (const CUmemAccessDesc *)list, count));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	RT_ENTER();
	return rt_done((int)rt->pool_default(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	RT_ENTER();
	return rt_done((int)rt->pool_current(pool, device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	RT_ENTER();
	return rt_done((int)rt->pool_choose(device, pool));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
	RT_ENTER();
	return rt_done((int)rt->graph_mem_get(device, (CUgraphMem_attribute)attribute, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
	RT_ENTER();
	return rt_done((int)rt->graph_mem_set(device, (CUgraphMem_attribute)attribute, value));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	RT_ENTER();
	return rt_done((int)rt->graph_mem_trim(device));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	RT_ENTER();
	return rt_done((int)rt->mem_info(free_bytes, total));
}

static const CUarray_format formats[4][3] = {
	/* unsigned, signed, float; by log2 of the channel's bytes */
	{CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8, 0},
	{CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_HALF},
	{CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_FLOAT},
};

static CUarray_format format_of(const struct cudaChannelFormatDesc *desc)
{
	int kind = desc->f == cudaChannelFormatKindUnsigned ? 0
	           : desc->f == cudaChannelFormatKindSigned ? 1
	                                                    : 2;

	return formats[desc->x == 8 ? 0 : desc->x == 16 ? 1 : 2][kind];
}

static cudaError_t array_create(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	RT_ENTER();
	if (!desc)
		return rt_done(cudaErrorInvalidValue);
	full.Width = extent.width;
	full.Height = extent.height;
	full.Depth = extent.depth;
	full.Format = format_of(desc);
	full.NumChannels = (unsigned int)(1 + (desc->y != 0) + (desc->z != 0) + (desc->w != 0));
	full.Flags = flags;
	return rt_done((int)rt->array_create((CUarray *)array, &full));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width,
                            size_t height, unsigned int flags)
{
	return array_create(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                              struct cudaExtent extent, unsigned int flags)
{
	return array_create(array, desc, extent, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	RT_ENTER();
	return array ? rt_done((int)rt->array_destroy((CUarray)array)) : cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *ret_attributes, const void *address)
{
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
	                               CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	                               CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	                               CU_POINTER_ATTRIBUTE_HOST_POINTER};
	unsigned int type = 0, managed = 0;
	int ordinal = 0;
	void *device = NULL, *host = NULL;
	void *values[] = {&type, &managed, &ordinal, &device, &host};
	CUresult rc;

	RT_ENTER();
	if (!ret_attributes)
		return rt_done(cudaErrorInvalidValue);
	rc = rt->pointer_attributes(5, names, values, (CUdeviceptr)(uintptr_t)address);
	memset(ret_attributes, 0, sizeof(*ret_attributes));
	ret_attributes->type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type;
	ret_attributes->device = ordinal;
	ret_attributes->devicePointer = device;
	ret_attributes->hostPointer = type ? host : (void *)(uintptr_t)address;
	return rt_done((int)rc);
}

static CUmemLocation location_of(struct cudaMemLocation location)
{
	return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

cudaError_t cudaMemPrefetchAsync(const void *address, size_t size, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->prefetch((CUdeviceptr)(uintptr_t)address, size, location_of(location), flags,
	                                 stream));
}

cudaError_t cudaMemAdvise(const void *address, size_t size, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
	RT_ENTER();
	return rt_done((int)rt->advise((CUdeviceptr)(uintptr_t)address, size, (CUmem_advise)advice,
	                               location_of(location)));
}
