/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch does with expandable segments: a request becomes handles of 2 MiB (or 20), mapped one behind the other
 * when there are enough of them; when the driver refuses one all are given back, and the request is tried once more.
 *
 *	segments HELD WANTED LAST	MiB: HELD stays, WANTED is tried twice, LAST comes after that
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB  ((size_t)1 << 20)
#define UNIT (2 * MIB)

static CUmemGenericAllocationHandle handles[1024];
static CUmemAllocationProp prop;
static CUdeviceptr range;
static size_t held;

/* All handles first; they are mapped when there are enough. */
static CUresult grow(size_t size)
{
	size_t end = held + size / UNIT, made = held;
	CUresult result = CUDA_SUCCESS;

	while (made < end && result == CUDA_SUCCESS) {
		result = cuMemCreate(&handles[made], UNIT, &prop, 0);
		made += result == CUDA_SUCCESS;
	}
	while (result != CUDA_SUCCESS && made > held)
		cuMemRelease(handles[--made]);
	for (; held < made; held++)
		cuMemMap(range + held * UNIT, UNIT, 0, handles[held], 0);
	return result;
}

int main(int argc, char **argv)
{
	CUcontext context;

	if (argc < 4 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 2;
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	printf("reserve %d\n", cuMemAddressReserve(&range, 1024 * UNIT, 0, 0, 0));
	printf("held %d\n", grow(strtoul(argv[1], NULL, 10) * MIB));
	printf("wanted %d\n", grow(strtoul(argv[2], NULL, 10) * MIB));
	printf("again %d\n", grow(strtoul(argv[2], NULL, 10) * MIB));
	printf("last %d\n", grow(strtoul(argv[3], NULL, 10) * MIB));
	return 0;
}
