/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards that an index names, with their sizes, or, without one, that the names of others promise: where
 * x-00002-of-00008 was loaded there are seven more. A load that ends between two shards has read all it touched and is
 * not complete all the same.
 */
#include <analyzer/model_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 0: shards of the same checkpoint, by their names. */
static int kin_compare(const void *left, const void *right)
{
	const struct catalog_file *a = *(const struct catalog_file *const *)left;
	const struct catalog_file *b = *(const struct catalog_file *const *)right;

	if (a->shards != b->shards)
		return a->shards < b->shards ? -1 : 1;
	if (a->stem != b->stem)
		return a->stem < b->stem ? -1 : 1;
	return memcmp(a->path, b->path, a->stem);
}

static bool file_touched(const struct build *build, uint32_t index)
{
	return index < build->residency.weight_room && build->residency.weights[index].first_touch;
}

static uint64_t bytes_times(uint64_t count, uint64_t bytes)
{
	return bytes && count > UINT64_MAX / bytes ? UINT64_MAX : count * bytes;
}

/* What was never opened is bounded by its kin; the last shard may be nearly empty. Of ranks each has its part. */
static void family_add(struct build *build, const struct catalog_file *const *family, size_t seen)
{
	uint64_t touched = 0, smallest = UINT64_MAX, largest = 0, waiting = 0, absent;
	struct absent_shards *all = &build->absent;
	uint64_t ranks = build->model->world == MODEL_NONE || !build->model->world ? 1 : build->model->world;

	for (size_t i = 0; i < seen; i++) {
		bool used = file_touched(build, (uint32_t)(family[i] - build->catalog.files));

		touched += used;
		waiting += used ? 0 : family[i]->payload;
		smallest = bytes_min(smallest, family[i]->payload);
		largest = bytes_max(largest, family[i]->payload);
	}
	absent = bytes_sub(family[0]->shards, seen);
	if (!touched)
		return;
	all->count += absent;
	all->bytes.lo = bytes_add(all->bytes.lo, bytes_times(absent ? absent - 1 : 0, smallest) / ranks);
	all->bytes.hi = bytes_add(all->bytes.hi, bytes_times(absent, largest));
	if (ranks == 1)
		all->waiting = bytes_add(all->waiting, bytes_add(waiting, bytes_times(absent, smallest)));
}

/* Shards of an index: those that are there have their sizes, what is not there has what is left of the sum. */
struct indexed {
	uint64_t there, opened, touched; /* files */
	uint64_t payload, waiting;       /* bytes; of the ones that nobody touched */
	uint64_t largest;                /* of the payloads */
};

static void indexed_add(struct build *build, const struct catalog_index *index, const struct indexed *seen)
{
	struct absent_shards *all = &build->absent;
	uint64_t ranks = build->model->world == MODEL_NONE || !build->model->world ? 1 : build->model->world;
	uint64_t gone = bytes_sub(index->shards, seen->there), left = 0;

	if (!seen->touched)
		return;
	all->count += bytes_sub(index->shards, seen->opened);
	if (gone && index->total_size != ST_UNKNOWN)
		left = bytes_sub(index->total_size, seen->payload);
	all->bytes.lo = bytes_add(all->bytes.lo, left / ranks);
	all->bytes.hi = bytes_add(all->bytes.hi,
	                          index->total_size == ST_UNKNOWN ? bytes_times(gone, seen->largest) : left);
	if (ranks == 1)
		all->waiting = bytes_add(all->waiting, bytes_add(seen->waiting, left));
}

static void indexes_add(struct build *build, struct indexed *seen)
{
	for (uint32_t i = 0; i < build->catalog.file_count; i++) {
		const struct catalog_file *file = &build->catalog.files[i];
		struct indexed *of = &seen[file->index];

		of->there++;
		of->opened += file->opened;
		of->touched += file_touched(build, i);
		of->payload += file->payload;
		of->largest = bytes_max(of->largest, file->payload);
		of->waiting += file_touched(build, i) ? 0 : file->payload;
	}
	for (size_t i = 0; i < build->catalog.index_count; i++)
		indexed_add(build, &build->catalog.indexes[i], &seen[i + 1]);
}

/* Files whose names promise others; a family that an index names altogether needs no such guess. */
static int families_add(struct build *build)
{
	const struct catalog *catalog = &build->catalog;
	const struct catalog_file **files = calloc((size_t)catalog->file_count + 1, sizeof(*files));
	size_t count = 0;

	if (!files)
		return -ENOMEM;
	for (uint32_t i = 0; i < catalog->file_count; i++)
		if (catalog->files[i].shards)
			files[count++] = &catalog->files[i];
	qsort(files, count, sizeof(*files), kin_compare);
	for (size_t i = 0, next; i < count; i = next) {
		bool guess = false;

		for (next = i; next < count && !kin_compare(&files[i], &files[next]); next++)
			guess |= !files[next]->index;
		if (guess)
			family_add(build, files + i, next - i);
	}
	free(files);
	return 0;
}

int build_shards(struct build *build)
{
	struct indexed *seen = calloc(build->catalog.index_count + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	indexes_add(build, seen);
	free(seen);
	return families_add(build);
}
