/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that uses the driver and that the program opens in some mode. Built with
 *
 *	-DLINKED	linked against libcuda.so.1
 *	-DTRAMPOLINE	exports entries of its own that open the driver at their first call, as TensorFlow's do
 *	(neither)	opens libcuda.so.1 itself
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef unsigned long long address;

#if defined(LINKED)
int cuInit(unsigned flags);
int cuMemAlloc_v2(address *ret_address, size_t size);
int cuMemFree_v2(address ptr);
#elif defined(TRAMPOLINE)
static void *entry(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	return driver ? dlsym(driver, name) : NULL;
}

int cuInit(unsigned flags)
{
	int (*real)(unsigned) = (int (*)(unsigned))entry("cuInit");

	return real ? real(flags) : 100;
}

int cuMemAlloc_v2(address *ret_address, size_t size)
{
	int (*real)(address *, size_t) = (int (*)(address *, size_t))entry("cuMemAlloc_v2");

	return real ? real(ret_address, size) : 100;
}

int cuMemFree_v2(address ptr)
{
	int (*real)(address) = (int (*)(address))entry("cuMemFree_v2");

	return real ? real(ptr) : 100;
}
#else
static int cuInit(unsigned flags)
{
	return ((int (*)(unsigned))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit"))(flags);
}

static int cuMemAlloc_v2(address *ret_address, size_t size)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	return ((int (*)(address *, size_t))dlsym(driver, "cuMemAlloc_v2"))(ret_address, size);
}

static int cuMemFree_v2(address ptr)
{
	return ((int (*)(address))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemFree_v2"))(ptr);
}
#endif

/* Two allocations of `size`, one too large, one release; the results as decimal digits. */
int plugin_run(size_t size)
{
	address first = 0, second = 0, none = 0;
	int result = cuInit(0);

	result = result * 10 + cuMemAlloc_v2(&first, size);
	result = result * 10 + cuMemAlloc_v2(&second, size);
	result = result * 10 + cuMemAlloc_v2(&none, (size_t)1 << 50);
	result = result * 10 + cuMemFree_v2(second);
	return first && second && !none ? result : -1;
}
