/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs are not simulated; what their memory amounts to can be asked, and is nothing. */
#include "tests/simcuda/driver/sim.h"

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	SIM_ENTER();
	if (!value || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*(cuuint64_t *)value = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	SIM_ENTER();
	if (!value || *(cuuint64_t *)value != 0 ||
	    (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
	     attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	SIM_ENTER();
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
