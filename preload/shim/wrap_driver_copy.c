/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of one range: the entry point tells the direction, but for cuMemcpy and its kin, where replay finds
 * it from the addresses. The twins (_ptds, _ptsz) mean the calling thread's own default stream by 0.
 */
#include "call.h"

#include "banned.h"

static CUresult h2d(PFN_cuMemcpyHtoD_v3020 real, CUdeviceptr dst, const void *src, size_t size,
                    uint64_t queue)
{
	struct copy copy = {dst, ADDRESS(src), size, ST_COPY_H2D, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size));
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	return h2d(DRIVER(cuMemcpyHtoD_v2), dst, src, size, stream_of(NULL, false));
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t size)
{
	return h2d(DRIVER(cuMemcpyHtoD_v2_ptds), dst, src, size, stream_of(NULL, true));
}

static CUresult h2d_async(PFN_cuMemcpyHtoDAsync_v3020 real, CUdeviceptr dst, const void *src, size_t size,
                          CUstream stream, uint64_t queue)
{
	struct copy copy = {dst, ADDRESS(src), size, ST_COPY_H2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size, stream));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return h2d_async(DRIVER(cuMemcpyHtoDAsync_v2), dst, src, size, stream, stream_of(stream, false));
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return h2d_async(DRIVER(cuMemcpyHtoDAsync_v2_ptsz), dst, src, size, stream, stream_of(stream, true));
}

static CUresult d2h(PFN_cuMemcpyDtoH_v3020 real, void *dst, CUdeviceptr src, size_t size, uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), src, size, ST_COPY_D2H, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size));
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	return d2h(DRIVER(cuMemcpyDtoH_v2), dst, src, size, stream_of(NULL, false));
}

CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t size)
{
	return d2h(DRIVER(cuMemcpyDtoH_v2_ptds), dst, src, size, stream_of(NULL, true));
}

static CUresult d2h_async(PFN_cuMemcpyDtoHAsync_v3020 real, void *dst, CUdeviceptr src, size_t size,
                          CUstream stream, uint64_t queue)
{
	struct copy copy = {ADDRESS(dst), src, size, ST_COPY_D2H, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size, stream));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return d2h_async(DRIVER(cuMemcpyDtoHAsync_v2), dst, src, size, stream, stream_of(stream, false));
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return d2h_async(DRIVER(cuMemcpyDtoHAsync_v2_ptsz), dst, src, size, stream, stream_of(stream, true));
}

/* The host does not wait for a copy within the device, whatever the entry is called. */
static CUresult d2d(PFN_cuMemcpyDtoD_v3020 real, CUdeviceptr dst, CUdeviceptr src, size_t size,
                    uint64_t queue)
{
	struct copy copy = {dst, src, size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return d2d(DRIVER(cuMemcpyDtoD_v2), dst, src, size, stream_of(NULL, false));
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return d2d(DRIVER(cuMemcpyDtoD_v2_ptds), dst, src, size, stream_of(NULL, true));
}

static CUresult d2d_async(PFN_cuMemcpyDtoDAsync_v3020 real, CUdeviceptr dst, CUdeviceptr src, size_t size,
                          CUstream stream, uint64_t queue)
{
	struct copy copy = {dst, src, size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size, stream));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return d2d_async(DRIVER(cuMemcpyDtoDAsync_v2), dst, src, size, stream, stream_of(stream, false));
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return d2d_async(DRIVER(cuMemcpyDtoDAsync_v2_ptsz), dst, src, size, stream, stream_of(stream, true));
}

static CUresult unified(PFN_cuMemcpy_v4000 real, CUdeviceptr dst, CUdeviceptr src, size_t size,
                        uint64_t queue)
{
	struct copy copy = {dst, src, size, ST_COPY_UNIFIED, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size));
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return unified(DRIVER(cuMemcpy), dst, src, size, stream_of(NULL, false));
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return unified(DRIVER(cuMemcpy_ptds), dst, src, size, stream_of(NULL, true));
}

static CUresult unified_async(PFN_cuMemcpyAsync_v4000 real, CUdeviceptr dst, CUdeviceptr src, size_t size,
                              CUstream stream, uint64_t queue)
{
	struct copy copy = {dst, src, size, ST_COPY_UNIFIED, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, src, size, stream));
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return unified_async(DRIVER(cuMemcpyAsync), dst, src, size, stream, stream_of(stream, false));
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return unified_async(DRIVER(cuMemcpyAsync_ptsz), dst, src, size, stream, stream_of(stream, true));
}

static CUresult peer(PFN_cuMemcpyPeer_v4000 real, CUdeviceptr dst, CUcontext to, CUdeviceptr src,
                     CUcontext from, size_t size, uint64_t queue)
{
	struct copy copy = {dst, src, size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, to, src, from, size));
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size)
{
	return peer(DRIVER(cuMemcpyPeer), dst, to, src, from, size, stream_of(NULL, false));
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size)
{
	return peer(DRIVER(cuMemcpyPeer_ptds), dst, to, src, from, size, stream_of(NULL, true));
}

static CUresult peer_async(PFN_cuMemcpyPeerAsync_v4000 real, CUdeviceptr dst, CUcontext to, CUdeviceptr src,
                           CUcontext from, size_t size, CUstream stream, uint64_t queue)
{
	struct copy copy = {dst, src, size, ST_COPY_D2D, .async = true, .stream = queue};

	copy_begin(&copy);
	return copy_end(&copy, real(dst, to, src, from, size, stream));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size,
                           CUstream stream)
{
	return peer_async(DRIVER(cuMemcpyPeerAsync), dst, to, src, from, size, stream,
	                  stream_of(stream, false));
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size,
                                CUstream stream)
{
	return peer_async(DRIVER(cuMemcpyPeerAsync_ptsz), dst, to, src, from, size, stream,
	                  stream_of(stream, true));
}
