/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that belongs to other processes or interfaces: recorded as shared, never added to what we committed. */
#include "call.h"

#include "banned.h"

/* The whole allocation behind an address; this is no hot path, so the driver may be asked. */
static uint64_t range_size(CUdeviceptr ptr)
{
	__typeof__(&cuMemGetAddressRange_v2) ask = OPTIONAL(cuMemGetAddressRange_v2);
	size_t size = 0;

	return ptr && ask && ask(NULL, &size, ptr) == CUDA_SUCCESS ? size : 0;
}

static CUresult ipc_open(PFN_cuIpcOpenMemHandle_v11000 real, CUdeviceptr *ptr, CUipcMemHandle handle,
                         unsigned flags)
{
	struct alloc alloc = {.how = ST_DEVICE_IPC};
	CUresult result;

	alloc_begin(&alloc);
	result = real(ptr, handle, flags);
	return alloc_end(&alloc, result, CAME(result, ptr), range_size(CAME(result, ptr)));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags)
{
	return ipc_open(DRIVER(cuIpcOpenMemHandle), ptr, handle, flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned flags)
{
	return ipc_open(DRIVER(cuIpcOpenMemHandle_v2), ptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct release release;

	release_begin(&release,
	              RELEASE(device_free, .addr = ptr, .how = ST_DEVICE_IPC, .flags = call_flags()));
	return release_end(&release, DRIVER(cuIpcCloseMemHandle)(ptr));
}

CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	struct alloc alloc = {.how = ST_DEVICE_IMPORT};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuImportExternalMemory)(memory, desc);
	return alloc_end(&alloc, result, CAME(result, memory), result == CUDA_SUCCESS ? desc->size : 0);
}

/* An address for part of it: no bytes of its own, so the size stands under `asked`. */
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	struct alloc alloc = {.how = ST_DEVICE_IMPORT};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuExternalMemoryGetMappedBuffer)(ptr, memory, desc);
	alloc.asked = result == CUDA_SUCCESS ? desc->size : 0;
	return alloc_end(&alloc, result, CAME(result, ptr), 0);
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	struct release release;

	release_begin(&release, RELEASE(device_free, .addr = ADDRESS(memory), .how = ST_DEVICE_IMPORT,
	                                .flags = call_flags()));
	return release_end(&release, DRIVER(cuDestroyExternalMemory)(memory));
}
