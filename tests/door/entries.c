/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every family of owned entries once over the simulated driver, in the order that tests/run/doors.py expects.
 * Prints the results, which must not depend on who is watching.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB      ((size_t)1 << 20)
#define DO(call) printf("%s: %d\n", #call, (int)(call))

static CUdeviceptr plain, other;
static char *host;

static void memory(void)
{
	CUdeviceptr pitched, managed, large = 0;
	size_t pitch, free_bytes, total;
	void *pinned[2];

	DO(cuMemAlloc_v2(&plain, 4 * MIB));
	DO(cuMemAlloc_v2(&other, 4 * MIB));
	DO(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 10, 4));
	DO(cuMemAllocManaged(&managed, 3 * MIB, CU_MEM_ATTACH_GLOBAL));
	DO(cuMemAlloc_v2(&large, (size_t)1 << 50));
	DO(cuMemHostAlloc(&pinned[0], MIB, CU_MEMHOSTALLOC_PORTABLE));
	DO(cuMemAllocHost_v2(&pinned[1], 2 * MIB));
	DO(cuMemHostRegister_v2(host, 2 * MIB, 0));
	DO(cuMemGetInfo_v2(&free_bytes, NULL));
	DO(cuMemGetInfo_v2(NULL, &total));
	DO(cuMemHostUnregister(host));
	DO(cuMemFreeHost(pinned[1]));
	DO(cuMemFreeHost(pinned[0]));
	DO(cuMemFree_v2(managed));
	DO(cuMemFree_v2(pitched));
	DO(cuMemFree_v2(pitched));
	DO(cuMemFree_v2(0));
}

static void pools(CUstream stream)
{
	CUmemPoolProps props;
	CUmemoryPool pool, standard;
	CUdeviceptr ptr[3];
	cuuint64_t all = UINT64_MAX;

	memset(&props, 0, sizeof(props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DO(cuDeviceGetDefaultMemPool(&standard, 0));
	DO(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
	DO(cuMemPoolCreate(&pool, &props));
	DO(cuMemAllocAsync(&ptr[0], MIB, stream));
	DO(cuMemAllocAsync_ptsz(&ptr[1], 2 * MIB, NULL));
	DO(cuMemAllocFromPoolAsync(&ptr[2], 3 * MIB, pool, stream));
	DO(cuMemFreeAsync(ptr[0], stream));
	DO(cuMemFreeAsync_ptsz(ptr[1], NULL));
	DO(cuMemFree_v2(ptr[2]));
	DO(cuMemPoolTrimTo(standard, 0));
	DO(cuMemPoolDestroy(pool));
}

static void virtual_memory(void)
{
	CUmemGenericAllocationHandle handle, again;
	CUmemAllocationProp prop;
	CUdeviceptr range;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DO(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
	DO(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	DO(cuMemMap(range, 2 * MIB, 0, handle, 0));
	DO(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range));
	DO(cuMemRelease(again));
	DO(cuMemRelease(handle));
	DO(cuMemUnmap(range, 2 * MIB));
	DO(cuMemAddressFree(range, 8 * MIB));
	DO(cuMemCreate(&handle, (size_t)1 << 50, &prop, 0));
}

static void arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUarray array;

	memset(&desc, 0, sizeof(desc));
	desc.Width = desc.Height = 64;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 4;
	DO(cuArray3DCreate_v2(&array, &desc));
	DO(cuArrayDestroy(array));
}

static void ranges(CUstream stream)
{
	DO(cuMemcpyHtoD_v2(plain, host, 10));
	DO(cuMemcpyHtoD_v2_ptds(plain, host, 11));
	DO(cuMemcpyHtoDAsync_v2(plain, host, 12, stream));
	DO(cuMemcpyHtoDAsync_v2_ptsz(plain, host, 13, NULL));
	DO(cuMemcpyDtoH_v2(host, plain, 14));
	DO(cuMemcpyDtoHAsync_v2(host, plain, 15, stream));
	DO(cuMemcpyDtoD_v2(other, plain, 16));
	DO(cuMemcpyDtoDAsync_v2(other, plain, 17, stream));
	DO(cuMemcpy(other, (CUdeviceptr)(uintptr_t)host, 18));
	DO(cuMemcpyAsync_ptsz(other, plain, 19, NULL));
}

static void shapes(CUstream stream)
{
	CUDA_MEMCPY2D flat;
	CUDA_MEMCPY3D deep;

	memset(&flat, 0, sizeof(flat));
	flat.srcMemoryType = CU_MEMORYTYPE_HOST;
	flat.srcHost = host;
	flat.srcPitch = 100;
	flat.srcY = 2;
	flat.srcXInBytes = 3;
	flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	flat.dstDevice = plain;
	flat.dstPitch = 200;
	flat.dstY = 1;
	flat.WidthInBytes = 50;
	flat.Height = 4;
	DO(cuMemcpy2D_v2(&flat));
	DO(cuMemcpy2DAsync_v2(&flat, stream));
	memset(&deep, 0, sizeof(deep));
	deep.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	deep.srcDevice = plain;
	deep.srcPitch = 64;
	deep.srcHeight = 8;
	deep.srcZ = 1;
	deep.dstMemoryType = CU_MEMORYTYPE_HOST;
	deep.dstHost = host;
	deep.dstPitch = 64;
	deep.dstHeight = 8;
	deep.WidthInBytes = 32;
	deep.Height = 4;
	deep.Depth = 2;
	DO(cuMemcpy3D_v2(&deep));
}

static void batch(CUstream stream)
{
	CUdeviceptr dsts[2] = {plain, other},
		    srcs[2] = {(CUdeviceptr)(uintptr_t)host, (CUdeviceptr)(uintptr_t)host};
	size_t sizes[2] = {20, 21}, first = 0;
	CUmemcpyAttributes attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	DO(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attributes, &first, 1, stream));
}

static void sets(CUstream stream)
{
	DO(cuMemsetD8_v2(plain, 1, 30));
	DO(cuMemsetD16_v2(plain, 1, 31));
	DO(cuMemsetD32_v2(plain, 1, 32));
	DO(cuMemsetD8Async(plain, 1, 33, stream));
	DO(cuMemsetD32Async_ptsz(plain, 1, 34, NULL));
	DO(cuMemsetD2D8_v2(plain, 64, 1, 10, 5));
}

static void waits(CUstream stream)
{
	CUevent event;

	DO(cuEventCreate(&event, 0));
	DO(cuEventRecord(event, stream));
	DO(cuStreamWaitEvent(stream, event, 0));
	DO(cuEventSynchronize(event));
	DO(cuStreamSynchronize(stream));
	DO(cuStreamSynchronize_ptsz(NULL));
	DO(cuCtxSynchronize());
}

int main(void)
{
	CUcontext context;
	CUstream stream;

	host = calloc(4, MIB);
	DO(cuInit(0));
	DO(cuDevicePrimaryCtxRetain(&context, 0));
	DO(cuCtxSetCurrent(context));
	DO(cuStreamCreate(&stream, 0));
	memory();
	pools(stream);
	virtual_memory();
	arrays();
	ranges(stream);
	shapes(stream);
	batch(stream);
	sets(stream);
	waits(stream);
	DO(cuDevicePrimaryCtxRelease_v2(0));
	return 0;
}
