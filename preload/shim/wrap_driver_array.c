/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays. The driver does not say what one takes, so the bytes are those of its elements, a lower bound. */
#include "call.h"

#include "banned.h"

/* Bytes of an element's channel; formats that are not here (compressed, planar) count as 0. */
static const struct {
	CUarray_format format;
	unsigned bytes;
} formats[] = {
	{CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_SIGNED_INT8, 1}, {CU_AD_FORMAT_UNSIGNED_INT16, 2},
	{CU_AD_FORMAT_SIGNED_INT16, 2},  {CU_AD_FORMAT_HALF, 2},        {CU_AD_FORMAT_UNSIGNED_INT32, 4},
	{CU_AD_FORMAT_SIGNED_INT32, 4},  {CU_AD_FORMAT_FLOAT, 4},
};

static uint64_t element_size(CUarray_format format, unsigned channels)
{
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i].format == format)
			return (uint64_t)formats[i].bytes * channels;
	return 0;
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

/* Sparse arrays and arrays with deferred mapping have no memory of their own. */
static uint64_t array_size(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	uint64_t size = 0;

	if (!desc || (desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)))
		return 0;
	for (unsigned level = 0; level < levels && level < 32; level++)
		size += at_least_one(desc->Width >> level) * at_least_one(desc->Height >> level) *
		        at_least_one(desc->Depth >> level) * element_size(desc->Format, desc->NumChannels);
	return size;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	struct alloc alloc = {.how = ST_DEVICE_ARRAY};
	CUresult result;

	if (desc)
		alloc.asked = at_least_one(desc->Width) * at_least_one(desc->Height) *
		              element_size(desc->Format, desc->NumChannels);
	alloc_begin(&alloc);
	result = DRIVER(cuArrayCreate_v2)(array, desc);
	return alloc_end(&alloc, result, CAME(result, array), alloc.asked);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct alloc alloc = {.how = ST_DEVICE_ARRAY, .asked = array_size(desc, 1)};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuArray3DCreate_v2)(array, desc);
	return alloc_end(&alloc, result, CAME(result, array), alloc.asked);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	struct alloc alloc = {.how = ST_DEVICE_ARRAY, .asked = array_size(desc, levels)};
	CUresult result;

	alloc_begin(&alloc);
	result = DRIVER(cuMipmappedArrayCreate)(array, desc, levels);
	return alloc_end(&alloc, result, CAME(result, array), alloc.asked);
}

CUresult cuArrayDestroy(CUarray array)
{
	struct release release;

	release_begin(&release, RELEASE(device_free, .addr = ADDRESS(array), .how = ST_DEVICE_ARRAY,
	                                .flags = call_flags()));
	return release_end(&release, DRIVER(cuArrayDestroy)(array));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	struct release release;

	release_begin(&release, RELEASE(device_free, .addr = ADDRESS(array), .how = ST_DEVICE_ARRAY,
	                                .flags = call_flags()));
	return release_end(&release, DRIVER(cuMipmappedArrayDestroy)(array));
}
