/* SPDX-License-Identifier: Apache-2.0 */
#include "shards.h"
#include "clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DELAY       (100 * MILLISECOND) /* programs read the index before the shards; ours is the second look */
#define CANDIDATES  16u                 /* index files in one folder */
#define FOUND_MAX   64u                 /* in all folders */
#define ENTRIES_MAX 65536u              /* of a folder */
#define JOBS_MAX    4096u
#define INDEX_MAX   (UINT64_C(256) << 20)
#define PIECE       64u /* shards that are said at a time */

void shards_init(struct shards *shards, uint64_t page_size)
{
	*shards = (struct shards){.page_size = page_size, .fd = -1};
	cache_init(&shards->cache_now, page_size);
}

static void free_candidates(struct shards *shards)
{
	while (shards->candidate_count)
		free(shards->candidates[--shards->candidate_count]);
	free(shards->candidates);
	shards->candidates = NULL;
	shards->candidate = 0;
	shards->listed = false;
}

static void close_index(struct shards *shards)
{
	index_free(shards->index);
	shards->index = NULL;
	if (shards->fd >= 0)
		close(shards->fd);
	shards->fd = -1;
}

static void drop_job(struct shards *shards)
{
	free(shards->jobs[0].folder);
	free(shards->jobs[0].name);
	memmove(shards->jobs, shards->jobs + 1, --shards->count * sizeof(*shards->jobs));
	free_candidates(shards);
	close_index(shards);
}

void shards_release(struct shards *shards)
{
	while (shards->count)
		drop_job(shards);
	while (shards->found_count) {
		struct shards_index *found = &shards->found[--shards->found_count];

		free(found->folder);
		free(found->name);
		index_free(found->index);
	}
	free(shards->jobs);
	free(shards->found);
	cache_release(&shards->cache_now);
}

/* Is it a shard that has been said already? */
static bool is_found(const struct shards *shards, const char *folder, const char *name)
{
	uint32_t i;

	for (i = 0; i < shards->found_count; i++)
		if (!strcmp(shards->found[i].folder, folder) && index_names(shards->found[i].index, name))
			return true;
	return false;
}

static bool reserve(void *array, size_t size, uint32_t count, uint32_t *room)
{
	void **elements = array, *moved;
	uint32_t more = *room ? *room * 2 : 16;

	if (count < *room)
		return true;
	moved = realloc(*elements, more * size);
	if (!moved)
		return false;
	*elements = moved;
	*room = more;
	return true;
}

void shards_add(struct shards *shards, const char *path, const char *folder)
{
	char whole[PATH_MAX], *slash;
	struct shards_job job = {.since = clock_now()};

	if (snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : folder, path[0] == '/' ? "" : "/",
	             path) >= (int)sizeof(whole))
		return;
	slash = strrchr(whole, '/');
	if (!slash || shards->count == JOBS_MAX)
		return;
	*slash = '\0';
	if (is_found(shards, whole, slash + 1) ||
	    !reserve(&shards->jobs, sizeof(job), shards->count, &shards->room))
		return;
	job.folder = strdup(whole);
	job.name = strdup(slash + 1);
	if (job.folder && job.name) {
		shards->jobs[shards->count++] = job;
	} else {
		free(job.folder);
		free(job.name);
	}
}

/* --- looking for the index ------------------------------------------------------------------- */

/* model.safetensors.index.json, diffusion_pytorch_model.safetensors.index.fp16.json */
static bool is_index_name(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && !strcmp(name + length - 5, ".json") && strstr(name, ".index.");
}

static bool is_index_found(const struct shards *shards, const char *folder, const char *name)
{
	uint32_t i;

	for (i = 0; i < shards->found_count; i++)
		if (!strcmp(shards->found[i].folder, folder) && !strcmp(shards->found[i].name, name))
			return true;
	return false;
}

static void list_candidates(struct shards *shards, const char *folder)
{
	DIR *dir = opendir(*folder ? folder : "/");
	const struct dirent *entry;
	uint32_t i;

	shards->listed = true;
	shards->candidates = calloc(CANDIDATES, sizeof(*shards->candidates));
	for (i = 0; dir && shards->candidates && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
		if (!is_index_name(entry->d_name) || is_index_found(shards, folder, entry->d_name))
			continue;
		shards->candidates[shards->candidate_count] = strdup(entry->d_name);
		if (!shards->candidates[shards->candidate_count] || ++shards->candidate_count == CANDIDATES)
			break;
	}
	if (dir)
		closedir(dir);
}

/* A regular file of this folder; a hub's cache has links there. */
static int open_beside(const char *folder, const char *name, struct stat *ret_stat)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_stat) || !S_ISREG(ret_stat->st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

/* Bytes of the pages of a range that are not in the page cache. */
static uint64_t missing(const void *context, uint64_t offset, uint64_t size)
{
	const struct shards *shards = context;
	uint64_t page = shards->page_size, first = offset / page * page;
	uint64_t end = offset + size < shards->file_now.size ? offset + size : shards->file_now.size, cached;

	cached = first < end ? cache_bytes(&shards->cache_now, &shards->file_now, first, end - first)
	                     : ST_UNKNOWN;
	return cached == ST_UNKNOWN || cached > end - first ? 0 : end - first - cached;
}

static void begin_candidate(struct shards *shards)
{
	const char *name = shards->candidates[shards->candidate++];
	struct source_cache own = {missing, shards};
	struct stat now;

	shards->fd = open_beside(shards->jobs[0].folder, name, &now);
	if (shards->fd < 0)
		return;
	shards->file_now = (struct cache_file){
		.fd = shards->fd,
		.own = now.st_uid == geteuid() || !geteuid(),
		.size = (uint64_t)now.st_size,
	};
	posix_fadvise(shards->fd, 0, 0, POSIX_FADV_RANDOM); /* of our descriptor only: no reading ahead */
	if ((uint64_t)now.st_size > INDEX_MAX ||
	    index_open(shards->fd, (uint64_t)now.st_size, &own, &shards->index))
		close_index(shards);
}

/* --- saying it ------------------------------------------------------------------------------- */

static void say_index(struct shards *shards, struct out *out, const char *name)
{
	const struct index *index = shards->index;
	char path[PATH_MAX];
	uint64_t own = index_own(index);

	snprintf(path, sizeof(path), "%s/%s", shards->jobs[0].folder, name);
	OUT_TAIL(out, index, path, strlen(path), .total_size = index_total(index),
	         .shards = index_shards(index), .tensors = index_tensors(index));
	if (index_refused(index))
		out_coverage(out, "%s names %llu tensors in files outside its folder", path,
		             (unsigned long long)index_refused(index));
	if (own)
		out_info(out, "own_cache.index", "%llu", (unsigned long long)own);
}

/* The index becomes one that is known; its shards follow. */
static void keep_index(struct shards *shards, struct out *out)
{
	const char *name = shards->candidates[shards->candidate - 1];
	struct shards_index found = {.folder = strdup(shards->jobs[0].folder), .name = strdup(name)};

	if (!found.folder || !found.name || shards->found_count == FOUND_MAX ||
	    !reserve(&shards->found, sizeof(found), shards->found_count, &shards->found_room)) {
		free(found.folder);
		free(found.name);
		return;
	}
	say_index(shards, out, name);
	found.index = shards->index;
	shards->index = NULL;
	shards->announced = 0;
	shards->found[shards->found_count++] = found;
}

static enum st_file_format format_of(const char *name)
{
	static const struct {
		const char *suffix;
		enum st_file_format format;
	} rows[] = {{".safetensors", ST_FILE_SAFETENSORS},
	            {".gguf", ST_FILE_GGUF},
	            {".bin", ST_FILE_TORCH},
	            {".pt", ST_FILE_TORCH},
	            {".pth", ST_FILE_TORCH}};
	size_t length = strlen(name), i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t tail = strlen(rows[i].suffix);

		if (length > tail && !strcmp(name + length - tail, rows[i].suffix))
			return rows[i].format;
	}
	return ST_FILE_WEIGHTS;
}

static void say_shard(struct shards *shards, struct weights *weights, struct out *out, const char *folder,
                      const char *name)
{
	struct st_ev_file file = {.r.kind = ST_KIND_file};
	char path[PATH_MAX];
	struct stat now;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return;
	if (stat(path, &now) || !S_ISREG(now.st_mode)) {
		out_coverage(out, "%s, which the index names, is no file here", path);
		return;
	}
	file.id = ST_FILE_INDEXED + shards->next_file++;
	file.dev = now.st_dev;
	file.ino = now.st_ino;
	file.size = (uint64_t)now.st_size;
	file.format = format_of(name);
	out_put(out, &file.r, sizeof(file), path, strlen(path));
	weights_promise(weights, &file, path);
}

/* A piece of the shards of the index found last. True: there are more. */
static bool say_shards(struct shards *shards, struct weights *weights, struct out *out)
{
	const struct shards_index *found;
	uint32_t i;

	if (!shards->found_count)
		return false;
	found = &shards->found[shards->found_count - 1];
	for (i = 0; i < PIECE && shards->announced < index_shards(found->index); i++)
		say_shard(shards, weights, out, found->folder,
		          index_shard(found->index, shards->announced++));
	return shards->announced < index_shards(found->index);
}

/* A piece of the index that is being read. */
static void read_index(struct shards *shards, struct out *out)
{
	int rc = index_read(shards->index);

	if (rc > 0)
		return;
	if (rc < 0)
		out_coverage(out, "%s/%s: %s", shards->jobs[0].folder,
		             shards->candidates[shards->candidate - 1],
		             rc == -EINVAL ? index_error(shards->index) : strerror(-rc));
	else if (index_names(shards->index, shards->jobs[0].name))
		keep_index(shards, out);
	close_index(shards);
}

bool shards_work(struct shards *shards, struct weights *weights, struct out *out, bool hurry)
{
	const struct shards_job *job = shards->jobs;
	bool found;

	if (say_shards(shards, weights, out))
		return true;
	if (!shards->count || (!hurry && clock_now() - job->since < DELAY))
		return false;
	found = !shards->index && is_found(shards, job->folder, job->name);
	if (shards->index)
		read_index(shards, out);
	else if (!found && !shards->listed)
		list_candidates(shards, job->folder);
	else if (!found && shards->candidate < shards->candidate_count)
		begin_candidate(shards);
	else
		drop_job(shards);
	return true;
}
