/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load that dies: every shard is mapped read-only and stays mapped, and device memory ends before the
 * shards do (SIMCUDA_LIMIT). With --retry the oldest half of what is held is freed and the allocation
 * tried again, which succeeds: a program that lives.
 *
 *	load_dead [--retry] SHARD... [--hold SECONDS]		exits with 1 when it died
 */
#include "tests/victim/victim.h"

static CUdeviceptr held[256];
static size_t held_count;

static CUresult retry(CUdeviceptr *ret_block, uint64_t size)
{
	size_t half = held_count / 2;

	for (size_t i = 0; i < half; i++)
		MUST(cuMemFree(held[i]));
	memmove(held, held + half, (held_count - half) * sizeof(*held));
	held_count -= half;
	return cuMemAlloc(ret_block, size);
}

static CUresult tensor_load(const char *map, const struct tensor *tensor, int retries)
{
	CUdeviceptr block;
	CUresult rc = cuMemAlloc(&block, tensor->size);

	if (rc == CUDA_ERROR_OUT_OF_MEMORY && retries)
		rc = retry(&block, tensor->size);
	if (rc != CUDA_SUCCESS)
		return rc;
	MUST(cuMemcpyHtoDAsync(block, map + tensor->offset, tensor->size, NULL));
	MUST(cuStreamSynchronize(NULL));
	held[held_count++] = block;
	return CUDA_SUCCESS;
}

static CUresult shard_load(const char *path, int retries)
{
	CUresult rc = CUDA_SUCCESS;
	struct weights w;
	char *map;

	weights_open(path, &w);
	map = mmap(NULL, w.size, PROT_READ, MAP_PRIVATE, w.fd, 0);
	MUST(map == MAP_FAILED);
	close(w.fd);
	for (size_t i = 0; i < w.count && rc == CUDA_SUCCESS; i++)
		rc = tensor_load(map, &w.tensors[i], retries);
	free(w.tensors);
	return rc;
}

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);
	int retries = argc > 1 && strcmp(argv[1], "--retry") == 0;
	CUresult rc = CUDA_SUCCESS;
	int i;

	if (argc < 2 + retries) {
		fprintf(stderr, "usage: load_dead [--retry] SHARD... [--hold SECONDS]\n");
		return 2;
	}
	device_open();
	for (i = 1 + retries; i < argc && rc == CUDA_SUCCESS; i++)
		rc = shard_load(argv[i], retries);
	printf("%s at shard %d of %d, result %d\n", rc == CUDA_SUCCESS ? "done" : "dead", i - 1 - retries,
	       argc - 1 - retries, (int)rc);
	hold(seconds);
	return rc != CUDA_SUCCESS;
}
