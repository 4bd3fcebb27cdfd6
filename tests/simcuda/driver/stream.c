/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. All work is over when it was asked for, so waiting only settles the pools. */
#include "tests/simcuda/driver/sim.h"

bool stream_valid(CUstream stream)
{
	return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
	       object_get(stream, SIM_STREAM) != NULL;
}

/* A point at which the program waited. */
static CUresult wait_note(const char *op, const void *handle)
{
	sim_lock();
	pool_settle();
	ledger_note(op, (uint64_t)(uintptr_t)handle, 0, CUDA_SUCCESS, "");
	sim_unlock();
	return CUDA_SUCCESS;
}

static CUresult stream_new(const char *op, CUstream *ret_stream, unsigned int flags, int priority)
{
	struct sim_object *object;

	if (!ret_stream || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	object = object_new(SIM_STREAM);
	if (object) {
		object->flags = flags;
		object->priority = priority;
		*ret_stream = (CUstream)object;
	}
	ledger_note(op, (uint64_t)(uintptr_t)object, 0, object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "");
	sim_unlock();
	return object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	SIM_ENTER();
	return stream_new(__func__, stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	SIM_ENTER();
	return stream_new(__func__, stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	struct sim_object *object = object_get(stream, SIM_STREAM);

	SIM_ENTER();
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_lock();
	object_free(object);
	ledger_note(__func__, (uint64_t)(uintptr_t)stream, 0, CUDA_SUCCESS, "");
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? wait_note(__func__, stream) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamQuery(CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	SIM_ENTER();
	(void)flags;
	return stream_valid(stream) && object_get(event, SIM_EVENT) ? CUDA_SUCCESS
	                                                            : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	const struct sim_object *object = object_get(stream, SIM_STREAM);

	SIM_ENTER();
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	*priority = object ? object->priority : 0;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	const struct sim_object *object = object_get(stream, SIM_STREAM);

	SIM_ENTER();
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	*flags = object ? object->flags : 0;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	SIM_ENTER();
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = context_current();
	return stream_valid(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	SIM_ENTER();
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return stream_valid(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   const CUgraphEdgeData **edges, size_t *count)
{
	SIM_ENTER();
	(void)id;
	(void)graph;
	(void)dependencies;
	(void)edges;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (count)
		*count = 0;
	return stream_valid(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static _Thread_local CUstreamCaptureMode held = CU_STREAM_CAPTURE_MODE_GLOBAL;
	CUstreamCaptureMode previous = held;

	SIM_ENTER();
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	held = *mode;
	*mode = previous;
	return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	SIM_ENTER();
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	function(data);
	return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	SIM_ENTER();
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	callback(stream, CUDA_SUCCESS, data);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	SIM_ENTER();
	return context_current() ? wait_note(__func__, context_current()) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	SIM_ENTER();
	return context ? wait_note(__func__, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	struct sim_object *object;

	SIM_ENTER();
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	object = object_new(SIM_EVENT);
	if (object) {
		object->flags = flags;
		*event = (CUevent)object;
	}
	sim_unlock();
	return object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	struct sim_object *object = object_get(event, SIM_EVENT);

	SIM_ENTER();
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_lock();
	object_free(object);
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	struct sim_object *object = object_get(event, SIM_EVENT);

	SIM_ENTER();
	(void)flags;
	if (!object || !stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	object->time = sim_clock();
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event)
{
	SIM_ENTER();
	return object_get(event, SIM_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventSynchronize(CUevent event)
{
	SIM_ENTER();
	return object_get(event, SIM_EVENT) ? wait_note(__func__, event) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
	const struct sim_object *first = object_get(start, SIM_EVENT), *last = object_get(end, SIM_EVENT);

	SIM_ENTER();
	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if (!first || !last || !first->time || !last->time)
		return CUDA_ERROR_INVALID_HANDLE;
	*milliseconds = (float)(int64_t)(last->time - first->time) / 1e6f;
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(milliseconds, start, end);
}
