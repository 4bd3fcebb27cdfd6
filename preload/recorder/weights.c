/* SPDX-License-Identifier: Apache-2.0 */
#include "weights.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE (2 * SECOND)        /* a loader that has not read the table by then never will */
#define SETTLE   (200 * MILLISECOND) /* from the table's first byte in the page cache to its last, at most */
#define PIECE    256                 /* tensors, or steps towards them */
#define KNOWN    (1u << 16)

/* --- jobs ------------------------------------------------------------------------------------ */

static bool is_known(const struct weights *weights, const struct weights_key *key)
{
	uint32_t i;

	for (i = 0; i < weights->known_count; i++)
		if (!memcmp(&weights->known[i], key, sizeof(*key)))
			return true;
	return false;
}

static void know(struct weights *weights, const struct weights_key *key)
{
	uint32_t room = weights->known_room ? weights->known_room * 2 : 64;
	struct weights_key *known = weights->known;

	if (weights->known_count == KNOWN)
		return;
	if (weights->known_count == weights->known_room) {
		known = realloc(known, room * sizeof(*known));
		if (!known)
			return;
		weights->known = known;
		weights->known_room = room;
	}
	known[weights->known_count++] = *key;
}

static struct weights_job *add_job(struct weights *weights, const struct st_ev_file *file)
{
	struct weights_key key = {file->dev, file->ino, file->size};
	uint32_t room = weights->room ? weights->room * 2 : 16;
	struct weights_job **jobs = weights->jobs, *job;

	if (!table_has((enum st_file_format)file->format) || is_known(weights, &key))
		return NULL;
	if (weights->count == weights->room) {
		jobs = realloc(jobs, room * sizeof(*jobs));
		if (!jobs)
			return NULL;
		weights->jobs = jobs;
		weights->room = room;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	*job = (struct weights_job){.file = (uint32_t)file->id,
	                            .format = (enum st_file_format)file->format,
	                            .since = clock_now(),
	                            .fd = -1};
	jobs[weights->count++] = job;
	know(weights, &key);
	return job;
}

void weights_add(struct weights *weights, const struct st_ev_file *file)
{
	add_job(weights, file);
}

static void free_job(struct weights_job *job)
{
	table_free(job->table);
	if (job->fd >= 0)
		close(job->fd);
	free(job->path);
	free(job);
}

void weights_promise(struct weights *weights, const struct st_ev_file *file, const char *path)
{
	struct weights_job *job = add_job(weights, file);

	if (!job)
		return;
	job->path = strdup(path);
	if (!job->path)
		free_job(weights->jobs[--weights->count]);
}

static void drop_job(struct weights *weights, uint32_t i)
{
	free_job(weights->jobs[i]);
	weights->jobs[i] = weights->jobs[--weights->count];
}

void weights_release(struct weights *weights)
{
	while (weights->count)
		drop_job(weights, 0);
	free(weights->jobs);
	free(weights->known);
}

/* --- when a table is read -------------------------------------------------------------------- */

static bool is_cached(const struct cache *cache, const struct cache_file *file, uint64_t offset,
                      uint64_t size)
{
	uint64_t cached = cache_bytes(cache, file, offset, size);

	return cached != ST_UNKNOWN && cached >= size;
}

/* Whether the table can be read without any input. The first look must not cause any either. */
static bool is_ready(struct weights_job *job, const struct cache *cache, const struct cache_file *file)
{
	uint64_t offset, size, head;

	table_probe(job->format, file->size, &offset, &size);
	if (!is_cached(cache, file, offset, size))
		return false;
	head = table_head(job->format, file->fd, file->size);
	if (head)
		return is_cached(cache, file, 0, head);
	if (!job->ready)
		job->ready = clock_now();
	return clock_now() - job->ready >= SETTLE;
}

/* Bytes of the pages of a range that are not in the page cache. */
static uint64_t missing(const void *context, uint64_t offset, uint64_t size)
{
	const struct weights_job *job = context;
	uint64_t page = job->cache->page_size, first = offset / page * page;
	uint64_t end = (offset + size + page - 1) / page * page, cached;

	end = end < job->file_now.size ? end : job->file_now.size;
	cached = first < end ? cache_bytes(job->cache, &job->file_now, first, end - first) : ST_UNKNOWN;
	return cached == ST_UNKNOWN || cached > end - first ? 0 : end - first - cached;
}

/* The file of a job that the program has not opened. */
static int open_path(struct weights_job *job)
{
	struct stat now;

	job->fd = open(job->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOATIME);
	if (job->fd < 0 && errno == EPERM)
		job->fd = open(job->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (job->fd < 0)
		return -errno;
	if (fstat(job->fd, &now) || !S_ISREG(now.st_mode))
		return -ESTALE;
	job->file_now = (struct cache_file){
		.fd = job->fd,
		.own = now.st_uid == geteuid() || !geteuid(),
		.size = (uint64_t)now.st_size,
	};
	return 0;
}

static int begin_job(struct weights_job *job, const struct cache *cache, const struct cache_file *file,
                     struct out *out)
{
	struct source_cache own = {missing, job};
	int err = 0;

	job->cache = cache;
	if (job->path)
		err = open_path(job);
	else
		job->file_now = *file;
	if (!err) {
		/* Of our descriptor only: no reading ahead. */
		posix_fadvise(job->file_now.fd, 0, 0, POSIX_FADV_RANDOM);
		err = table_open(job->format, job->file_now.fd, job->file_now.size, &own, &job->table);
	}
	if (err == -EINVAL)
		out_coverage(out, "file %u: no table of tensors that is understood", job->file);
	else if (err)
		out_coverage(out, "file %u: its table of tensors cannot be read: %s", job->file,
		             strerror(-err));
	return err;
}

/* --- reading it ------------------------------------------------------------------------------ */

static void say_end(const struct weights_job *job, struct out *out, int rc)
{
	const char *note = table_note(job->table), *error;
	uint64_t offset, own = table_own(job->table);
	char name[40];

	error = table_error(job->table, &offset);
	if (rc == -EINVAL)
		out_coverage(out, "file %u: table is wrong at byte %llu: %s", job->file,
		             (unsigned long long)offset, error);
	else if (rc < 0)
		out_coverage(out, "file %u: table cannot be read: %s", job->file, strerror(-rc));
	else if (note)
		out_coverage(out, "file %u: tensors have no names: %s", job->file, note);
	/* What reading the table brought in is ours, not the program's: said, to be subtracted. */
	snprintf(name, sizeof(name), "own_cache.%u", job->file);
	if (own)
		out_info(out, name, "%llu", (unsigned long long)own);
}

/* 1: more; 0: done. */
static int read_piece(struct weights_job *job, struct out *out)
{
	static struct file_tensor tensor;
	int i, rc = TENSOR_STEP;

	for (i = 0; i < PIECE && rc > TENSOR_END; i++) {
		rc = table_next(job->table, &tensor);
		if (rc == TENSOR_READ)
			OUT_TAIL(out, tensor, tensor.name, strlen(tensor.name), .file = job->file,
			         .offset = tensor.offset, .size = tensor.size, .dtype = tensor.dtype,
			         .elements = tensor.elements);
	}
	if (rc <= TENSOR_END)
		say_end(job, out, rc);
	return rc > TENSOR_END;
}

/* Is it time? Files that only an index names are read last: their turn comes with patience. */
static bool is_due(struct weights_job *job, const struct cache *cache, const struct cache_file *file,
                   bool hurry)
{
	if (job->table || hurry || clock_now() - job->since >= PATIENCE)
		return true;
	return file && is_ready(job, cache, file);
}

bool weights_work(struct weights *weights, struct cache *cache, struct out *out, bool hurry)
{
	uint32_t i;

	for (i = 0; i < weights->count; i++) {
		struct weights_job *job = weights->jobs[i];
		struct cache_file *file = job->path ? NULL : cache_find(cache, job->file);

		if ((file || job->path) && !is_due(job, cache, file, hurry))
			continue;
		if ((!file && !job->path) || (!job->table && begin_job(job, cache, file, out)) ||
		    !read_piece(job, out))
			drop_job(weights, i);
		return weights->count > 0;
	}
	return false;
}
