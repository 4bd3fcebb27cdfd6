/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "touch.h"

#include "banned.h"

void call_begin_large(struct call *call, enum st_kind kind, uint64_t addr, uint64_t size)
{
	call->flags = call_flags();
	call->silent = !guard_enter_nested(&call->own);
	if (call->silent)
		return;
	shim_touch(TOUCH_OPEN);
	if (size >= CALL_LARGE)
		EVENT(enter, .call = kind, .addr = addr, .size = size);
	guard_leave(&call->own);
	call_enter(&call->inside);
}

void call_begin(struct call *call)
{
	call_begin_large(call, ST_KIND_sync, 0, 0);
}

bool call_end(struct call *call)
{
	if (call->silent)
		return false;
	call_leave(&call->inside);
	return guard_enter_nested(&call->own);
}

void call_done(struct call *call)
{
	guard_leave(&call->own);
}

uint64_t stream_capturing(__typeof__(&cuStreamIsCapturing) ask, CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!ask || ask(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return 0;
	return FLAG(ST_CALL_CAPTURING);
}

void note_failed(CUresult result, uint64_t size)
{
	if (result != CUDA_SUCCESS)
		EVENT(moment, .what = ST_MOMENT_FAILED, .size = size);
}

void alloc_begin(struct alloc *alloc)
{
	call_begin_large(&alloc->call, ST_KIND_device_alloc, 0, alloc->asked);
	alloc->call.flags |= alloc->capturing;
}

CUresult alloc_end(struct alloc *alloc, CUresult result, uint64_t addr, uint64_t size)
{
	bool failed = result != CUDA_SUCCESS;

	if (!call_end(&alloc->call))
		return result;
	EVENT(device_alloc, .addr = failed ? 0 : addr, .size = failed ? alloc->asked : size,
	      .asked = alloc->asked, .how = alloc->how, .device = ST_UNKNOWN, .stream = alloc->stream,
	      .pool = alloc->pool, .result = result, .flags = alloc->call.flags, .stack = stack_id());
	note_failed(result, alloc->asked);
	call_done(&alloc->call);
	return result;
}

void release_begin(struct release *release, struct st_record *record)
{
	release->seq = 0;
	call_begin(&release->call);
	if (release->call.silent || !record || !guard_enter_nested(&release->call.own))
		return;
	if (record->kind == ST_KIND_device_free)
		((struct st_ev_device_free *)record)->stack = stack_id();
	release->seq = event_put(record, NULL, 0);
	guard_leave(&release->call.own);
}

CUresult release_end(struct release *release, CUresult result)
{
	if (!call_end(&release->call))
		return result;
	if (result != CUDA_SUCCESS && release->seq)
		EVENT(revoke, .target = event_target(release->seq));
	call_done(&release->call);
	return result;
}

void copy_begin(struct copy *copy)
{
	call_begin_large(&copy->call, ST_KIND_copy, copy->src, copy->size);
}

CUresult copy_end(struct copy *copy, CUresult result)
{
	if (!call_end(&copy->call))
		return result;
	EVENT(copy, .dst = copy->dst, .src = copy->src, .size = copy->size, .how = copy->how,
	      .async = copy->async, .stream = copy->stream, .result = result, .flags = copy->call.flags,
	      .stack = stack_id());
	call_done(&copy->call);
	return result;
}
