/* SPDX-License-Identifier: Apache-2.0 */
/* The one device: what it says about itself. Figures are a GB10's where they are public, else plausible. */
#include "tests/simcuda/driver/sim.h"

#include <stdio.h>
#include <string.h>

struct attribute {
	CUdevice_attribute attribute;
	int value;
};

/* Attributes that are not here answer 0. */
static const struct attribute attributes[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
	{CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 2418000},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
	{CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
	{CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
	{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 48},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
	{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 15},
	{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 4266000},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
	{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 25165824},
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536},
	{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 1},
	{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102400},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101376},
	{CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 24},
	{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
};

/* Attributes that only a device with the host's own memory has. */
static const CUdevice_attribute integrated[] = {
	CU_DEVICE_ATTRIBUTE_INTEGRATED,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
	CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
};

CUresult cuDeviceGetCount(int *count)
{
	SIM_ENTER();
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	SIM_ENTER();
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (ordinal != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	SIM_ENTER();
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)len, "%s", sim.gb10 ? SIM_DEVICE_NAME : "NVIDIA simulated device");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	SIM_ENTER();
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid->bytes, "simulated-gb10-0", sizeof(uuid->bytes));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

uint64_t device_total(void)
{
	uint64_t total = proc_meminfo("MemTotal");

	return sim.gb10 || sim.limit > total ? total : sim.limit;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	SIM_ENTER();
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = device_total();
	return CUDA_SUCCESS;
}

/* One pool of memory: free is what the kernel has free, whoever uses the rest. */
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	SIM_ENTER();
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	*total = device_total();
	if (sim.gb10)
		*free_bytes = proc_meminfo("MemFree");
	else
		*free_bytes = *total > sim.counts.device ? *total - sim.counts.device : 0;
	ledger_note(__func__, *free_bytes, *total, CUDA_SUCCESS, "");
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	SIM_ENTER();
	if (!value || (int)attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	/* A disk can write to the memory of a card, but not to that of a GB10. */
	*value = attribute == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED && !sim.gb10;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	for (size_t i = 0; sim.gb10 && i < sizeof(integrated) / sizeof(*integrated); i++)
		if (integrated[i] == attribute)
			*value = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	SIM_ENTER();
	if (!id || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(id, (size_t)len, "000F:01:00.0");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	SIM_ENTER();
	if (!dev || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (strcmp(id, "000F:01:00.0") != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	SIM_ENTER();
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0 || peer != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*can = 0;
	return CUDA_SUCCESS;
}
