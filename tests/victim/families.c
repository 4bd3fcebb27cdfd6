/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each family of the driver's memory calls once, with sizes that a test knows, and bytes that are checked
 * on the way. Every family gives back what it took.
 *
 *	families [FAMILY...]		all of them by default
 */
#include "tests/victim/victim.h"

#define EXPECT(call, rc) MUST((int)(call) != (int)(rc))

static unsigned char bytes[8 * MIB], back[8 * MIB];

/* Writes a pattern to the device and reads it back. */
static void roundtrip(CUdeviceptr block, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 4096);
	memset(back, 0, size);
	MUST(cuMemcpyHtoD(block, bytes, size));
	MUST(cuMemcpyDtoH(back, block, size));
	MUST(memcmp(bytes, back, size));
}

static void plain(void)
{
	CUdeviceptr block, base;
	size_t size;

	MUST(cuMemAlloc(&block, 3 * MIB));
	MUST(block % 512);
	roundtrip(block, 3 * MIB);
	MUST(cuMemGetAddressRange(&base, &size, block + 12345));
	MUST(base != block || size != 3 * MIB);
	MUST(cuMemFree(block));
	EXPECT(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
}

/* 1000 bytes a row become 1024. */
static void pitched(void)
{
	CUdeviceptr block;
	size_t pitch;

	MUST(cuMemAllocPitch(&block, &pitch, 1000, 1000, 4));
	MUST(pitch != 1024);
	roundtrip(block, pitch * 1000);
	MUST(cuMemFree(block));
}

static void managed(void)
{
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	CUdeviceptr block;

	MUST(cuMemAllocManaged(&block, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
	memset((void *)(uintptr_t)block, 3, 8 * MIB);
	MUST(cuMemPrefetchAsync(block, 8 * MIB, device, 0, NULL));
	MUST(cuMemFree(block));
}

static void pinned(void)
{
	void *first, *second;
	CUdeviceptr block;

	MUST(cuMemHostAlloc(&first, 4 * MIB, CU_MEMHOSTALLOC_PORTABLE));
	MUST(cuMemAllocHost(&second, 2 * MIB));
	MUST(cuMemAlloc(&block, 4 * MIB));
	memset(first, 9, 4 * MIB);
	MUST(cuMemcpyHtoDAsync(block, first, 4 * MIB, NULL));
	MUST(cuMemcpyDtoHAsync(second, block, 2 * MIB, NULL));
	MUST(cuStreamSynchronize(NULL));
	MUST(memcmp(first, second, 2 * MIB));
	MUST(cuMemFree(block));
	MUST(cuMemFreeHost(second));
	MUST(cuMemFreeHost(first));
	EXPECT(cuMemFreeHost(first), CUDA_ERROR_INVALID_VALUE);
}

static void registered(void)
{
	void *host = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr same;

	MUST(host == MAP_FAILED);
	MUST(cuMemHostRegister(host, 4 * MIB, CU_MEMHOSTREGISTER_DEVICEMAP));
	EXPECT(cuMemHostRegister(host, 4 * MIB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	MUST(cuMemHostGetDevicePointer(&same, host, 0));
	MUST(same != (CUdeviceptr)(uintptr_t)host);
	MUST(cuMemHostUnregister(host));
	EXPECT(cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	MUST(munmap(host, 4 * MIB));
}

static cuuint64_t pool_bytes(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value;

	MUST(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

/* The default pool keeps everything up to its threshold, and gives it back when it is trimmed. */
static void async(void)
{
	cuuint64_t threshold = UINT64_MAX;
	CUdeviceptr first, second;
	CUmemoryPool pool;

	MUST(cuDeviceGetDefaultMemPool(&pool, 0));
	MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	MUST(cuMemAllocAsync(&first, 3 * MIB, NULL));
	MUST(cuMemAllocAsync(&second, 5 * MIB, NULL));
	roundtrip(second, 5 * MIB);
	MUST(pool_bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) != 8 * MIB);
	MUST(cuMemFreeAsync(first, NULL));
	MUST(cuMemFree(second));
	MUST(cuStreamSynchronize(NULL));
	MUST(pool_bytes(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) != 0);
	MUST(pool_bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 8 * MIB);
	MUST(cuMemPoolTrimTo(pool, 0));
	MUST(pool_bytes(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) != 0);
	threshold = 0;
	MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

/* A pool without a threshold gives back at the next wait. */
static void pool(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUdeviceptr block;
	CUmemoryPool made;

	MUST(cuMemPoolCreate(&made, &props));
	MUST(cuMemAllocFromPoolAsync(&block, 6 * MIB, made, NULL));
	roundtrip(block, 6 * MIB);
	MUST(cuMemFreeAsync(block, NULL));
	MUST(cuCtxSynchronize());
	MUST(pool_bytes(made, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) != 0);
	MUST(cuMemPoolDestroy(made));
}

/* Two handles of 20 MiB side by side; the second stays alive by its mapping alone, then by a retain. */
static void vmm(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle first, second, again;
	CUdeviceptr range;

	MUST(cuMemAddressReserve(&range, 1024 * MIB, 0, 0, 0));
	MUST(cuMemCreate(&first, 20 * MIB, &prop, 0));
	MUST(cuMemCreate(&second, 20 * MIB, &prop, 0));
	MUST(cuMemMap(range, 20 * MIB, 0, first, 0));
	MUST(cuMemMap(range + 20 * MIB, 20 * MIB, 0, second, 0));
	EXPECT(cuMemcpyHtoD(range, bytes, MIB), CUDA_ERROR_INVALID_VALUE);
	MUST(cuMemSetAccess(range, 40 * MIB, &access, 1));
	roundtrip(range + 18 * MIB, 4 * MIB); /* across the seam */
	MUST(cuMemRelease(second));
	roundtrip(range + 20 * MIB, 4 * MIB);
	MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + 20 * MIB)));
	MUST(again != second);
	MUST(cuMemUnmap(range, 40 * MIB));
	MUST(cuMemRelease(again));
	EXPECT(cuMemRelease(again), CUDA_ERROR_INVALID_VALUE);
	MUST(cuMemRelease(first));
	MUST(cuMemAddressFree(range, 1024 * MIB));
}

/* 256 x 256 elements of two floats: 512 KiB. */
static void array(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = {
		.Width = 256, .Height = 256, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
	CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                    .srcHost = bytes,
	                    .srcPitch = 2048,
	                    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                    .WidthInBytes = 2048,
	                    .Height = 256};
	CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                     .dstMemoryType = CU_MEMORYTYPE_HOST,
	                     .dstHost = back,
	                     .dstPitch = 2048,
	                     .WidthInBytes = 2048,
	                     .Height = 256};

	MUST(cuArrayCreate(&in.dstArray, &desc));
	out.srcArray = in.dstArray;
	memset(bytes, 5, MIB / 2);
	MUST(cuMemcpy2D(&in));
	MUST(cuMemcpy2D(&out));
	MUST(memcmp(bytes, back, MIB / 2));
	MUST(cuArrayDestroy(in.dstArray));
}

static void batch(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
	CUdeviceptr dsts[] = {to, to + MIB}, srcs[] = {from, from + MIB};
	CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	size_t sizes[] = {MIB, MIB}, index = 0;

	MUST(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &attributes, &index, 1, stream));
	MUST(cuStreamSynchronize(stream));
}

static void copies(void)
{
	CUdeviceptr from, to;
	CUstream stream;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc(&from, 2 * MIB));
	MUST(cuMemAlloc(&to, 2 * MIB));
	roundtrip(from, 2 * MIB);
	batch(to, from, stream);
	MUST(cuMemcpyDtoD(to, from, MIB));
	MUST(cuMemcpyDtoDAsync(to + MIB, from + MIB, MIB, stream));
	memset(back, 0, 2 * MIB);
	MUST(cuMemcpy((CUdeviceptr)(uintptr_t)back, to, MIB));
	MUST(cuMemcpyAsync((CUdeviceptr)(uintptr_t)back + MIB, to + MIB, MIB, stream));
	MUST(memcmp(bytes, back, 2 * MIB));
	EXPECT(cuMemcpyHtoD(to, bytes, 2 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
	MUST(cuMemFree(to));
	MUST(cuMemFree(from));
	MUST(cuStreamDestroy(stream));
}

static void sets(void)
{
	CUdeviceptr block;

	MUST(cuMemAlloc(&block, MIB));
	MUST(cuMemsetD32(block, 0x01020304, MIB / 4));
	MUST(cuMemsetD16Async(block, 0x0506, 2, NULL));
	MUST(cuMemsetD8(block, 7, 1));
	MUST(cuMemcpyDtoH(back, block, 8));
	MUST(memcmp(back, "\x07\x05\x06\x05\x04\x03\x02\x01", 8));
	MUST(cuMemFree(block));
}

static void events(void)
{
	CUevent start, end;
	CUstream stream;
	float ms;

	MUST(cuStreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, -1));
	MUST(cuEventCreate(&start, CU_EVENT_DEFAULT));
	MUST(cuEventCreate(&end, CU_EVENT_DEFAULT));
	MUST(cuEventRecord(start, stream));
	MUST(cuEventRecord(end, stream));
	MUST(cuStreamWaitEvent(stream, end, 0));
	MUST(cuEventSynchronize(end));
	MUST(cuEventElapsedTime(&ms, start, end));
	MUST(ms < 0);
	MUST(cuEventDestroy(start));
	MUST(cuEventDestroy(end));
	MUST(cuStreamDestroy(stream));
}

static const struct family {
	const char *name;
	void (*run)(void);
} families[] = {
	{"plain", plain},           {"pitched", pitched}, {"managed", managed}, {"pinned", pinned},
	{"registered", registered}, {"async", async},     {"pool", pool},       {"vmm", vmm},
	{"array", array},           {"copies", copies},   {"sets", sets},       {"events", events},
};

static int wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc == 1;
}

int main(int argc, char **argv)
{
	device_open();
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		if (!wanted(families[i].name, argc, argv))
			continue;
		families[i].run();
		printf("%s\n", families[i].name);
	}
	return 0;
}
