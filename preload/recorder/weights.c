/* SPDX-License-Identifier: Apache-2.0 */
#include "weights.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (2 * SECOND) /* a loader that has not read the header by then never will */
#define PIECE    256          /* tensors */

void weights_add(struct weights *weights, uint64_t file)
{
	struct weights_job *jobs = weights->jobs;
	uint32_t room = weights->room ? weights->room * 2 : 16;

	if (weights->count == weights->room) {
		jobs = realloc(jobs, room * sizeof(*jobs));
		if (!jobs)
			return;
		weights->jobs = jobs;
		weights->room = room;
	}
	jobs[weights->count++] = (struct weights_job){.file = (uint32_t)file, .since = clock_now()};
}

static void drop_job(struct weights *weights, uint32_t i)
{
	safetensors_free(weights->jobs[i].reader);
	weights->jobs[i] = weights->jobs[--weights->count];
}

void weights_release(struct weights *weights)
{
	while (weights->count)
		drop_job(weights, 0);
	free(weights->jobs);
}

static bool is_cached(const struct cache *cache, const struct cache_file *file, uint64_t size)
{
	uint64_t cached = cache_bytes(cache, file, 0, size);

	return cached != ST_UNKNOWN && cached >= size;
}

/* Whether the header can be read without any input. The first look must not cause any either. */
static bool is_ready(const struct cache *cache, const struct cache_file *file)
{
	uint64_t header;

	if (!is_cached(cache, file, file->size < 8 ? file->size : 8))
		return false;
	header = safetensors_header(file->fd, file->size);
	return !header || is_cached(cache, file, header);
}

/* What reading the header brings in is ours, not the program's: said, to be subtracted. */
static void say_own(const struct cache *cache, const struct cache_file *file, struct out *out, uint64_t first)
{
	uint64_t page = cache->page_size, header = safetensors_header(file->fd, file->size), cached, own;
	char name[40];

	header = (header + page - 1) / page * page;
	cached = cache_bytes(cache, file, 0, header);
	if (!header || first == ST_UNKNOWN || cached == ST_UNKNOWN)
		return;
	own = header - cached + (first ? 0 : page);
	snprintf(name, sizeof(name), "own_cache.%u", file->id);
	if (own)
		out_info(out, name, "%llu", (unsigned long long)own);
}

static int begin_job(struct weights_job *job, const struct cache *cache, const struct cache_file *file,
                     struct out *out)
{
	uint64_t first = cache_bytes(cache, file, 0, file->size < 8 ? file->size : 8);
	int err;

	posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM); /* of our descriptor only: no reading ahead */
	err = safetensors_open(file->fd, file->size, &job->reader);
	if (err)
		out_coverage(out, "file %u: no safetensors header", file->id);
	else
		say_own(cache, file, out, first);
	return err;
}

static void say_wrong(const struct weights_job *job, struct out *out, int err)
{
	uint64_t offset;
	const char *error = safetensors_error(job->reader, &offset);

	if (err == -EINVAL)
		out_coverage(out, "file %u: header is wrong at byte %llu: %s", job->file,
		             (unsigned long long)offset, error);
	else
		out_coverage(out, "file %u: header cannot be read: %s", job->file, strerror(-err));
}

/* 1: more; 0: done. */
static int read_piece(struct weights_job *job, struct out *out)
{
	static struct safetensors_tensor tensor;
	int i, rc = 1;

	for (i = 0; i < PIECE && rc > 0; i++) {
		rc = safetensors_next(job->reader, &tensor);
		if (rc > 0)
			OUT_TAIL(out, tensor, tensor.name, strlen(tensor.name), .file = job->file,
			         .offset = tensor.offset, .size = tensor.size, .dtype = tensor.dtype,
			         .elements = tensor.elements);
	}
	if (rc < 0)
		say_wrong(job, out, rc);
	return rc > 0;
}

bool weights_work(struct weights *weights, struct cache *cache, struct out *out, bool hurry)
{
	uint32_t i;

	for (i = 0; i < weights->count; i++) {
		struct weights_job *job = &weights->jobs[i];
		struct cache_file *file = cache_find(cache, job->file);

		if (file && !job->reader && !hurry && clock_now() - job->since < PATIENCE &&
		    !is_ready(cache, file))
			continue;
		if (!file || (!job->reader && begin_job(job, cache, file, out)) || !read_piece(job, out))
			drop_job(weights, i);
		return weights->count > 0;
	}
	return false;
}
