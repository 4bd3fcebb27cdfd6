/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets. The kind of a copy chooses the driver's entry, as in the real runtime. */
#include "tests/simcuda/runtime/rt.h"

#include <stdint.h>
#include <string.h>

static CUdeviceptr at(const void *address)
{
	return (CUdeviceptr)(uintptr_t)address;
}

static int copy_sync(const struct rt_driver *d, void *dst, const void *src, size_t size,
                     enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToHost:
		memmove(dst, src, size);
		return cudaSuccess;
	case cudaMemcpyHostToDevice:
		return (int)d->copy_htod(at(dst), src, size);
	case cudaMemcpyDeviceToHost:
		return (int)d->copy_dtoh(dst, at(src), size);
	case cudaMemcpyDeviceToDevice:
		return (int)d->copy_dtod(at(dst), at(src), size);
	case cudaMemcpyDefault:
		return (int)d->copy(at(dst), at(src), size);
	}
	return cudaErrorInvalidMemcpyDirection;
}

static int copy_async(const struct rt_driver *d, void *dst, const void *src, size_t size,
                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return (int)d->copy_htod_async(at(dst), src, size, stream);
	case cudaMemcpyDeviceToHost:
		return (int)d->copy_dtoh_async(dst, at(src), size, stream);
	case cudaMemcpyDeviceToDevice:
		return (int)d->copy_dtod_async(at(dst), at(src), size, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return (int)d->copy_async(at(dst), at(src), size, stream);
	}
	return cudaErrorInvalidMemcpyDirection;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	RT_ENTER();
	return rt_done(copy_sync(rt, dst, src, size, kind));
}

cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	RT_ENTER();
	return rt_done(copy_sync(rt_per_thread, dst, src, size, kind));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
	RT_ENTER();
	return rt_done(copy_async(rt, dst, src, size, kind, stream));
}

cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
                                 cudaStream_t stream)
{
	RT_ENTER();
	return rt_done(copy_async(rt_per_thread, dst, src, size, kind, stream));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t size,
                                cudaStream_t stream)
{
	RT_ENTER();
	if (to != 0 || from != 0)
		return rt_done(cudaErrorInvalidDevice);
	return rt_done((int)rt->copy_peer_async(at(dst), NULL, at(src), NULL, size, stream));
}

static CUDA_MEMCPY2D rows_describe(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                   size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D copy = {
		.srcPitch = src_pitch, .dstPitch = dst_pitch, .WidthInBytes = width, .Height = height};
	int from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
	int to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;

	copy.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
	copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
	copy.srcHost = src;
	copy.srcDevice = at(src);
	copy.dstHost = dst;
	copy.dstDevice = at(dst);
	return copy;
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D copy = rows_describe(dst, dst_pitch, src, src_pitch, width, height, kind);

	RT_ENTER();
	return rt_done((int)rt->copy_2d(&copy));
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D copy = rows_describe(dst, dst_pitch, src, src_pitch, width, height, kind);

	RT_ENTER();
	return rt_done((int)rt->copy_2d_async(&copy, stream));
}

cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes,
                                 size_t count, struct cudaMemcpyAttributes *attrs, size_t *indices,
                                 size_t attr_count, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->copy_batch((CUdeviceptr *)(uintptr_t)dsts, (CUdeviceptr *)(uintptr_t)srcs,
	                                   (size_t *)(uintptr_t)sizes, count, (CUmemcpyAttributes *)attrs,
	                                   indices, attr_count, stream));
}

cudaError_t cudaMemset(void *address, int value, size_t size)
{
	RT_ENTER();
	return rt_done((int)rt->set(at(address), (unsigned char)value, size));
}

cudaError_t cudaMemset_ptds(void *address, int value, size_t size)
{
	RT_ENTER();
	return rt_done((int)rt_per_thread->set(at(address), (unsigned char)value, size));
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t size, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt->set_async(at(address), (unsigned char)value, size, stream));
}

cudaError_t cudaMemsetAsync_ptsz(void *address, int value, size_t size, cudaStream_t stream)
{
	RT_ENTER();
	return rt_done((int)rt_per_thread->set_async(at(address), (unsigned char)value, size, stream));
}
