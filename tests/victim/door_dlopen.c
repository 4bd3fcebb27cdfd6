/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked with nothing of CUDA and opens the driver late and for itself alone, as Python
 * packages do: RTLD_LOCAL, then dlsym for what it needs and the resolver for the rest.
 *
 *	door_dlopen [MIB] [--hold SECONDS]		two blocks of 256 MiB
 */
#include "tests/victim/victim.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);
	size_t size = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) * MIB;
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	__typeof__(&cuGetProcAddress) resolve;
	__typeof__(&cuMemAlloc) alloc, alloc_again;
	__typeof__(&cuInit) init;
	__typeof__(&cuCtxCreate) create;
	__typeof__(&cuMemFree) release;
	CUdriverProcAddressQueryResult status;
	CUdeviceptr first, second;
	CUcontext context;

	MUST(driver == NULL);
	init = (__typeof__(init))dlsym(driver, "cuInit");
	alloc = (__typeof__(alloc))dlsym(driver, "cuMemAlloc_v2");
	release = (__typeof__(release))dlsym(driver, "cuMemFree_v2");
	resolve = (__typeof__(resolve))dlsym(driver, "cuGetProcAddress_v2");
	MUST(resolve("cuCtxCreate", (void **)&create, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &status));
	MUST(resolve("cuMemAlloc", (void **)&alloc_again, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT,
	             &status));
	MUST(init(0));
	MUST(create(&context, NULL, 0, 0));
	MUST(alloc(&first, size));
	MUST(alloc_again(&second, size));
	printf("0x%llx 0x%llx\n", first, second);
	hold(seconds);
	MUST(release(second));
	MUST(release(first));
	return 0;
}
