/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. */
#include "tests/simcuda/runtime/rt.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	RT_ENTER();
	return rt_done((int)rt->stream_create(stream, flags, priority));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->stream_destroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->stream_sync(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt_per_thread->stream_sync(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->stream_query(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->stream_wait(stream, event, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	RT_ENTER();
	return rt_done((int)rt->stream_priority(stream, priority));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	RT_ENTER();
	return rt_done((int)rt->stream_flags(stream, flags));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	RT_ENTER();
	return rt_done((int)rt->stream_capturing(stream, (CUstreamCaptureStatus *)status));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
	RT_ENTER();
	return rt_done((int)rt->stream_capture(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id,
	                                       graph, dependencies, (const CUgraphEdgeData **)edges, count));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	RT_ENTER();
	return rt_done((int)rt->capture_mode((CUstreamCaptureMode *)mode));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->stream_callback(stream, (CUstreamCallback)callback, data, flags));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	RT_ENTER();
	return rt_done((int)rt->host_function(stream, function, data));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->event_create(event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	RT_ENTER();
	return rt_done((int)rt->event_destroy(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->event_record(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	RT_ENTER();
	return rt_done((int)rt->event_record_flags(event, stream, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	RT_ENTER();
	return rt_done((int)rt->event_query(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	RT_ENTER();
	return rt_done((int)rt->event_sync(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	RT_ENTER();
	return rt_done((int)rt->event_elapsed(milliseconds, start, end));
}
