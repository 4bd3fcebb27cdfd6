/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training run under a caching allocator: the weights are loaded, and then every step finds that it
 * needs one more segment, which is never given back.
 *
 *	load_steps FILE STEPS MIB_A_STEP [--hold SECONDS]
 */
#include "tests/victim/victim.h"

static void load(const char *path)
{
	struct weights w;
	char *map;

	weights_open(path, &w);
	map = mmap(NULL, w.size, PROT_READ, MAP_PRIVATE, w.fd, 0);
	MUST(map == MAP_FAILED);
	for (size_t i = 0; i < w.count; i++) {
		CUdeviceptr block;

		MUST(cuMemAlloc(&block, w.tensors[i].size));
		MUST(cuMemcpyHtoDAsync(block, map + w.tensors[i].offset, w.tensors[i].size, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
	MUST(munmap(map, w.size));
	close(w.fd);
}

static void step(size_t size)
{
	CUdeviceptr segment;

	MUST(cuMemAlloc(&segment, size));
	MUST(cuMemsetD8Async(segment, 0, size, NULL));
	MUST(cuStreamSynchronize(NULL));
}

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);

	if (argc != 4) {
		fprintf(stderr, "usage: load_steps FILE STEPS MIB_A_STEP [--hold SECONDS]\n");
		return 2;
	}
	device_open();
	load(argv[1]);
	for (long i = 0; i < atol(argv[2]); i++) {
		step(strtoull(argv[3], NULL, 10) * MIB);
		printf("step %ld\n", i + 1);
	}
	hold(seconds);
	return 0;
}
