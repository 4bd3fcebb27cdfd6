/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "relief.h"
#include "relief_drop.h"
#include "touch.h"
#include "uring.h"

#include "banned.h"

#define LOOK_FROM (64 << 10) /* bytes of a copy beside which a look is nothing */

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

/* The clock is read last before the call, and first after it. */
static void call_time(struct call *call)
{
	call->began = call->silent ? 0 : event_now();
}

void call_begin_timed(struct call *call)
{
	call_begin(call);
	call_time(call);
}

uint64_t call_took(const struct call *call)
{
	return call->silent ? 0 : event_now() - call->began;
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

/* The driver is about to write into memory of the host that may have been relieved. */
static void copy_target(const struct copy *copy)
{
	if (relief_any() && (copy->how == ST_COPY_D2H || copy->how == ST_COPY_UNIFIED))
		relief_target((void *)copy->dst, copy->span > copy->size ? copy->span : copy->size);
}

static void copy_drop(const struct copy *copy, CUresult result)
{
	bool from_host = copy->how == ST_COPY_H2D || copy->how == ST_COPY_UNIFIED;

	if (relief_on(RELIEF_DROP) && from_host && result == CUDA_SUCCESS)
		drop_copied(copy->src, copy->size, copy->async, copy->stream);
}

void copy_begin(struct copy *copy)
{
	copy_target(copy);
	call_begin_large(&copy->call, ST_KIND_copy, copy->src, copy->size);
	call_time(&copy->call);
}

CUresult copy_end(struct copy *copy, CUresult result)
{
	uint64_t took = call_took(&copy->call);

	if (!call_end(&copy->call))
		return result;
	EVENT(copy, .dst = copy->dst, .src = copy->src, .size = copy->size, .how = copy->how,
	      .async = copy->async, .stream = copy->stream, .result = result, .flags = copy->call.flags,
	      .stack = stack_id(), .took = took);
	copy_drop(copy, result);
	if (copy->how == ST_COPY_H2D && copy->size >= LOOK_FROM)
		uring_look_again();
	call_done(&copy->call);
	return result;
}
