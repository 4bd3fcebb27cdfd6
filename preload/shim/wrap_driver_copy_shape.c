/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of two and three dimensions, described by a struct. The record has the address of the first byte and
 * the bytes that move; where rows are farther apart than they are long, the range is longer than that.
 */
#include "call.h"

#include "banned.h"

/* One side of a copy, from the members that all descriptors share. */
#define SIDE(c, side)                                                               \
	(struct end)                                                                \
	{                                                                           \
		(c)->side##MemoryType, ADDRESS((c)->side##Host), (c)->side##Device, \
			ADDRESS((c)->side##Array)                                   \
	}

struct end {
	CUmemorytype type;
	uint64_t host, device, array;
};

/* `skip` bytes lie before the first byte; an array is known by its handle alone. */
static uint64_t end_address(struct end end, uint64_t skip)
{
	switch (end.type) {
	case CU_MEMORYTYPE_HOST:
		return end.host + skip;
	case CU_MEMORYTYPE_ARRAY:
		return end.array;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		return end.device + skip;
	}
	return 0;
}

static enum st_copy_how direction(CUmemorytype src, CUmemorytype dst)
{
	bool from_host = src == CU_MEMORYTYPE_HOST, to_host = dst == CU_MEMORYTYPE_HOST;

	if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED || (from_host && to_host))
		return ST_COPY_UNIFIED;
	return from_host ? ST_COPY_H2D : to_host ? ST_COPY_D2H : ST_COPY_D2D;
}

/* A NULL descriptor is an error that the driver reports; nothing is read from it. */
static struct copy copy_2d(const CUDA_MEMCPY2D *c, bool async, uint64_t queue)
{
	if (!c)
		return (struct copy){.how = ST_COPY_UNIFIED};
	return (struct copy){
		.dst = end_address(SIDE(c, dst), c->dstY * c->dstPitch + c->dstXInBytes),
		.src = end_address(SIDE(c, src), c->srcY * c->srcPitch + c->srcXInBytes),
		.size = c->WidthInBytes * c->Height,
		.span = c->dstPitch * c->Height,
		.how = direction(c->srcMemoryType, c->dstMemoryType),
		.async = async,
		.stream = queue,
	};
}

#define SKIP_3D(c, side) \
	(((c)->side##Z * (c)->side##Height + (c)->side##Y) * (c)->side##Pitch + (c)->side##XInBytes)

static struct copy copy_3d(const CUDA_MEMCPY3D *c, bool async, uint64_t queue)
{
	if (!c)
		return (struct copy){.how = ST_COPY_UNIFIED};
	return (struct copy){
		.dst = end_address(SIDE(c, dst), SKIP_3D(c, dst)),
		.src = end_address(SIDE(c, src), SKIP_3D(c, src)),
		.size = c->WidthInBytes * c->Height * c->Depth,
		.span = c->dstPitch * c->dstHeight * c->Depth,
		.how = direction(c->srcMemoryType, c->dstMemoryType),
		.async = async,
		.stream = queue,
	};
}

static struct copy copy_peer(const CUDA_MEMCPY3D_PEER *c, bool async, uint64_t queue)
{
	if (!c)
		return (struct copy){.how = ST_COPY_UNIFIED};
	return (struct copy){
		.dst = end_address(SIDE(c, dst), SKIP_3D(c, dst)),
		.src = end_address(SIDE(c, src), SKIP_3D(c, src)),
		.size = c->WidthInBytes * c->Height * c->Depth,
		.span = c->dstPitch * c->dstHeight * c->Depth,
		.how = direction(c->srcMemoryType, c->dstMemoryType),
		.async = async,
		.stream = queue,
	};
}

static CUresult do_2d(PFN_cuMemcpy2D_v3020 real, const CUDA_MEMCPY2D *c, uint64_t queue)
{
	struct copy copy = copy_2d(c, false, queue);

	copy_begin(&copy);
	return copy_end(&copy, real(c));
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	return do_2d(DRIVER(cuMemcpy2D_v2), c, stream_of(NULL, false));
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *c)
{
	return do_2d(DRIVER(cuMemcpy2D_v2_ptds), c, stream_of(NULL, true));
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	return do_2d(DRIVER(cuMemcpy2DUnaligned_v2), c, stream_of(NULL, false));
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *c)
{
	return do_2d(DRIVER(cuMemcpy2DUnaligned_v2_ptds), c, stream_of(NULL, true));
}

static CUresult do_2d_async(PFN_cuMemcpy2DAsync_v3020 real, const CUDA_MEMCPY2D *c, CUstream stream,
                            uint64_t queue)
{
	struct copy copy = copy_2d(c, true, queue);

	copy_begin(&copy);
	return copy_end(&copy, real(c, stream));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return do_2d_async(DRIVER(cuMemcpy2DAsync_v2), c, stream, stream_of(stream, false));
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return do_2d_async(DRIVER(cuMemcpy2DAsync_v2_ptsz), c, stream, stream_of(stream, true));
}

static CUresult do_3d(PFN_cuMemcpy3D_v3020 real, const CUDA_MEMCPY3D *c, uint64_t queue)
{
	struct copy copy = copy_3d(c, false, queue);

	copy_begin(&copy);
	return copy_end(&copy, real(c));
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
	return do_3d(DRIVER(cuMemcpy3D_v2), c, stream_of(NULL, false));
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *c)
{
	return do_3d(DRIVER(cuMemcpy3D_v2_ptds), c, stream_of(NULL, true));
}

static CUresult do_3d_async(PFN_cuMemcpy3DAsync_v3020 real, const CUDA_MEMCPY3D *c, CUstream stream,
                            uint64_t queue)
{
	struct copy copy = copy_3d(c, true, queue);

	copy_begin(&copy);
	return copy_end(&copy, real(c, stream));
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream)
{
	return do_3d_async(DRIVER(cuMemcpy3DAsync_v2), c, stream, stream_of(stream, false));
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *c, CUstream stream)
{
	return do_3d_async(DRIVER(cuMemcpy3DAsync_v2_ptsz), c, stream, stream_of(stream, true));
}

static CUresult do_peer(PFN_cuMemcpy3DPeer_v4000 real, const CUDA_MEMCPY3D_PEER *c, uint64_t queue)
{
	struct copy copy = copy_peer(c, false, queue);

	copy_begin(&copy);
	return copy_end(&copy, real(c));
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c)
{
	return do_peer(DRIVER(cuMemcpy3DPeer), c, stream_of(NULL, false));
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *c)
{
	return do_peer(DRIVER(cuMemcpy3DPeer_ptds), c, stream_of(NULL, true));
}

static CUresult do_peer_async(PFN_cuMemcpy3DPeerAsync_v4000 real, const CUDA_MEMCPY3D_PEER *c,
                              CUstream stream, uint64_t queue)
{
	struct copy copy = copy_peer(c, true, queue);

	copy_begin(&copy);
	return copy_end(&copy, real(c, stream));
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
	return do_peer_async(DRIVER(cuMemcpy3DPeerAsync), c, stream, stream_of(stream, false));
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
	return do_peer_async(DRIVER(cuMemcpy3DPeerAsync_ptsz), c, stream, stream_of(stream, true));
}
