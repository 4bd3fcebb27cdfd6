/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and kernels. A kernel is a name; launching it is counted and does nothing. */
#include "tests/simcuda/driver/sim.h"

/* Of cudaProfiler.h, which the header packages of PyPI do not have. */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

static CUresult module_new(CUmodule *ret_module)
{
	struct sim_object *object;

	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	object = object_new(SIM_MODULE);
	sim_unlock();
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_module = (CUmodule)object;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SIM_ENTER();
	return image ? module_new(module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                            void **values)
{
	SIM_ENTER();
	(void)count;
	(void)options;
	(void)values;
	return image ? module_new(module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleUnload(CUmodule module)
{
	struct sim_object *object = object_get(module, SIM_MODULE);

	SIM_ENTER();
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_lock();
	object_free(object);
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	struct sim_object *object;

	SIM_ENTER();
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_get(module, SIM_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_lock();
	object = object_new(SIM_FUNCTION);
	sim_unlock();
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*function = (CUfunction)object;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SIM_ENTER();
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	SIM_ENTER();
	if (!value || !function)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 121;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = 49152;
		break;
	default:
		*value = 0;
		break;
	}
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	SIM_ENTER();
	(void)attribute;
	(void)value;
	return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	SIM_ENTER();
	(void)config;
	return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Launches are many and alike: counted, not written. */
static CUresult launch(CUfunction function, CUstream stream)
{
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	__atomic_add_fetch(&sim.counts.launches, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **params, void **extra)
{
	SIM_ENTER();
	(void)shared;
	(void)params;
	(void)extra;
	if (!gx || !gy || !gz || !bx || !by || !bz)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(function, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	SIM_ENTER();
	(void)params;
	(void)extra;
	return config ? launch(function, config->hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                   CUstream stream, void **params)
{
	SIM_ENTER();
	(void)shared;
	(void)params;
	if (!gx || !gy || !gz || !bx || !by || !bz)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(function, stream);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int block_size, size_t shared,
                                                              unsigned int flags)
{
	SIM_ENTER();
	(void)shared;
	(void)flags;
	if (!blocks || !function || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = block_size > 1536 ? 0 : 1536 / block_size < 24 ? 1536 / block_size : 24;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size,
                                                     size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

CUresult cuProfilerStart(void)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	SIM_ENTER();
	return CUDA_SUCCESS;
}

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void *data, CUlogsCallbackHandle *handle)
{
	SIM_ENTER();
	(void)data;
	if (!callback)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle)
		*handle = (CUlogsCallbackHandle)&sim;
	return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	SIM_ENTER();
	return handle == (CUlogsCallbackHandle)&sim ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
