/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of five entries, for what the simulated one does not do. Memory is numbers. Built with
 *
 *	-DHIDDEN	its resolver hands out addresses that are no exports
 *	-DNESTED	its managed allocation is made through the plain one, found as a program finds it
 *	-DRESOLVER=0	before CUDA 11.3: no resolver
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifndef RESOLVER
#define RESOLVER 1
#endif

typedef unsigned long long address;

static address next = 0x700000000000;

int cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

int cuDriverGetVersion(int *ret_version)
{
	*ret_version = 13000;
	return 0;
}

static int plain(address *ret_address, size_t size)
{
	if (size > (size_t)1 << 40)
		return 2;
	*ret_address = next;
	next += (size + 4095) / 4096 * 4096;
	return 0;
}

int cuMemAlloc_v2(address *ret_address, size_t size)
{
	return plain(ret_address, size);
}

/* CUDA 2: sizes of 32 bits. */
int cuMemAlloc(unsigned *ret_address, unsigned size)
{
	*ret_address = size;
	return 0;
}

int cuMemAllocManaged(address *ret_address, size_t size, unsigned flags)
{
	(void)flags;
#ifdef NESTED
	void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*alloc)(address *, size_t) = (int (*)(address *, size_t))dlsym(self, "cuMemAlloc_v2");

	return alloc(ret_address, size);
#else
	return plain(ret_address, size);
#endif
}

int cuMemFree_v2(address ptr)
{
	return ptr < 0x700000000000 || ptr >= next ? 1 : 0;
}

#if RESOLVER
#ifdef HIDDEN
static int hidden_alloc(address *ret_address, size_t size)
{
	return plain(ret_address, size);
}

static int hidden_free(address ptr)
{
	return cuMemFree_v2(ptr);
}
#define ALLOC hidden_alloc
#define FREE  hidden_free
#else
#define ALLOC cuMemAlloc_v2
#define FREE  cuMemFree_v2
#endif

int cuGetProcAddress_v2(const char *name, void **ret_address, int version, unsigned long long flags,
                        int *ret_status)
{
	(void)flags;
	*ret_address = NULL;
	if (strcmp(name, "cuMemAlloc") == 0)
		*ret_address = version < 3020 ? (void *)cuMemAlloc : (void *)ALLOC;
	if (strcmp(name, "cuMemFree") == 0)
		*ret_address = (void *)FREE;
	if (strcmp(name, "cuGetProcAddress") == 0)
		*ret_address = (void *)cuGetProcAddress_v2;
	if (ret_status)
		*ret_status = *ret_address ? 0 : 1;
	return *ret_address ? 0 : 500;
}
#endif
