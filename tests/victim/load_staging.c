/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loader with staging: the whole device block of a tensor first, then pread and copy of 64 MiB at a
 * time through one pinned buffer, each copy waited for before the buffer is filled again.
 *
 *	load_staging FILE... [--hold SECONDS]
 */
#include "tests/victim/victim.h"

#define BUFFER (64 * MIB)

static void tensor_load(int fd, const struct tensor *tensor, void *buffer)
{
	CUdeviceptr block;

	MUST(cuMemAlloc(&block, tensor->size));
	for (uint64_t done = 0; done < tensor->size; done += BUFFER) {
		size_t size = tensor->size - done < BUFFER ? tensor->size - done : BUFFER;

		MUST(pread(fd, buffer, size, (off_t)(tensor->offset + done)) != (ssize_t)size);
		MUST(cuMemcpyHtoDAsync(block + done, buffer, size, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
}

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);
	size_t loaded = 0;
	void *buffer;

	if (argc < 2) {
		fprintf(stderr, "usage: load_staging FILE... [--hold SECONDS]\n");
		return 2;
	}
	device_open();
	MUST(cuMemHostAlloc(&buffer, BUFFER, 0));
	for (int i = 1; i < argc; i++) {
		struct weights w;

		weights_open(argv[i], &w);
		for (size_t t = 0; t < w.count; t++)
			tensor_load(w.fd, &w.tensors[t], buffer);
		close(w.fd);
		loaded += w.count;
	}
	MUST(cuMemFreeHost(buffer));
	printf("loaded %zu tensors\n", loaded);
	hold(seconds);
	return 0;
}
