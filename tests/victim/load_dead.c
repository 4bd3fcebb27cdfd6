/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load that dies: first all shards are mapped read-only, as the large libraries do, and stay mapped, and
 * device memory ends before the shards do (SIMCUDA_LIMIT). With --retry the oldest half of what is held is freed and the allocation
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

struct shard {
	struct weights weights;
	const char *map;
};

static struct shard shard_map(const char *path)
{
	struct shard shard;

	weights_open(path, &shard.weights);
	shard.map = mmap(NULL, shard.weights.size, PROT_READ, MAP_PRIVATE, shard.weights.fd, 0);
	MUST(shard.map == MAP_FAILED);
	close(shard.weights.fd);
	return shard;
}

static CUresult shard_load(const struct shard *shard, int retries)
{
	CUresult rc = CUDA_SUCCESS;

	for (size_t i = 0; i < shard->weights.count && rc == CUDA_SUCCESS; i++)
		rc = tensor_load(shard->map, &shard->weights.tensors[i], retries);
	return rc;
}

int main(int argc, char **argv)
{
	double seconds = hold_option(&argc, argv);
	int retries = argc > 1 && strcmp(argv[1], "--retry") == 0;
	CUresult rc = CUDA_SUCCESS;
	struct shard shards[64];
	int count = argc - 1 - retries, i;

	if (count < 1 || count > 64) {
		fprintf(stderr, "usage: load_dead [--retry] SHARD... [--hold SECONDS]\n");
		return 2;
	}
	device_open();
	for (i = 0; i < count; i++)
		shards[i] = shard_map(argv[i + 1 + retries]);
	for (i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = shard_load(&shards[i], retries);
	printf("%s at shard %d of %d, result %d\n", rc == CUDA_SUCCESS ? "done" : "dead", i, count, (int)rc);
	hold(seconds);
	return rc != CUDA_SUCCESS;
}
