/* SPDX-License-Identifier: Apache-2.0 */
/* How the runtime finds the driver, what every call passes through, and the last error. */
#include "tests/simcuda/runtime/rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static struct rt_driver legacy, per_thread;
const struct rt_driver *const rt_legacy = &legacy, *const rt_per_thread = &per_thread;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t loaded = cudaErrorInsufficientDriver;
static void *driver;
static CUcontext primary;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local cudaError_t last;

int sim_stub(const char *name);

struct request {
	const char *base;
	int version;
	size_t offset; /* of the pointer in struct rt_driver */
};

static const struct request requests[] = {
#define D(field, base, version, type) {#base, version, offsetof(struct rt_driver, field)},
	RT_DRIVER(D)
#undef D
};

static void *entry_find(const char *name)
{
	void *probe;
	__typeof__(&cuGetProcAddress_v2) resolver;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return NULL;
	resolver = (__typeof__(resolver))dlsym(driver, name);
	/* An empty name tells a stub library (34) from a driver; the answer is of no further use. */
	if (resolver && resolver("", &probe, 0, 0, NULL) == CUDA_ERROR_STUB_LIBRARY)
		return NULL;
	return (void *)resolver;
}

static cudaError_t table_fill(__typeof__(&cuGetProcAddress_v2) resolver, cuuint64_t flags,
                              struct rt_driver *ret_table)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		void **slot = (void **)((char *)ret_table + requests[i].offset);
		CUdriverProcAddressQueryResult status;

		if (resolver(requests[i].base, slot, requests[i].version, flags, &status) != CUDA_SUCCESS ||
		    !*slot)
			return cudaErrorInsufficientDriver;
	}
	return cudaSuccess;
}

static void driver_load(void)
{
	__typeof__(&cuGetProcAddress_v2) resolver = (__typeof__(resolver))entry_find("cuGetProcAddress_v2");
	int version = 0;

	if (!resolver || table_fill(resolver, CU_GET_PROC_ADDRESS_DEFAULT, &legacy) != cudaSuccess ||
	    table_fill(resolver, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &per_thread) != cudaSuccess)
		return;
	legacy.driver_version(&version);
	if (version >= RT_VERSION)
		loaded = (cudaError_t)legacy.init(0);
}

cudaError_t rt_load(void)
{
	pthread_once(&once, driver_load);
	return loaded;
}

static CUresult primary_bind(void)
{
	CUcontext made = NULL;
	CUresult rc = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!primary) {
		rc = rt->primary_retain(&made, 0);
		primary = made;
	}
	if (rc == CUDA_SUCCESS)
		rc = rt->context_set(primary);
	pthread_mutex_unlock(&lock);
	return rc;
}

cudaError_t rt_enter(void)
{
	cudaError_t error = rt_load();
	CUcontext current = NULL;
	CUresult rc;

	if (error != cudaSuccess)
		return rt_done((int)error);
	rc = rt->context_get(&current);
	if (rc == CUDA_SUCCESS && !current)
		rc = primary_bind();
	return rt_done((int)rc);
}

cudaError_t rt_done(int result)
{
	if (result != cudaSuccess)
		last = (cudaError_t)result;
	return (cudaError_t)result;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;

	last = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

cudaError_t cudaDeviceReset(void)
{
	CUresult rc;

	RT_ENTER();
	pthread_mutex_lock(&lock);
	rc = rt->primary_reset(0);
	primary = NULL;
	pthread_mutex_unlock(&lock);
	return rt_done((int)rc);
}

struct error {
	cudaError_t code;
	const char *name, *text;
};

static const struct error errors[] = {
	{cudaSuccess, "cudaSuccess", "no error"},
	{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
	{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
	{cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
	{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
         "CUDA driver version is insufficient for CUDA runtime version"},
	{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
	{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
	{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
	{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
         "part or all of the requested memory range is already mapped"},
	{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
         "pointer does not correspond to a registered memory region"},
	{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

static const struct error *error_find(cudaError_t code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

const char *cudaGetErrorString(cudaError_t code)
{
	const struct error *error = error_find(code);

	return error ? error->text : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t code)
{
	const struct error *error = error_find(code);

	return error ? error->name : "unrecognized error code";
}

/* A generated stub: the driver's ledger tells, so that a test can find calls that nobody simulates. */
int sim_stub(const char *name)
{
	int (*note)(const char *) = NULL;

	if (rt_load() == cudaSuccess)
		note = (int (*)(const char *))dlsym(driver, "simcuda_stub");
	if (note)
		note(name);
	return rt_done(cudaErrorNotSupported);
}
