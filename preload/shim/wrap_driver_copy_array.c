/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from and to arrays: the array's handle stands for its address. */
#include "call.h"

#include "banned.h"

static CUresult h2a(PFN_cuMemcpyHtoA_v3020 real, CUarray dst, size_t at, const void *src, size_t size,
                    uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), ADDRESS(src), size, ST_COPY_H2D, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, at, src, size));
}

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t at, const void *src, size_t size)
{
	return h2a(DRIVER(cuMemcpyHtoA_v2), dst, at, src, size, stream_of(NULL, false));
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray dst, size_t at, const void *src, size_t size)
{
	return h2a(DRIVER(cuMemcpyHtoA_v2_ptds), dst, at, src, size, stream_of(NULL, true));
}

static CUresult h2a_async(PFN_cuMemcpyHtoAAsync_v3020 real, CUarray dst, size_t at, const void *src,
                          size_t size, CUstream stream, uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), ADDRESS(src), size, ST_COPY_H2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, at, src, size, stream));
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t at, const void *src, size_t size, CUstream stream)
{
	return h2a_async(DRIVER(cuMemcpyHtoAAsync_v2), dst, at, src, size, stream, stream_of(stream, false));
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst, size_t at, const void *src, size_t size, CUstream stream)
{
	return h2a_async(DRIVER(cuMemcpyHtoAAsync_v2_ptsz), dst, at, src, size, stream,
	                 stream_of(stream, true));
}

static CUresult a2h(PFN_cuMemcpyAtoH_v3020 real, void *dst, CUarray src, size_t at, size_t size,
                    uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), ADDRESS(src), size, ST_COPY_D2H, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, at, size));
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t at, size_t size)
{
	return a2h(DRIVER(cuMemcpyAtoH_v2), dst, src, at, size, stream_of(NULL, false));
}

CUresult cuMemcpyAtoH_v2_ptds(void *dst, CUarray src, size_t at, size_t size)
{
	return a2h(DRIVER(cuMemcpyAtoH_v2_ptds), dst, src, at, size, stream_of(NULL, true));
}

static CUresult a2h_async(PFN_cuMemcpyAtoHAsync_v3020 real, void *dst, CUarray src, size_t at, size_t size,
                          CUstream stream, uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), ADDRESS(src), size, ST_COPY_D2H, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, at, size, stream));
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t at, size_t size, CUstream stream)
{
	return a2h_async(DRIVER(cuMemcpyAtoHAsync_v2), dst, src, at, size, stream, stream_of(stream, false));
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void *dst, CUarray src, size_t at, size_t size, CUstream stream)
{
	return a2h_async(DRIVER(cuMemcpyAtoHAsync_v2_ptsz), dst, src, at, size, stream,
	                 stream_of(stream, true));
}

static CUresult d2a(PFN_cuMemcpyDtoA_v3020 real, CUarray dst, size_t at, CUdeviceptr src, size_t size,
                    uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), src, size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, at, src, size));
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t at, CUdeviceptr src, size_t size)
{
	return d2a(DRIVER(cuMemcpyDtoA_v2), dst, at, src, size, stream_of(NULL, false));
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray dst, size_t at, CUdeviceptr src, size_t size)
{
	return d2a(DRIVER(cuMemcpyDtoA_v2_ptds), dst, at, src, size, stream_of(NULL, true));
}

static CUresult a2d(PFN_cuMemcpyAtoD_v3020 real, CUdeviceptr dst, CUarray src, size_t at, size_t size,
                    uint64_t queue)
{
	struct copy copy = {dst, ADDRESS(src), size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, at, size));
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t at, size_t size)
{
	return a2d(DRIVER(cuMemcpyAtoD_v2), dst, src, at, size, stream_of(NULL, false));
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst, CUarray src, size_t at, size_t size)
{
	return a2d(DRIVER(cuMemcpyAtoD_v2_ptds), dst, src, at, size, stream_of(NULL, true));
}

static CUresult a2a(PFN_cuMemcpyAtoA_v3020 real, CUarray dst, size_t to, CUarray src, size_t from,
                    size_t size, uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), ADDRESS(src), size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, to, src, from, size));
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t to, CUarray src, size_t from, size_t size)
{
	return a2a(DRIVER(cuMemcpyAtoA_v2), dst, to, src, from, size, stream_of(NULL, false));
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray dst, size_t to, CUarray src, size_t from, size_t size)
{
	return a2a(DRIVER(cuMemcpyAtoA_v2_ptds), dst, to, src, from, size, stream_of(NULL, true));
}
