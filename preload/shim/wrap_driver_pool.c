/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory and its pools. What a pool holds changes inside the driver; it is read where that
 * costs nothing: around trims, at changes of its attributes, when it is made or first asked for.
 */
#include "call.h"

#include "banned.h"

static CUresult alloc_async(PFN_cuMemAllocAsync_v11020 real, struct alloc alloc, CUdeviceptr *ptr,
                            CUstream stream)
{
	CUresult result;

	alloc_begin(&alloc);
	result = real(ptr, alloc.asked, stream);
	return alloc_end(&alloc, result, CAME(result, ptr), alloc.asked);
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	return alloc_async(
		DRIVER(cuMemAllocAsync),
		(struct alloc){.how = ST_DEVICE_ASYNC,
	                       .asked = size,
	                       .stream = stream_of(stream, false),
	                       .capturing = stream_capturing(OPTIONAL(cuStreamIsCapturing), stream)},
		ptr, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	return alloc_async(
		DRIVER(cuMemAllocAsync_ptsz),
		(struct alloc){.how = ST_DEVICE_ASYNC,
	                       .asked = size,
	                       .stream = stream_of(stream, true),
	                       .capturing = stream_capturing(OPTIONAL(cuStreamIsCapturing_ptsz), stream)},
		ptr, stream);
}

static CUresult alloc_from_pool(PFN_cuMemAllocFromPoolAsync_v11020 real, struct alloc alloc, CUdeviceptr *ptr,
                                CUmemoryPool pool, CUstream stream)
{
	CUresult result;

	alloc.how = ST_DEVICE_POOL;
	alloc.pool = ADDRESS(pool);
	alloc_begin(&alloc);
	result = real(ptr, alloc.asked, pool, stream);
	return alloc_end(&alloc, result, CAME(result, ptr), alloc.asked);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)
{
	return alloc_from_pool(
		DRIVER(cuMemAllocFromPoolAsync),
		(struct alloc){.asked = size,
	                       .stream = stream_of(stream, false),
	                       .capturing = stream_capturing(OPTIONAL(cuStreamIsCapturing), stream)},
		ptr, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)
{
	return alloc_from_pool(
		DRIVER(cuMemAllocFromPoolAsync_ptsz),
		(struct alloc){.asked = size,
	                       .stream = stream_of(stream, true),
	                       .capturing = stream_capturing(OPTIONAL(cuStreamIsCapturing_ptsz), stream)},
		ptr, pool, stream);
}

static CUresult free_async(PFN_cuMemFreeAsync_v11020 real, CUdeviceptr ptr, CUstream stream, uint64_t queue,
                           uint64_t capturing)
{
	struct release release;

	release_begin(&release, RELEASE(device_free, .addr = ptr, .how = ST_DEVICE_ASYNC, .stream = queue,
	                                .flags = call_flags() | capturing));
	return release_end(&release, real(ptr, stream));
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	return free_async(DRIVER(cuMemFreeAsync), ptr, stream, stream_of(stream, false),
	                  stream_capturing(OPTIONAL(cuStreamIsCapturing), stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	return free_async(DRIVER(cuMemFreeAsync_ptsz), ptr, stream, stream_of(stream, true),
	                  stream_capturing(OPTIONAL(cuStreamIsCapturing_ptsz), stream));
}

/* "No limit" is the largest number there is, which in a record means unknown: it becomes the one below. */
static uint64_t pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	__typeof__(&cuMemPoolGetAttribute) ask = OPTIONAL(cuMemPoolGetAttribute);
	cuuint64_t value = 0;

	if (!ask || ask(pool, attribute, &value) != CUDA_SUCCESS)
		return ST_UNKNOWN;
	return value == ST_UNKNOWN ? ST_UNKNOWN - 1 : value;
}

static void note_pool_state(CUmemoryPool pool)
{
	EVENT(pool_state, .pool = ADDRESS(pool),
	      .reserved = pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
	      .used = pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
	      .threshold = pool_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
}

/* After a call that named or made a pool. */
static CUresult pool_end(struct call *call, CUresult result, CUmemoryPool pool)
{
	if (!call_end(call))
		return result;
	if (result == CUDA_SUCCESS && pool)
		note_pool_state(pool);
	call_done(call);
	return result;
}

static enum st_location location_of(CUmemLocationType type)
{
	return type == CU_MEM_LOCATION_TYPE_DEVICE ? ST_LOCATION_DEVICE : ST_LOCATION_HOST;
}

static CUresult pool_made(struct call *call, CUresult result, CUmemoryPool *pool, enum st_location location,
                          uint64_t limit)
{
	if (!call_end(call))
		return result;
	if (result == CUDA_SUCCESS && pool) {
		EVENT(pool_create, .pool = ADDRESS(*pool), .location = location, .size = limit);
		note_pool_state(*pool);
	}
	call_done(call);
	return result;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemPoolCreate)(pool, props);
	if (result != CUDA_SUCCESS)
		return pool_made(&call, result, NULL, ST_LOCATION_NONE, 0);
	return pool_made(&call, result, pool, location_of(props->location.type), props->maxSize);
}

/* A pool of another process: its memory is counted there. */
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
	struct call call;

	call_begin(&call);
	return pool_made(&call, DRIVER(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags), pool,
	                 ST_LOCATION_NONE, 0);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	struct alloc alloc = {.how = ST_DEVICE_IMPORT, .pool = ADDRESS(pool)};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuMemPoolImportPointer)(ptr, pool, data);
	return alloc_end(&alloc, result, CAME(result, ptr), 0);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct release release;

	release_begin(&release, RELEASE(pool_destroy, .pool = ADDRESS(pool)));
	return release_end(&release, DRIVER(cuMemPoolDestroy)(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	struct call call;

	call_begin(&call);
	if (!call.silent && guard_enter_nested(&call.own)) {
		note_pool_state(pool);
		call_done(&call);
	}
	return pool_end(&call, DRIVER(cuMemPoolTrimTo)(pool, keep), pool);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct call call;

	call_begin(&call);
	return pool_end(&call, DRIVER(cuMemPoolSetAttribute)(pool, attribute, value), pool);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuDeviceGetDefaultMemPool)(pool, device);
	return pool_end(&call, result, result == CUDA_SUCCESS ? *pool : NULL);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuDeviceGetMemPool)(pool, device);
	return pool_end(&call, result, result == CUDA_SUCCESS ? *pool : NULL);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	struct call call;

	call_begin(&call);
	return pool_end(&call, DRIVER(cuDeviceSetMemPool)(device, pool), pool);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemGetDefaultMemPool)(pool, location, type);
	return pool_end(&call, result, result == CUDA_SUCCESS ? *pool : NULL);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemGetMemPool)(pool, location, type);
	return pool_end(&call, result, result == CUDA_SUCCESS ? *pool : NULL);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	struct call call;

	call_begin(&call);
	return pool_end(&call, DRIVER(cuMemSetMemPool)(location, type, pool), pool);
}
