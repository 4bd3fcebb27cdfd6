/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is set. The record of a pitched one has the first byte and the bytes that are written. */
#include "call.h"

#include "banned.h"

static CUresult set_end(struct call *call, CUresult result, CUdeviceptr ptr, uint64_t size, uint64_t queue)
{
	if (!call_end(call))
		return result;
	if (result == CUDA_SUCCESS)
		EVENT(memset, .addr = ptr, .size = size, .stream = queue);
	call_done(call);
	return result;
}

static CUresult set_8(PFN_cuMemsetD8_v3020 real, CUdeviceptr ptr, unsigned char value, size_t count,
                      uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, value, count), ptr, count, queue);
}

CUresult cuMemsetD8_v2(CUdeviceptr ptr, unsigned char value, size_t count)
{
	return set_8(DRIVER(cuMemsetD8_v2), ptr, value, count, stream_of(NULL, false));
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr ptr, unsigned char value, size_t count)
{
	return set_8(DRIVER(cuMemsetD8_v2_ptds), ptr, value, count, stream_of(NULL, true));
}

static CUresult set_8_async(PFN_cuMemsetD8Async_v3020 real, CUdeviceptr ptr, unsigned char value,
                            size_t count, CUstream stream, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, value, count, stream), ptr, count, queue);
}

CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)
{
	return set_8_async(DRIVER(cuMemsetD8Async), ptr, value, count, stream, stream_of(stream, false));
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream)
{
	return set_8_async(DRIVER(cuMemsetD8Async_ptsz), ptr, value, count, stream, stream_of(stream, true));
}

static CUresult set_16(PFN_cuMemsetD16_v3020 real, CUdeviceptr ptr, unsigned short value, size_t count,
                       uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, value, count), ptr, 2 * (uint64_t)count, queue);
}

CUresult cuMemsetD16_v2(CUdeviceptr ptr, unsigned short value, size_t count)
{
	return set_16(DRIVER(cuMemsetD16_v2), ptr, value, count, stream_of(NULL, false));
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr ptr, unsigned short value, size_t count)
{
	return set_16(DRIVER(cuMemsetD16_v2_ptds), ptr, value, count, stream_of(NULL, true));
}

static CUresult set_16_async(PFN_cuMemsetD16Async_v3020 real, CUdeviceptr ptr, unsigned short value,
                             size_t count, CUstream stream, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, value, count, stream), ptr, 2 * (uint64_t)count, queue);
}

CUresult cuMemsetD16Async(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream)
{
	return set_16_async(DRIVER(cuMemsetD16Async), ptr, value, count, stream, stream_of(stream, false));
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream)
{
	return set_16_async(DRIVER(cuMemsetD16Async_ptsz), ptr, value, count, stream,
	                    stream_of(stream, true));
}

static CUresult set_32(PFN_cuMemsetD32_v3020 real, CUdeviceptr ptr, unsigned value, size_t count,
                       uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, value, count), ptr, 4 * (uint64_t)count, queue);
}

CUresult cuMemsetD32_v2(CUdeviceptr ptr, unsigned value, size_t count)
{
	return set_32(DRIVER(cuMemsetD32_v2), ptr, value, count, stream_of(NULL, false));
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr ptr, unsigned value, size_t count)
{
	return set_32(DRIVER(cuMemsetD32_v2_ptds), ptr, value, count, stream_of(NULL, true));
}

static CUresult set_32_async(PFN_cuMemsetD32Async_v3020 real, CUdeviceptr ptr, unsigned value, size_t count,
                             CUstream stream, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, value, count, stream), ptr, 4 * (uint64_t)count, queue);
}

CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned value, size_t count, CUstream stream)
{
	return set_32_async(DRIVER(cuMemsetD32Async), ptr, value, count, stream, stream_of(stream, false));
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr ptr, unsigned value, size_t count, CUstream stream)
{
	return set_32_async(DRIVER(cuMemsetD32Async_ptsz), ptr, value, count, stream,
	                    stream_of(stream, true));
}

static CUresult set_2d_8(PFN_cuMemsetD2D8_v3020 real, CUdeviceptr ptr, size_t pitch, unsigned char value,
                         size_t width, size_t height, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, pitch, value, width, height), ptr, (uint64_t)width * height, queue);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height)
{
	return set_2d_8(DRIVER(cuMemsetD2D8_v2), ptr, pitch, value, width, height, stream_of(NULL, false));
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height)
{
	return set_2d_8(DRIVER(cuMemsetD2D8_v2_ptds), ptr, pitch, value, width, height,
	                stream_of(NULL, true));
}

static CUresult set_2d_8_async(PFN_cuMemsetD2D8Async_v3020 real, CUdeviceptr ptr, size_t pitch,
                               unsigned char value, size_t width, size_t height, CUstream stream,
                               uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, pitch, value, width, height, stream), ptr, (uint64_t)width * height,
	               queue);
}

CUresult cuMemsetD2D8Async(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream)
{
	return set_2d_8_async(DRIVER(cuMemsetD2D8Async), ptr, pitch, value, width, height, stream,
	                      stream_of(stream, false));
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr ptr, size_t pitch, unsigned char value, size_t width,
                                size_t height, CUstream stream)
{
	return set_2d_8_async(DRIVER(cuMemsetD2D8Async_ptsz), ptr, pitch, value, width, height, stream,
	                      stream_of(stream, true));
}

static CUresult set_2d_16(PFN_cuMemsetD2D16_v3020 real, CUdeviceptr ptr, size_t pitch, unsigned short value,
                          size_t width, size_t height, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, pitch, value, width, height), ptr, 2 * (uint64_t)width * height,
	               queue);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width, size_t height)
{
	return set_2d_16(DRIVER(cuMemsetD2D16_v2), ptr, pitch, value, width, height, stream_of(NULL, false));
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width,
                               size_t height)
{
	return set_2d_16(DRIVER(cuMemsetD2D16_v2_ptds), ptr, pitch, value, width, height,
	                 stream_of(NULL, true));
}

static CUresult set_2d_16_async(PFN_cuMemsetD2D16Async_v3020 real, CUdeviceptr ptr, size_t pitch,
                                unsigned short value, size_t width, size_t height, CUstream stream,
                                uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, pitch, value, width, height, stream), ptr,
	               2 * (uint64_t)width * height, queue);
}

CUresult cuMemsetD2D16Async(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream)
{
	return set_2d_16_async(DRIVER(cuMemsetD2D16Async), ptr, pitch, value, width, height, stream,
	                       stream_of(stream, false));
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr ptr, size_t pitch, unsigned short value, size_t width,
                                 size_t height, CUstream stream)
{
	return set_2d_16_async(DRIVER(cuMemsetD2D16Async_ptsz), ptr, pitch, value, width, height, stream,
	                       stream_of(stream, true));
}

static CUresult set_2d_32(PFN_cuMemsetD2D32_v3020 real, CUdeviceptr ptr, size_t pitch, unsigned value,
                          size_t width, size_t height, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, pitch, value, width, height), ptr, 4 * (uint64_t)width * height,
	               queue);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr ptr, size_t pitch, unsigned value, size_t width, size_t height)
{
	return set_2d_32(DRIVER(cuMemsetD2D32_v2), ptr, pitch, value, width, height, stream_of(NULL, false));
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr ptr, size_t pitch, unsigned value, size_t width, size_t height)
{
	return set_2d_32(DRIVER(cuMemsetD2D32_v2_ptds), ptr, pitch, value, width, height,
	                 stream_of(NULL, true));
}

static CUresult set_2d_32_async(PFN_cuMemsetD2D32Async_v3020 real, CUdeviceptr ptr, size_t pitch,
                                unsigned value, size_t width, size_t height, CUstream stream, uint64_t queue)
{
	struct call call;

	call_begin(&call);
	return set_end(&call, real(ptr, pitch, value, width, height, stream), ptr,
	               4 * (uint64_t)width * height, queue);
}

CUresult cuMemsetD2D32Async(CUdeviceptr ptr, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream)
{
	return set_2d_32_async(DRIVER(cuMemsetD2D32Async), ptr, pitch, value, width, height, stream,
	                       stream_of(stream, false));
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr ptr, size_t pitch, unsigned value, size_t width, size_t height,
                                 CUstream stream)
{
	return set_2d_32_async(DRIVER(cuMemsetD2D32Async_ptsz), ptr, pitch, value, width, height, stream,
	                       stream_of(stream, true));
}
