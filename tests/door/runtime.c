/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toolkit's own runtime, as far as it comes over a driver that is not the vendor's: it finds its entries and
 * then refuses the driver. What the program sees must be the same with and without us in between (stdout). On
 * stderr: how many of the runtime's pointers into the driver lead to an entry that we own (bare), and
 * how many lead to us (wrapped).
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const char *what, cudaError_t error)
{
	printf("%s: %d %s\n", what, error, cudaGetErrorName(error));
}

static void *shim;
static int bare, wrapped;

static const char *file_of(const char *path)
{
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

static void count_pointer(void *pointer)
{
	Dl_info info;

	if (!pointer || !dladdr(pointer, &info) || info.dli_saddr != pointer || !info.dli_sname)
		return;
	if (strcmp(file_of(info.dli_fname), "libsparktrace.so") == 0)
		wrapped += strncmp(info.dli_sname, "cu", 2) == 0;
	if (strcmp(file_of(info.dli_fname), "libcuda.so.1") == 0)
		bare += dlsym(shim, info.dli_sname) != NULL;
}

/* Every aligned word of the writable memory of the program and of the runtime. */
static int count_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	const char *file = file_of(object->dlpi_name);

	(void)size;
	(void)arg;
	if (*file && strncmp(file, "libcudart.", 10) != 0)
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		void *const *word = (void *const *)((object->dlpi_addr + header->p_vaddr + 7) / 8 * 8);

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
			continue;
		for (size_t n = header->p_memsz / 8; n > 1; n--)
			count_pointer(*word++);
	}
	return 0;
}

static void count_pointers(void)
{
	shim = dlopen(getenv("LD_PRELOAD"), RTLD_NOW | RTLD_NOLOAD);
	if (!shim)
		return;
	dl_iterate_phdr(count_object, NULL);
	fprintf(stderr, "bare %d wrapped %d\n", bare, wrapped);
}

int main(void)
{
	enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
	size_t free_bytes = 1, total = 2;
	int count = -1, version = -1;
	void *entry = NULL, *memory = NULL;

	show("driver version", cudaDriverGetVersion(&version));
	printf("%d\n", version);
	show("device count", cudaGetDeviceCount(&count));
	printf("%d\n", count);
	show("malloc", cudaMalloc(&memory, 1 << 20));
	show("mem info", cudaMemGetInfo(&free_bytes, &total));
	show("entry point",
	     cudaGetDriverEntryPointByVersion("cuMemCreate", &entry, 12000, cudaEnableDefault, &status));
	printf("%d %d\n", entry != NULL, status);
	show("host alloc", cudaMallocHost(&memory, 1 << 20));
	show("last", cudaGetLastError());
	count_pointers();
	return 0;
}
