/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated management library, libnvidia-ml.so.1: one device. Memory figures come from the process
 * that asks, since the device of a simulation lives in its memory; on a GB10 they are not supported, as
 * on the real one. Declared by hand: NVML's header is in no package that the build needs.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NVML_SUCCESS                 0
#define NVML_ERROR_INVALID_ARGUMENT  2
#define NVML_ERROR_NOT_SUPPORTED     3
#define NVML_ERROR_NOT_FOUND         6
#define NVML_ERROR_INSUFFICIENT_SIZE 7

#define TEMPERATURE 52     /* degrees Celsius */
#define POWER       38000  /* mW */
#define POWER_LIMIT 140000 /* mW */
#define CLOCK_SM    2418   /* MHz */

typedef struct device *nvmlDevice_t;

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long used;
	unsigned int instance, compute_instance;
};

struct nvml_pci {
	char legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char id[32];
};

static struct device {
	int unused;
} device;

/* Bytes that the simulated driver of this process holds; *ret_total: of how many. 0: there is none. */
static unsigned long long device_bytes(unsigned long long *ret_total)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void (*bytes)(unsigned long long *, unsigned long long *);
	unsigned long long used = 0;

	*ret_total = 0;
	if (!driver)
		return 0;
	bytes = (void (*)(unsigned long long *, unsigned long long *))dlsym(driver, "simcuda_bytes");
	if (bytes)
		bytes(&used, ret_total);
	dlclose(driver);
	return used;
}

static int one_pool(void)
{
	const char *value = getenv("SIMCUDA_GB10");

	return value && *value && strcmp(value, "0") != 0;
}

static int text(char *buffer, unsigned int size, const char *value)
{
	if (!buffer)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(value) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(buffer, value);
	return NVML_SUCCESS;
}

static int number(const void *handle, unsigned int *value, unsigned int answer)
{
	if (handle != &device || !value)
		return NVML_ERROR_INVALID_ARGUMENT;
	*value = answer;
	return NVML_SUCCESS;
}

#define NVML __attribute__((visibility("default"))) int
#define NOT_SUPPORTED(name)                      \
	NVML name(void);                         \
	NVML name(void)                          \
	{                                        \
		return NVML_ERROR_NOT_SUPPORTED; \
	}

NVML nvmlInit_v2(void);
NVML nvmlInitWithFlags(unsigned int flags);
NVML nvmlShutdown(void);
NVML nvmlSystemGetDriverVersion(char *version, unsigned int size);
NVML nvmlSystemGetNVMLVersion(char *version, unsigned int size);
NVML nvmlSystemGetCudaDriverVersion_v2(int *version);
NVML nvmlDeviceGetCount_v2(unsigned int *count);
NVML nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *ret_device);
NVML nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *ret_device);
NVML nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret_device);
NVML nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int size);
NVML nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int size);
NVML nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index);
NVML nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minor);
NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, struct nvml_pci *pci);
NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor);
NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, struct nvml_memory *memory);
NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, struct nvml_memory_v2 *memory);
NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                             struct nvml_process *processes);
NVML nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                          struct nvml_process *processes);
NVML nvmlDeviceGetTemperature(nvmlDevice_t handle, unsigned int sensor, unsigned int *value);
NVML nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *value);
NVML nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned int *value);
NVML nvmlDeviceGetClockInfo(nvmlDevice_t handle, unsigned int type, unsigned int *value);
NVML nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle, unsigned long long *reasons);
NVML nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons);
NVML nvmlDeviceGetPerformanceState(nvmlDevice_t handle, unsigned int *state);
NVML nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, unsigned int index, unsigned int *status);
__attribute__((visibility("default"))) const char *nvmlErrorString(int result);

NOT_SUPPORTED(nvmlDeviceGetGpuFabricInfoV)
NOT_SUPPORTED(nvmlDeviceGetGpuFabricInfo)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NOT_SUPPORTED(nvmlDeviceGetNvLinkState)
NOT_SUPPORTED(nvmlDeviceGetFanSpeed)
NOT_SUPPORTED(nvmlDeviceGetUtilizationRates)

int nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

int nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int size)
{
	return text(version, size, "580.00.sim");
}

int nvmlSystemGetNVMLVersion(char *version, unsigned int size)
{
	return text(version, size, "13.580.00.sim");
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = 13000;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	return number(&device, count, 1);
}

static int handle_give(int found, nvmlDevice_t *ret_device)
{
	if (!ret_device)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!found)
		return NVML_ERROR_NOT_FOUND;
	*ret_device = &device;
	return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *ret_device)
{
	return index ? NVML_ERROR_INVALID_ARGUMENT : handle_give(1, ret_device);
}

/* Callers write the domain with 4 or 8 digits. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *ret_device)
{
	unsigned int domain = 0, bus = 0;

	return handle_give(id && sscanf(id, "%x:%x:", &domain, &bus) == 2 && domain == 15 && bus == 1,
	                   ret_device);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret_device)
{
	return handle_give(uuid && strncmp(uuid, "GPU-", 4) == 0, ret_device);
}

int nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int size)
{
	if (handle != &device)
		return NVML_ERROR_INVALID_ARGUMENT;
	return text(name, size, one_pool() ? "NVIDIA GB10 (simulated)" : "NVIDIA simulated device");
}

/* The bytes "simulated-gb10-0" that the driver's UUID has. */
int nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int size)
{
	return handle == &device ? text(uuid, size, "GPU-73696d75-6c61-7465-642d-676231302d30")
	                         : NVML_ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
	return number(handle, index, 0);
}

int nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned int *minor)
{
	return number(handle, minor, 0);
}

int nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, struct nvml_pci *pci)
{
	if (handle != &device || !pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(pci, 0, sizeof(*pci));
	pci->domain = 15;
	pci->bus = 1;
	strcpy(pci->legacy, "000F:01:00.0");
	strcpy(pci->id, "0000000F:01:00.0");
	return NVML_SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
	if (handle != &device || !major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = 12;
	*minor = 1;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, struct nvml_memory *memory)
{
	if (handle != &device || !memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (one_pool())
		return NVML_ERROR_NOT_SUPPORTED;
	memory->used = device_bytes(&memory->total);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, struct nvml_memory_v2 *memory)
{
	if (handle != &device || !memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (one_pool())
		return NVML_ERROR_NOT_SUPPORTED;
	memory->used = device_bytes(&memory->total);
	memory->free = memory->total - memory->used;
	memory->reserved = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count,
                                            struct nvml_process *processes)
{
	unsigned long long total, used = device_bytes(&total);
	unsigned int room;

	if (handle != &device || !count)
		return NVML_ERROR_INVALID_ARGUMENT;
	room = *count;
	*count = used > 0;
	if (!used)
		return NVML_SUCCESS;
	if (!room || !processes)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	processes[0] = (struct nvml_process){(unsigned int)getpid(), used, ~0u, ~0u};
	return NVML_SUCCESS;
}

/* The first version's records have only pid and bytes. */
int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned int *count,
                                         struct nvml_process *processes)
{
	struct nvml_process process;
	int rc = nvmlDeviceGetComputeRunningProcesses_v3(handle, count, processes ? &process : NULL);

	if (rc == NVML_SUCCESS && count && *count && processes)
		memcpy(processes, &process, 16);
	return rc;
}

int nvmlDeviceGetTemperature(nvmlDevice_t handle, unsigned int sensor, unsigned int *value)
{
	return sensor ? NVML_ERROR_INVALID_ARGUMENT : number(handle, value, TEMPERATURE);
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *value)
{
	return number(handle, value, POWER);
}

int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned int *value)
{
	return number(handle, value, POWER_LIMIT);
}

int nvmlDeviceGetClockInfo(nvmlDevice_t handle, unsigned int type, unsigned int *value)
{
	(void)type;
	return number(handle, value, CLOCK_SM);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle, unsigned long long *reasons)
{
	if (handle != &device || !reasons)
		return NVML_ERROR_INVALID_ARGUMENT;
	*reasons = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons)
{
	return nvmlDeviceGetCurrentClocksThrottleReasons(handle, reasons);
}

int nvmlDeviceGetPerformanceState(nvmlDevice_t handle, unsigned int *state)
{
	return number(handle, state, 0);
}

int nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, unsigned int index, unsigned int *status)
{
	(void)index;
	return a == b ? number(a, status, 0) : NVML_ERROR_INVALID_ARGUMENT;
}

const char *nvmlErrorString(int result)
{
	return result == NVML_SUCCESS               ? "Success"
	       : result == NVML_ERROR_NOT_SUPPORTED ? "Not Supported"
	                                            : "Error";
}
