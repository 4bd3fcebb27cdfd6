/* SPDX-License-Identifier: Apache-2.0 */
/* The start of the driver, contexts, and the program's waits for the device. */
#include "call.h"
#include "relief.h"
#include "relief_drop.h"

#include "banned.h"

CUresult cuInit(unsigned flags)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuInit)(flags);
	if (call_end(&call))
		call_done(&call);
	return result;
}

static CUresult context_made(struct call *call, CUresult result, CUcontext *context, CUdevice device)
{
	if (!call_end(call))
		return result;
	if (CAME(result, context))
		EVENT(context, .handle = ADDRESS(*context), .alive = 1, .device = (uint64_t)device);
	call_done(call);
	return result;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
	struct call call;

	call_begin(&call);
	return context_made(&call, DRIVER(cuCtxCreate_v2)(context, flags, device), context, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int count, unsigned flags,
                        CUdevice device)
{
	struct call call;

	call_begin(&call);
	return context_made(&call, DRIVER(cuCtxCreate_v3)(context, params, count, flags, device), context,
	                    device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	struct call call;

	call_begin(&call);
	return context_made(&call, DRIVER(cuCtxCreate_v4)(context, params, flags, device), context, device);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	struct call call;

	call_begin(&call);
	return context_made(&call, DRIVER(cuDevicePrimaryCtxRetain)(context, device), context, device);
}

CUresult cuCtxDestroy(CUcontext context)
{
	struct release release;

	release_begin(&release, RELEASE(context, .handle = ADDRESS(context), .device = ST_UNKNOWN));
	return release_end(&release, DRIVER(cuCtxDestroy)(context));
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	struct release release;

	release_begin(&release, RELEASE(context, .handle = ADDRESS(context), .device = ST_UNKNOWN));
	return release_end(&release, DRIVER(cuCtxDestroy_v2)(context));
}

/* Only the last release of a primary context ends it, and only the driver knows which that was. */
static bool primary_gone(CUdevice device)
{
	__typeof__(&cuDevicePrimaryCtxGetState) ask = OPTIONAL(cuDevicePrimaryCtxGetState);
	unsigned flags = 0;
	int active = 1;

	return ask && ask(device, &flags, &active) == CUDA_SUCCESS && !active;
}

static CUresult primary_released(struct call *call, CUresult result, CUdevice device)
{
	if (!call_end(call))
		return result;
	if (result == CUDA_SUCCESS && primary_gone(device))
		EVENT(context, .alive = 0, .device = (uint64_t)device);
	call_done(call);
	return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	struct call call;

	call_begin(&call);
	return primary_released(&call, DRIVER(cuDevicePrimaryCtxRelease)(device), device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	struct call call;

	call_begin(&call);
	return primary_released(&call, DRIVER(cuDevicePrimaryCtxRelease_v2)(device), device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	struct release release;

	release_begin(&release, RELEASE(context, .alive = 0, .device = (uint64_t)device));
	return release_end(&release, DRIVER(cuDevicePrimaryCtxReset)(device));
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	struct release release;

	release_begin(&release, RELEASE(context, .alive = 0, .device = (uint64_t)device));
	return release_end(&release, DRIVER(cuDevicePrimaryCtxReset_v2)(device));
}

static CUresult sync_end(struct call *call, CUresult result, enum st_sync_how how, uint64_t handle)
{
	uint64_t took = call_took(call);

	if (!call_end(call))
		return result;
	if (result == CUDA_SUCCESS) {
		EVENT(sync, .how = how, .handle = handle, .took = took);
		if (relief_on(RELIEF_DROP))
			drop_synced(how, handle);
	}
	call_done(call);
	return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuStreamSynchronize)(stream), ST_SYNC_STREAM, stream_of(stream, false));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuStreamSynchronize_ptsz)(stream), ST_SYNC_STREAM,
	                stream_of(stream, true));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuStreamWaitEvent)(stream, event, flags), ST_SYNC_WAIT, ADDRESS(event));
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuStreamWaitEvent_ptsz)(stream, event, flags), ST_SYNC_WAIT,
	                ADDRESS(event));
}

CUresult cuEventSynchronize(CUevent event)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuEventSynchronize)(event), ST_SYNC_EVENT, ADDRESS(event));
}

CUresult cuCtxSynchronize(void)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuCtxSynchronize)(), ST_SYNC_CONTEXT, 0);
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	struct call call;

	call_begin_timed(&call);
	return sync_end(&call, DRIVER(cuCtxSynchronize_v2)(context), ST_SYNC_CONTEXT, ADDRESS(context));
}
