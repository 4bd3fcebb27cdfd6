/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loader as safetensors 0.7 under PyTorch: the whole file in one private mapping, a device block and
 * an asynchronous copy a tensor straight out of it, one wait, and the mapping is gone right after it.
 *
 *	load_cow [--read-only] FILE [--hold SECONDS]
 */
#include "tests/victim/victim.h"

static __attribute__((noinline)) void load(const char *path, int prot)
{
	struct weights w;
	char *map;

	weights_open(path, &w);
	map = mmap(NULL, w.size, prot, MAP_PRIVATE, w.fd, 0);
	MUST(map == MAP_FAILED);
	for (size_t i = 0; i < w.count; i++) {
		CUdeviceptr block;

		MUST(cuMemAlloc(&block, w.tensors[i].size));
		MUST(cuMemcpyHtoDAsync(block, map + w.tensors[i].offset, w.tensors[i].size, NULL));
	}
	MUST(cuStreamSynchronize(NULL));
	MUST(munmap(map, w.size));
	close(w.fd);
	printf("loaded %zu tensors\n", w.count);
}

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);
	int read_only = argc == 3 && strcmp(argv[1], "--read-only") == 0;

	if (argc != 2 + read_only) {
		fprintf(stderr, "usage: load_cow [--read-only] FILE [--hold SECONDS]\n");
		return 2;
	}
	device_open();
	load(argv[argc - 1], read_only ? PROT_READ : PROT_READ | PROT_WRITE);
	hold(seconds);
	return 0;
}
