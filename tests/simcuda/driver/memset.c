/* SPDX-License-Identifier: Apache-2.0 */
/* Memory sets: real ones, since programs read back what they set. */
#include "tests/simcuda/driver/sim.h"

#include <string.h>

static void fill(uint64_t addr, uint32_t value, unsigned int width, size_t count)
{
	switch (width) {
	case 1:
		memset((void *)addr, (int)value, count);
		break;
	case 2:
		for (size_t i = 0; i < count; i++)
			((uint16_t *)addr)[i] = (uint16_t)value;
		break;
	default:
		for (size_t i = 0; i < count; i++)
			((uint32_t *)addr)[i] = value;
		break;
	}
}

/* `rows` rows of `count` elements, `pitch` bytes apart. */
static CUresult set_rows(const char *op, uint64_t addr, size_t pitch, uint32_t value, unsigned int width,
                         size_t count, size_t rows)
{
	uint64_t span = rows && count ? (rows - 1) * pitch + count * width : 0;
	bool valid;

	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	sim_lock();
	valid = addr && addr % width == 0 && device_covers(addr, span);
	sim_unlock();
	for (size_t row = 0; valid && row < rows; row++)
		fill(addr + row * pitch, value, width, count);
	sim_lock();
	ledger_note(op, addr, count * width * rows, valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, "");
	sim_unlock();
	return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemsetD8_v2(CUdeviceptr addr, unsigned char value, size_t count)
{
	SIM_ENTER();
	return set_rows(__func__, addr, 0, value, 1, count, 1);
}

CUresult cuMemsetD16_v2(CUdeviceptr addr, unsigned short value, size_t count)
{
	SIM_ENTER();
	return set_rows(__func__, addr, 0, value, 2, count, 1);
}

CUresult cuMemsetD32_v2(CUdeviceptr addr, unsigned int value, size_t count)
{
	SIM_ENTER();
	return set_rows(__func__, addr, 0, value, 4, count, 1);
}

CUresult cuMemsetD8Async(CUdeviceptr addr, unsigned char value, size_t count, CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? set_rows(__func__, addr, 0, value, 1, count, 1)
	                            : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemsetD16Async(CUdeviceptr addr, unsigned short value, size_t count, CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? set_rows(__func__, addr, 0, value, 2, count, 1)
	                            : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemsetD32Async(CUdeviceptr addr, unsigned int value, size_t count, CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? set_rows(__func__, addr, 0, value, 4, count, 1)
	                            : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMemsetD2D8_v2(CUdeviceptr addr, size_t pitch, unsigned char value, size_t width, size_t height)
{
	SIM_ENTER();
	return set_rows(__func__, addr, pitch, value, 1, width, height);
}

CUresult cuMemsetD2D8Async(CUdeviceptr addr, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream)
{
	SIM_ENTER();
	return stream_valid(stream) ? set_rows(__func__, addr, pitch, value, 1, width, height)
	                            : CUDA_ERROR_INVALID_HANDLE;
}
