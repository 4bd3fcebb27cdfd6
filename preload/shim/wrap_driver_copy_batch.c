/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in batches: one record a copy, so that every range is known. The first versions of these entries
 * (12.8) have an argument for the index of the failure, which the second ones (13.0) dropped.
 */
#include "call.h"
#include "relief.h"
#include "relief_drop.h"

#include "banned.h"

/* A batch under way. The arrays are the program's and are not touched by the driver. */
struct batch {
	struct call call;
	uint64_t stream;
};

static void batch_begin(struct batch *batch, uint64_t queue, uint64_t size)
{
	batch->stream = queue;
	call_begin_large(&batch->call, ST_KIND_copy, 0, size);
}

static void note_copy(const struct batch *batch, CUresult result, uint64_t dst, uint64_t src, uint64_t size,
                      uint32_t stack)
{
	EVENT(copy, .dst = dst, .src = src, .size = size, .how = ST_COPY_UNIFIED, .async = 1,
	      .stream = batch->stream, .result = result, .flags = batch->call.flags, .stack = stack);
	if (relief_on(RELIEF_DROP) && result == CUDA_SUCCESS)
		drop_copied(src, size, true, batch->stream);
}

static CUresult batch_end(struct batch *batch, CUresult result, const CUdeviceptr *dsts,
                          const CUdeviceptr *srcs, const size_t *sizes, size_t count)
{
	uint32_t stack;

	if (!call_end(&batch->call))
		return result;
	stack = stack_id();
	for (size_t i = 0; dsts && srcs && sizes && i < count; i++)
		note_copy(batch, result, dsts[i], srcs[i], sizes[i], stack);
	call_done(&batch->call);
	return result;
}

static uint64_t sum(const size_t *sizes, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; sizes && i < count; i++)
		total += sizes[i];
	return total;
}

/* What the driver is about to write may be memory of the host that was relieved. */
static void targets(const CUdeviceptr *dsts, const size_t *sizes, size_t count)
{
	for (size_t i = 0; relief_any() && dsts && sizes && i < count; i++)
		relief_target((void *)dsts[i], sizes[i]);
}

static CUresult batch_v1(PFN_cuMemcpyBatchAsync_v12080 real, CUdeviceptr *dsts, CUdeviceptr *srcs,
                         size_t *sizes, size_t count, CUmemcpyAttributes *attrs, size_t *attr_indices,
                         size_t attr_count, size_t *failed, CUstream stream, uint64_t queue)
{
	struct batch batch;
	CUresult result;

	targets(dsts, sizes, count);
	batch_begin(&batch, queue, sum(sizes, count));
	result = real(dsts, srcs, sizes, count, attrs, attr_indices, attr_count, failed, stream);
	return batch_end(&batch, result, dsts, srcs, sizes, count);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count,
                            size_t *failed, CUstream stream)
{
	return batch_v1(DRIVER(cuMemcpyBatchAsync), dsts, srcs, sizes, count, attrs, attr_indices, attr_count,
	                failed, stream, stream_of(stream, false));
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count,
                                 size_t *failed, CUstream stream)
{
	return batch_v1(DRIVER(cuMemcpyBatchAsync_ptsz), dsts, srcs, sizes, count, attrs, attr_indices,
	                attr_count, failed, stream, stream_of(stream, true));
}

static CUresult batch_v2(PFN_cuMemcpyBatchAsync_v13000 real, CUdeviceptr *dsts, CUdeviceptr *srcs,
                         size_t *sizes, size_t count, CUmemcpyAttributes *attrs, size_t *attr_indices,
                         size_t attr_count, CUstream stream, uint64_t queue)
{
	struct batch batch;
	CUresult result;

	targets(dsts, sizes, count);
	batch_begin(&batch, queue, sum(sizes, count));
	result = real(dsts, srcs, sizes, count, attrs, attr_indices, attr_count, stream);
	return batch_end(&batch, result, dsts, srcs, sizes, count);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count,
                               CUstream stream)
{
	return batch_v2(DRIVER(cuMemcpyBatchAsync_v2), dsts, srcs, sizes, count, attrs, attr_indices,
	                attr_count, stream, stream_of(stream, false));
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                    CUmemcpyAttributes *attrs, size_t *attr_indices, size_t attr_count,
                                    CUstream stream)
{
	return batch_v2(DRIVER(cuMemcpyBatchAsync_v2_ptsz), dsts, srcs, sizes, count, attrs, attr_indices,
	                attr_count, stream, stream_of(stream, true));
}

static uint64_t operand_address(const CUmemcpy3DOperand *operand)
{
	return operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? ADDRESS(operand->op.array.array)
	                                                     : operand->op.ptr.ptr;
}

/* Elements are bytes unless an array takes part, whose elements may be longer: then this is a lower bound. */
static uint64_t extent_size(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	return op->extent.width * op->extent.height * op->extent.depth;
}

static uint64_t sum_3d(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; ops && i < count; i++)
		total += extent_size(&ops[i]);
	return total;
}

/* Lengths of rows and layers are in elements, which are bytes outside of arrays; 0: without gaps. */
static uint64_t extent_span(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	uint64_t row = op->dst.op.ptr.rowLength, layer = op->dst.op.ptr.layerHeight;

	row = row > op->extent.width ? row : op->extent.width;
	layer = layer > op->extent.height ? layer : op->extent.height;
	return row * layer * op->extent.depth;
}

static void targets_3d(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count)
{
	for (size_t i = 0; relief_any() && ops && i < count; i++)
		if (ops[i].dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER)
			relief_target((void *)ops[i].dst.op.ptr.ptr, extent_span(&ops[i]));
}

static CUresult batch_3d_end(struct batch *batch, CUresult result, const CUDA_MEMCPY3D_BATCH_OP *ops,
                             size_t count)
{
	uint32_t stack;

	if (!call_end(&batch->call))
		return result;
	stack = stack_id();
	for (size_t i = 0; ops && i < count; i++)
		note_copy(batch, result, operand_address(&ops[i].dst), operand_address(&ops[i].src),
		          extent_size(&ops[i]), stack);
	call_done(&batch->call);
	return result;
}

static CUresult batch_3d_v1(PFN_cuMemcpy3DBatchAsync_v12080 real, size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
                            size_t *failed, unsigned long long flags, CUstream stream, uint64_t queue)
{
	struct batch batch;

	targets_3d(ops, count);
	batch_begin(&batch, queue, sum_3d(ops, count));
	return batch_3d_end(&batch, real(count, ops, failed, flags, stream), ops, count);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
                              unsigned long long flags, CUstream stream)
{
	return batch_3d_v1(DRIVER(cuMemcpy3DBatchAsync), count, ops, failed, flags, stream,
	                   stream_of(stream, false));
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
                                   unsigned long long flags, CUstream stream)
{
	return batch_3d_v1(DRIVER(cuMemcpy3DBatchAsync_ptsz), count, ops, failed, flags, stream,
	                   stream_of(stream, true));
}

static CUresult batch_3d_v2(PFN_cuMemcpy3DBatchAsync_v13000 real, size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
                            unsigned long long flags, CUstream stream, uint64_t queue)
{
	struct batch batch;

	targets_3d(ops, count);
	batch_begin(&batch, queue, sum_3d(ops, count));
	return batch_3d_end(&batch, real(count, ops, flags, stream), ops, count);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
                                 CUstream stream)
{
	return batch_3d_v2(DRIVER(cuMemcpy3DBatchAsync_v2), count, ops, flags, stream,
	                   stream_of(stream, false));
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
                                      CUstream stream)
{
	return batch_3d_v2(DRIVER(cuMemcpy3DBatchAsync_v2_ptsz), count, ops, flags, stream,
	                   stream_of(stream, true));
}
