/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: addresses, physical allocations (handles) and the mappings between them. Bytes
 * are committed by cuMemCreate and leave when both references and mappings are gone, which replay works out.
 */
#include "call.h"

#include "banned.h"

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemAddressReserve)(ptr, size, alignment, addr, flags);
	if (call_end(&call)) {
		EVENT(reserve, .addr = CAME(result, ptr), .size = size, .result = result);
		call_done(&call);
	}
	return result;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct release release;

	release_begin(&release, RELEASE(unreserve, .addr = ptr, .size = size));
	return release_end(&release, DRIVER(cuMemAddressFree)(ptr, size));
}

static CUresult handle_end(struct call *call, CUresult result, struct st_ev_handle_create *record)
{
	if (!call_end(call))
		return result;
	record->result = result;
	record->flags = call->flags;
	record->stack = stack_id();
	event_put(&record->r, NULL, 0);
	note_failed(result, record->size);
	call_done(call);
	return result;
}

/* The location is the request's, never the current context's: a thread may have none. */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
	bool device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct st_ev_handle_create record = {EVENT_HEAD(handle_create), .size = size};
	struct call call;
	CUresult result;

	record.location = device ? ST_LOCATION_DEVICE : ST_LOCATION_HOST;
	record.device = device ? (uint64_t)prop->location.id : ST_UNKNOWN;
	call_begin_large(&call, ST_KIND_handle_create, 0, size);
	result = DRIVER(cuMemCreate)(handle, size, prop, flags);
	record.handle = CAME(result, handle);
	return handle_end(&call, result, &record);
}

/* Memory of another process: counted there, its size is not told. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
                                        CUmemAllocationHandleType type)
{
	struct st_ev_handle_create record = {EVENT_HEAD(handle_create), .location = ST_LOCATION_NONE};
	struct call call;
	CUresult result;

	record.device = ST_UNKNOWN;
	call_begin(&call);
	result = DRIVER(cuMemImportFromShareableHandle)(handle, os_handle, type);
	record.handle = CAME(result, handle);
	return handle_end(&call, result, &record);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemRetainAllocationHandle)(handle, addr);
	if (call_end(&call)) {
		if (CAME(result, handle))
			EVENT(handle_retain, .handle = CAME(result, handle));
		call_done(&call);
	}
	return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct release release;

	release_begin(&release, RELEASE(handle_release, .handle = handle, .flags = call_flags()));
	return release_end(&release, DRIVER(cuMemRelease)(handle));
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemMap)(ptr, size, offset, handle, flags);
	if (call_end(&call)) {
		if (result == CUDA_SUCCESS)
			EVENT(handle_map, .addr = ptr, .size = size, .offset = offset, .handle = handle);
		call_done(&call);
	}
	return result;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct release release;

	release_begin(&release, RELEASE(handle_unmap, .addr = ptr, .size = size));
	return release_end(&release, DRIVER(cuMemUnmap)(ptr, size));
}
