/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: one primary, others as asked for, a stack of current ones per thread. */
#include "tests/simcuda/driver/sim.h"

#define STACK_MAX 32

static struct sim_object *primary;
static unsigned int primary_references, primary_flags;

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local unsigned int depth;

static bool context_valid(CUcontext context)
{
	return object_get(context, SIM_CONTEXT) != NULL;
}

CUcontext context_current(void)
{
	CUcontext context = depth ? stack[depth - 1] : NULL;

	return context && context_valid(context) ? context : NULL;
}

static CUresult context_new(CUcontext *ret_context, unsigned int flags)
{
	struct sim_object *object = object_new(SIM_CONTEXT);

	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->flags = flags;
	*ret_context = (CUcontext)object;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	CUresult rc;

	SIM_ENTER();
	(void)params;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	rc = context_new(context, flags);
	ledger_note(__func__, (uint64_t)(uintptr_t)*context, 0, rc, "");
	sim_unlock();
	return rc == CUDA_SUCCESS ? cuCtxPushCurrent_v2(*context) : rc;
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int count, unsigned int flags,
                        CUdevice dev)
{
	(void)params;
	(void)count;
	return cuCtxCreate_v4(context, NULL, flags, dev);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v4(context, NULL, flags, dev);
}

/* The address ranges of all contexts are one set: this simulation sweeps when the last context goes. */
static void context_end(struct sim_object *object)
{
	object_free(object);
	if (!object_next(NULL, SIM_CONTEXT))
		context_sweep();
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	SIM_ENTER();
	if (!context_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth && stack[depth - 1] == context)
		depth--;
	sim_lock();
	context_end((struct sim_object *)context);
	ledger_note(__func__, (uint64_t)(uintptr_t)context, 0, CUDA_SUCCESS, "");
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice dev)
{
	CUresult rc = CUDA_SUCCESS;

	SIM_ENTER();
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	if (!primary) {
		CUcontext made = NULL;

		rc = context_new(&made, primary_flags);
		primary = (struct sim_object *)made;
		ledger_note(__func__, (uint64_t)(uintptr_t)primary, 0, rc, "");
	}
	primary_references += rc == CUDA_SUCCESS;
	*context = (CUcontext)primary;
	sim_unlock();
	return rc;
}

/* force: whatever its references say (reset). */
static CUresult primary_release(const char *op, CUdevice dev, bool force)
{
	CUresult rc = CUDA_SUCCESS;

	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	sim_lock();
	if (!primary_references && !force)
		rc = CUDA_ERROR_INVALID_CONTEXT;
	else if (primary && (force || --primary_references == 0)) {
		ledger_note(op, (uint64_t)(uintptr_t)primary, 0, CUDA_SUCCESS, "");
		context_end(primary);
		primary = NULL;
		primary_references = 0;
	}
	sim_unlock();
	return rc;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	SIM_ENTER();
	return primary_release(__func__, dev, false);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	SIM_ENTER();
	return primary_release(__func__, dev, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	SIM_ENTER();
	return primary_release(__func__, dev, true);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	SIM_ENTER();
	return primary_release(__func__, dev, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	SIM_ENTER();
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = primary_flags;
	*active = primary != NULL;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	SIM_ENTER();
	if (dev != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	primary_flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	SIM_ENTER();
	if (!context_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == STACK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	SIM_ENTER();
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	SIM_ENTER();
	if (context && !context_valid(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!depth)
		depth = 1;
	stack[depth - 1] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	SIM_ENTER();
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = context_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext context)
{
	SIM_ENTER();
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (context ? !context_valid(context) : !context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	return cuCtxGetDevice_v2(dev, NULL);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	CUcontext context = context_current();

	SIM_ENTER();
	if (!flags || !context)
		return flags ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*flags = ((struct sim_object *)context)->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
	SIM_ENTER();
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (context ? !context_valid(context) : !context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	SIM_ENTER();
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	SIM_ENTER();
	(void)value;
	return limit < CU_LIMIT_MAX ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	SIM_ENTER();
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = limit == CU_LIMIT_MALLOC_HEAP_SIZE ? 8u << 20 : 1024;
	return CUDA_SUCCESS;
}
