/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: there is one. */
#include "tests/simcuda/runtime/rt.h"

#include <string.h>

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t error = rt_load();

	return rt_done(error == cudaSuccess ? (int)rt->device_count(count) : (int)error);
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t error = rt_load();

	if (error == cudaSuccess && device)
		*device = 0;
	return rt_done(error == cudaSuccess && !device ? (int)cudaErrorInvalidValue : (int)error);
}

cudaError_t cudaSetDevice(int device)
{
	if (device != 0)
		return rt_done(cudaErrorInvalidDevice);
	return rt_enter();
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	(void)device_flags;
	(void)flags;
	return cudaSetDevice(device);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	cudaError_t error = rt_load();

	return rt_done(error == cudaSuccess ? (int)rt->primary_flags(0, flags) : (int)error);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	cudaError_t error = rt_load();

	if (error != cudaSuccess)
		return rt_done((int)error);
	return rt_done((int)rt->device_attribute(value, (CUdevice_attribute)attribute, device));
}

static int attribute(CUdevice_attribute which)
{
	int value = 0;

	rt->device_attribute(&value, which, 0);
	return value;
}

/* Each integer of the structure is the driver's attribute of the same meaning. */
static void properties_fill(struct cudaDeviceProp *prop)
{
#define FIELD(field, name) prop->field = (__typeof__(prop->field))attribute(CU_DEVICE_ATTRIBUTE_##name)
	FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
	FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK);
	FIELD(warpSize, WARP_SIZE);
	FIELD(memPitch, MAX_PITCH);
	FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
	FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X);
	FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y);
	FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z);
	FIELD(maxGridSize[0], MAX_GRID_DIM_X);
	FIELD(maxGridSize[1], MAX_GRID_DIM_Y);
	FIELD(maxGridSize[2], MAX_GRID_DIM_Z);
	FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY);
	FIELD(major, COMPUTE_CAPABILITY_MAJOR);
	FIELD(minor, COMPUTE_CAPABILITY_MINOR);
	FIELD(textureAlignment, TEXTURE_ALIGNMENT);
	FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT);
	FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT);
	FIELD(integrated, INTEGRATED);
	FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY);
	FIELD(concurrentKernels, CONCURRENT_KERNELS);
	FIELD(pciBusID, PCI_BUS_ID);
	FIELD(pciDomainID, PCI_DOMAIN_ID);
	FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT);
	FIELD(unifiedAddressing, UNIFIED_ADDRESSING);
	FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
	FIELD(l2CacheSize, L2_CACHE_SIZE);
	FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR);
	FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED);
	FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED);
	FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED);
	FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
	FIELD(managedMemory, MANAGED_MEMORY);
	FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED);
	FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
	FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS);
	FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH);
	FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
	FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
	FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
	FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK);
	FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED);
	FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
#undef FIELD
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	cudaError_t error = rt_load();

	if (error == cudaSuccess && !prop)
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess && device != 0)
		error = cudaErrorInvalidDevice;
	if (error != cudaSuccess)
		return rt_done((int)error);
	memset(prop, 0, sizeof(*prop));
	rt->device_name(prop->name, sizeof(prop->name), 0);
	rt->device_uuid((CUuuid *)&prop->uuid, 0);
	rt->device_total(&prop->totalGlobalMem, 0);
	properties_fill(prop);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	cudaError_t error = rt_load();

	return rt_done(error == cudaSuccess ? (int)rt->device_pci(id, len, device) : (int)error);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	cudaError_t error = rt_load();

	return rt_done(error == cudaSuccess ? (int)rt->device_by_pci(device, id) : (int)error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t error = rt_load();

	return rt_done(error == cudaSuccess ? (int)rt->device_peer(can, device, peer) : (int)error);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	RT_ENTER();
	return rt_done((int)rt->context_priorities(least, greatest));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	RT_ENTER();
	return rt_done((int)rt->limit_set((CUlimit)limit, value));
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	RT_ENTER();
	return rt_done((int)rt->limit_get(value, (CUlimit)limit));
}

cudaError_t cudaDeviceSynchronize(void)
{
	RT_ENTER();
	return rt_done((int)rt->context_sync());
}

cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return rt_done(cudaErrorInvalidValue);
	*version = 0; /* the answer where there is no driver */
	return rt_load() == cudaSuccess ? rt_done((int)rt->driver_version(version)) : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_done(cudaErrorInvalidValue);
	*version = RT_VERSION;
	return cudaSuccess;
}

static cudaError_t entry_point(const char *name, void **function, unsigned int version,
                               unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
	cudaError_t error = rt_load();

	if (error != cudaSuccess)
		return rt_done((int)error);
	return rt_done((int)rt->resolve(name, function, (int)version, flags,
	                                (CUdriverProcAddressQueryResult *)status));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
	return entry_point(name, function, version, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **function, unsigned int version,
                                                  unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status)
{
	flags |= flags ? 0 : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	return entry_point(name, function, version, flags, status);
}

cudaError_t cudaProfilerStart(void)
{
	RT_ENTER();
	return rt_done((int)rt->profiler_start());
}

cudaError_t cudaProfilerStop(void)
{
	RT_ENTER();
	return rt_done((int)rt->profiler_stop());
}
