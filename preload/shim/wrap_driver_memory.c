/* SPDX-License-Identifier: Apache-2.0 */
/* Plain, pitched and managed device memory; pinned and registered host memory; what is said to be free. */
#include "call.h"
#include "relief.h"

#define SHIM_WRAPS_HEAP /* for the field `free` of get_info */
#include "banned.h"

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	struct alloc alloc = {.how = ST_DEVICE_PLAIN, .asked = size};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuMemAlloc_v2)(ptr, size);
	return alloc_end(&alloc, result, CAME(result, ptr), size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned element)
{
	struct alloc alloc = {.how = ST_DEVICE_PITCHED, .asked = width * height};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuMemAllocPitch_v2)(ptr, pitch, width, height, element);
	return alloc_end(&alloc, result, CAME(result, ptr), CAME(result, pitch) * height);
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned flags)
{
	struct alloc alloc = {.how = ST_DEVICE_MANAGED, .asked = size};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuMemAllocManaged)(ptr, size, flags);
	return alloc_end(&alloc, result, CAME(result, ptr), size);
}

/* The release of NULL is allowed and means nothing. */
CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	struct release release;

	release_begin(&release,
	              ptr ? RELEASE(device_free, .addr = ptr, .how = ST_DEVICE_PLAIN, .flags = call_flags())
	                  : NULL);
	return release_end(&release, DRIVER(cuMemFree_v2)(ptr));
}

static CUresult pinned_end(struct call *call, CUresult result, void **ptr, size_t size, unsigned attributes)
{
	if (!call_end(call))
		return result;
	EVENT(pinned_alloc, .addr = CAME(result, ptr), .size = size, .attributes = attributes,
	      .result = result, .flags = call->flags, .stack = stack_id());
	note_failed(result, size);
	call_done(call);
	return result;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	struct call call;

	call_begin_large(&call, ST_KIND_pinned_alloc, 0, size);
	return pinned_end(&call, DRIVER(cuMemAllocHost_v2)(ptr, size), ptr, size, 0);
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
	struct call call;

	call_begin_large(&call, ST_KIND_pinned_alloc, 0, size);
	return pinned_end(&call, DRIVER(cuMemHostAlloc)(ptr, size, flags), ptr, size, flags);
}

CUresult cuMemFreeHost(void *ptr)
{
	struct release release;

	release_begin(&release,
	              ptr ? RELEASE(pinned_free, .addr = ADDRESS(ptr), .flags = call_flags()) : NULL);
	return release_end(&release, DRIVER(cuMemFreeHost)(ptr));
}

static CUresult register_end(struct call *call, CUresult result, void *ptr, size_t size, unsigned attributes)
{
	if (!call_end(call))
		return result;
	EVENT(register, .addr = ADDRESS(ptr), .size = size, .attributes = attributes, .result = result,
	      .stack = stack_id());
	note_failed(result, size);
	call_done(call);
	return result;
}

/* Pages that the device may write are pinned for writing, now and for good. */
static void register_target(const void *ptr, size_t size, unsigned flags)
{
	if (relief_any() && !(flags & CU_MEMHOSTREGISTER_READ_ONLY) && relief_concerns(ptr, size))
		relief_leave(ptr, size);
}

CUresult cuMemHostRegister(void *ptr, size_t size, unsigned flags)
{
	struct call call;

	register_target(ptr, size, flags);
	call_begin_large(&call, ST_KIND_register, ADDRESS(ptr), size);
	return register_end(&call, DRIVER(cuMemHostRegister)(ptr, size, flags), ptr, size, flags);
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags)
{
	struct call call;

	register_target(ptr, size, flags);
	call_begin_large(&call, ST_KIND_register, ADDRESS(ptr), size);
	return register_end(&call, DRIVER(cuMemHostRegister_v2)(ptr, size, flags), ptr, size, flags);
}

CUresult cuMemHostUnregister(void *ptr)
{
	struct release release;

	release_begin(&release, RELEASE(unregister, .addr = ADDRESS(ptr)));
	return release_end(&release, DRIVER(cuMemHostUnregister)(ptr));
}

/* Programs pass NULL for what they do not want (OptiX does). */
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct call call;
	CUresult result;

	call_begin(&call);
	result = DRIVER(cuMemGetInfo_v2)(free_bytes, total);
	if (call_end(&call)) {
		EVENT(get_info, .free = CAME(result, free_bytes), .total = CAME(result, total),
		      .result = result);
		call_done(&call);
	}
	return result;
}
