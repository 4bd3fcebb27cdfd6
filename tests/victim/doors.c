/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory through every door to the driver: its export, dlsym, both forms of the resolver, and the
 * runtime's cudaMalloc. Each block comes on top of the others; then all are freed by the doors they
 * came through.
 *
 *	doors [MIB [DOOR...]] [--hold SECONDS]		256 MiB each; doors are exports, dlsym, v1, v2, runtime
 */
#define __CUDA_API_VERSION_INTERNAL /* declares both forms of cuGetProcAddress */
#include <cuda_runtime_api.h>
#include "tests/victim/victim.h"

#include <dlfcn.h>

typedef CUresult alloc_fn(CUdeviceptr *, size_t);
typedef CUresult free_fn(CUdeviceptr);

struct door {
	const char *name;
	void (*open)(alloc_fn **, free_fn **);
};

static void open_exports(alloc_fn **ret_alloc, free_fn **ret_free)
{
	*ret_alloc = cuMemAlloc_v2;
	*ret_free = cuMemFree_v2;
}

static void *driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	MUST(handle == NULL);
	return handle;
}

static void open_dlsym(alloc_fn **ret_alloc, free_fn **ret_free)
{
	*ret_alloc = (alloc_fn *)dlsym(driver(), "cuMemAlloc_v2");
	*ret_free = (free_fn *)dlsym(driver(), "cuMemFree_v2");
}

static void open_v1(alloc_fn **ret_alloc, free_fn **ret_free)
{
	__typeof__(&cuGetProcAddress) resolve = (__typeof__(resolve))dlsym(driver(), "cuGetProcAddress");

	MUST(resolve("cuMemAlloc", (void **)ret_alloc, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
	MUST(resolve("cuMemFree", (void **)ret_free, 11030, CU_GET_PROC_ADDRESS_DEFAULT));
}

static void open_v2(alloc_fn **ret_alloc, free_fn **ret_free)
{
	__typeof__(&cuGetProcAddress_v2) resolve =
		(__typeof__(resolve))dlsym(driver(), "cuGetProcAddress_v2");
	CUdriverProcAddressQueryResult status;

	MUST(resolve("cuMemAlloc", (void **)ret_alloc, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
	MUST(resolve("cuMemFree", (void **)ret_free, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
	MUST(status != CU_GET_PROC_ADDRESS_SUCCESS);
}

static CUresult runtime_alloc(CUdeviceptr *ret_block, size_t size)
{
	return (CUresult)cudaMalloc((void **)ret_block, size);
}

static CUresult runtime_free(CUdeviceptr block)
{
	return (CUresult)cudaFree((void *)(uintptr_t)block);
}

static void open_runtime(alloc_fn **ret_alloc, free_fn **ret_free)
{
	*ret_alloc = runtime_alloc;
	*ret_free = runtime_free;
}

static const struct door doors[] = {
	{"exports", open_exports}, {"dlsym", open_dlsym},     {"v1", open_v1},
	{"v2", open_v2},           {"runtime", open_runtime},
};
#define DOORS (sizeof(doors) / sizeof(*doors))

static int wanted(const char *name, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc <= 2;
}

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);
	size_t size = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) * MIB;
	CUdeviceptr blocks[DOORS] = {0};
	free_fn *frees[DOORS] = {NULL};

	device_open();
	for (size_t i = 0; i < DOORS; i++) {
		alloc_fn *alloc;

		if (!wanted(doors[i].name, argc, argv))
			continue;
		doors[i].open(&alloc, &frees[i]);
		MUST(alloc(&blocks[i], size));
		printf("%s 0x%llx\n", doors[i].name, blocks[i]);
	}
	hold(seconds);
	for (size_t i = 0; i < DOORS; i++)
		if (frees[i])
			MUST(frees[i](blocks[i]));
	return 0;
}
