/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration of device code, and launches. Nothing is ever loaded: a kernel is known by the address of
 * its host function, which is what the driver gets as its handle, and runs no code. A device variable has
 * memory of its own from its first use on.
 */
#include "tests/simcuda/runtime/rt.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define VARIABLES_MAX 4096
#define CALLS_MAX     16

struct variable {
	const void *host;
	size_t size;
	CUdeviceptr device;
};

struct call {
	dim3 grid, block;
	size_t shared;
	struct CUstream_st *stream;
};

static struct variable variables[VARIABLES_MAX];
static size_t variable_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct call calls[CALLS_MAX];
static _Thread_local unsigned int call_count;

/* What nvcc's generated code calls; its declarations are in headers for C++ only. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                              size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t stream);

void **__cudaRegisterFatBinary(void *binary)
{
	static void *handle;

	handle = binary;
	return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            void *tid, void *bid, void *block, void *grid, int *warp)
{
	(void)handle;
	(void)host;
	(void)device;
	(void)name;
	(void)limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global)
{
	(void)handle;
	(void)device;
	(void)name;
	(void)external;
	(void)constant;
	(void)global;
	pthread_mutex_lock(&lock);
	if (variable_count < VARIABLES_MAX)
		variables[variable_count++] = (struct variable){host, size, 0};
	pthread_mutex_unlock(&lock);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                              size_t size, int constant, int global)
{
	__cudaRegisterVar(handle, (char *)host, device, name, external, size, constant, global);
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 0;
}

/* Returns the variable with device memory behind it, or NULL. */
static struct variable *variable_get(const void *symbol)
{
	struct variable *found = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < variable_count && !found; i++)
		if (variables[i].host == symbol)
			found = &variables[i];
	if (found && !found->device && rt->mem_alloc(&found->device, found->size) != CUDA_SUCCESS)
		found = NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
	const struct variable *variable;

	RT_ENTER();
	variable = variable_get(symbol);
	if (!variable || !address)
		return rt_done(cudaErrorInvalidSymbol);
	*address = (void *)(uintptr_t)variable->device;
	return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	const struct variable *variable;

	RT_ENTER();
	variable = variable_get(symbol);
	if (!variable || !size)
		return rt_done(cudaErrorInvalidSymbol);
	*size = variable->size;
	return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t size, size_t offset,
                               enum cudaMemcpyKind kind)
{
	const struct variable *variable;

	RT_ENTER();
	variable = variable_get(symbol);
	if (!variable)
		return rt_done(cudaErrorInvalidSymbol);
	if (offset + size > variable->size)
		return rt_done(cudaErrorInvalidValue);
	return cudaMemcpy((void *)(uintptr_t)(variable->device + offset), src, size, kind);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	if (call_count == CALLS_MAX)
		return cudaErrorInvalidConfiguration;
	calls[call_count++] = (struct call){grid, block, shared, stream};
	return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!call_count)
		return rt_done(cudaErrorMissingConfiguration);
	call_count--;
	*grid = calls[call_count].grid;
	*block = calls[call_count].block;
	*shared = calls[call_count].shared;
	memcpy(stream, &calls[call_count].stream, sizeof(void *));
	return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	*kernel = (cudaKernel_t)(uintptr_t)host;
	return cudaSuccess;
}

static cudaError_t launch(const struct rt_driver *d, const void *function, dim3 grid, dim3 block, void **args,
                          size_t shared, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)d->launch((CUfunction)(uintptr_t)function, grid.x, grid.y, grid.z, block.x,
	                              block.y, block.z, (unsigned int)shared, stream, args, NULL));
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream)
{
	return launch(rt, (const void *)kernel, grid, block, args, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t stream)
{
	return launch(rt_per_thread, (const void *)kernel, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream)
{
	return launch(rt, function, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
	if (!config)
		return rt_done(cudaErrorInvalidValue);
	return launch(rt, function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
	              config->stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args,
                                        size_t shared, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->launch_cooperative((CUfunction)(uintptr_t)function, grid.x, grid.y, grid.z,
	                                           block.x, block.y, block.z, (unsigned int)shared, stream,
	                                           args));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
	if (!attributes || !function)
		return rt_done(cudaErrorInvalidValue);
	memset(attributes, 0, sizeof(*attributes));
	attributes->maxThreadsPerBlock = 1024;
	attributes->numRegs = 32;
	attributes->ptxVersion = attributes->binaryVersion = 121;
	attributes->maxDynamicSharedSizeBytes = 49152;
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
	(void)attribute;
	(void)value;
	return function ? cudaSuccess : rt_done(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                   int block_size, size_t shared,
                                                                   unsigned int flags)
{
	(void)shared;
	(void)flags;
	if (!blocks || !function || block_size <= 0)
		return rt_done(cudaErrorInvalidValue);
	*blocks = 1536 / block_size < 24 ? 1536 / block_size : 24;
	return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared,
	                                                              0);
}
