/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies. They are over when their call returns, the asynchronous ones too, which is one of the orders
 * that the real driver may choose. In GB10 mode, reading from a private writable file mapping breaks its
 * copy-on-write first, piece by piece, as the real driver's pinning of the source does.
 */
#include "tests/simcuda/driver/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PIECE (UINT64_C(2) << 20)

static const char *const source_names[] = {
	[SIM_SOURCE_UNKNOWN] = "unknown",      [SIM_SOURCE_ANONYMOUS] = "anonymous",
	[SIM_SOURCE_PRIVATE] = "file_private", [SIM_SOURCE_COW] = "file_private_writable",
	[SIM_SOURCE_SHARED] = "file_shared",
};

static bool block_device(const struct sim_block *block)
{
	return block->kind <= SIM_MANAGED || (block->kind == SIM_CHUNK && block->used) ||
	       (block->kind == SIM_MAPPED && block->used) || block->kind == SIM_PINNED ||
	       block->kind == SIM_REGISTERED;
}

bool device_covers(uint64_t addr, uint64_t size)
{
	for (uint64_t at = addr, end = addr + size; at < end;) {
		const struct sim_block *block = table_find(&sim.blocks, at);

		if (!block || !block_device(block))
			return false;
		at = block->addr + block->span;
	}
	return true;
}

static const char *source_name(uint64_t addr)
{
	const struct sim_block *block = table_find(&sim.blocks, addr);
	uint64_t end;

	if (!block)
		return source_names[proc_source(addr, &end)];
	if (block->kind == SIM_PINNED)
		return "pinned";
	return block->kind == SIM_REGISTERED ? "registered" : "device";
}

/* Breaks what lies in private writable file mappings; *ret_end is where the same kind of source ends. */
static uint64_t piece_break(uint64_t addr, uint64_t end, uint64_t *ret_end)
{
	enum sim_source source = proc_source(addr, ret_end);

	if (*ret_end > end)
		*ret_end = end;
	if (source != SIM_SOURCE_COW)
		return 0;
	if (*ret_end > addr + PIECE)
		*ret_end = addr + PIECE;
	return proc_break(addr, *ret_end - addr);
}

/* The lock is held only around the look at the source: several threads may copy at once. */
static uint64_t source_copy(uint64_t dst, uint64_t src, uint64_t size)
{
	uint64_t end = src + size, broken = 0, next;

	while (src < end) {
		sim_lock();
		if (table_find(&sim.blocks, src)) {
			next = end;
		} else {
			uint64_t bytes = piece_break(src, end, &next);

			sim.counts.broken += bytes;
			broken += bytes;
		}
		sim_unlock();
		memmove((void *)dst, (const void *)src, next - src);
		dst += next - src;
		src = next;
	}
	return broken;
}

enum direction {
	H2D,
	D2H,
	D2D,
	UNIFIED,
};

/* Which sides must be device memory. */
static bool sides_valid(enum direction direction, uint64_t dst, uint64_t src, uint64_t size)
{
	bool valid;

	sim_lock();
	valid = (direction == D2H || direction == UNIFIED || device_covers(dst, size)) &&
	        (direction == H2D || direction == UNIFIED || device_covers(src, size));
	sim_unlock();
	return valid && dst && src;
}

static void copy_note(const char *op, enum direction direction, uint64_t dst, uint64_t src, uint64_t size,
                      CUresult rc, const char *source, uint64_t broken)
{
	char extra[128];

	snprintf(extra, sizeof(extra), ",\"src\":\"0x%" PRIx64 "\",\"source\":\"%s\",\"broke\":%" PRIu64, src,
	         source, broken);
	sim_lock();
	if (direction == H2D && rc == CUDA_SUCCESS)
		sim.counts.copied += size;
	ledger_note(op, dst, size, rc, extra);
	sim_unlock();
}

static CUresult copy_bytes(const char *op, enum direction direction, uint64_t dst, uint64_t src,
                           uint64_t size)
{
	const char *source = "";
	uint64_t broken = 0;
	CUresult rc = CUDA_SUCCESS;

	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!size)
		return CUDA_SUCCESS;
	if (!sides_valid(direction, dst, src, size))
		rc = CUDA_ERROR_INVALID_VALUE;
	if (sim.ledger && rc == CUDA_SUCCESS) {
		sim_lock();
		source = source_name(src);
		sim_unlock();
	}
	if (rc == CUDA_SUCCESS && sim.gb10 && direction != D2H && direction != D2D)
		broken = source_copy(dst, src, size);
	else if (rc == CUDA_SUCCESS)
		memmove((void *)dst, (const void *)src, size);
	copy_note(op, direction, dst, src, size, rc, source, broken);
	return rc;
}

static CUresult copy_async(const char *op, enum direction direction, uint64_t dst, uint64_t src,
                           uint64_t size, CUstream stream)
{
	if (!stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	return copy_bytes(op, direction, dst, src, size);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	SIM_ENTER();
	return copy_bytes(__func__, H2D, dst, (uint64_t)(uintptr_t)src, size);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	SIM_ENTER();
	return copy_async(__func__, H2D, dst, (uint64_t)(uintptr_t)src, size, stream);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	SIM_ENTER();
	return copy_bytes(__func__, D2H, (uint64_t)(uintptr_t)dst, src, size);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	SIM_ENTER();
	return copy_async(__func__, D2H, (uint64_t)(uintptr_t)dst, src, size, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	SIM_ENTER();
	return copy_bytes(__func__, D2D, dst, src, size);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	SIM_ENTER();
	return copy_async(__func__, D2D, dst, src, size, stream);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	SIM_ENTER();
	return copy_bytes(__func__, UNIFIED, dst, src, size);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	SIM_ENTER();
	return copy_async(__func__, UNIFIED, dst, src, size, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size)
{
	SIM_ENTER();
	(void)to;
	(void)from;
	return copy_bytes(__func__, D2D, dst, src, size);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size,
                           CUstream stream)
{
	SIM_ENTER();
	(void)to;
	(void)from;
	return copy_async(__func__, D2D, dst, src, size, stream);
}

static CUresult copy_batch(const char *op, const CUdeviceptr *dsts, const CUdeviceptr *srcs,
                           const size_t *sizes, size_t count, size_t *ret_failed)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i;

	if (!dsts || !srcs || !sizes || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = copy_bytes(op, UNIFIED, dsts[i], srcs[i], sizes[i]);
	if (rc != CUDA_SUCCESS && ret_failed)
		*ret_failed = i - 1;
	return rc;
}

/* A batch must name a stream that is not the default one. */
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *indices, size_t attr_count, CUstream stream)
{
	SIM_ENTER();
	if (!stream || !stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!attrs || !indices || !attr_count)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_batch(__func__, dsts, srcs, sizes, count, NULL);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *indices, size_t attr_count, size_t *failed,
                            CUstream stream)
{
	SIM_ENTER();
	if (!stream || !stream_valid(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!attrs || !indices || !attr_count)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_batch(__func__, dsts, srcs, sizes, count, failed);
}
