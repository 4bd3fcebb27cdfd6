/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a driver's resolver as programs do, and allocates through what it gives: plain by the resolver's own
 * answer for itself, the 32-bit one of CUDA 2, and names that do not exist.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int resolver(const char *name, void **ret_address, int version, unsigned long long flags,
                     int *ret_status);

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	resolver *ask = (resolver *)dlsym(driver, "cuGetProcAddress_v2"), *again = NULL;
	int (*managed)(unsigned long long *, size_t, unsigned);
	unsigned long long address = 0;
	unsigned narrow = 0;
	void *entry = NULL;
	int status = 7;

	if (!driver || !ask)
		return 2;
	printf("empty name: %d %d\n", ask("", &entry, 0, 0, NULL), entry != NULL);
	printf("unknown: %d", ask("cuNoSuch", &entry, 12000, 0, &status));
	printf(" %d %d\n", status, entry != NULL);
	printf("itself: %d\n", ask("cuGetProcAddress", (void **)&again, 12000, 0, &status));
	printf("alloc: %d", again("cuMemAlloc", &entry, 13000, 0, &status));
	printf(" %d\n", ((int (*)(unsigned long long *, size_t))entry)(&address, 1 << 20));
	printf("free: %d", again("cuMemFree", &entry, 3020, 0, NULL));
	printf(" %d\n", ((int (*)(unsigned long long))entry)(address));
	printf("narrow: %d", again("cuMemAlloc", &entry, 2000, 0, &status));
	printf(" %d", ((int (*)(unsigned *, unsigned))entry)(&narrow, 4711));
	printf(" %u\n", narrow);
	managed = (int (*)(unsigned long long *, size_t, unsigned))dlsym(driver, "cuMemAllocManaged");
	printf("managed: %d\n", managed(&address, 2 << 20, 1));
	return 0;
}
