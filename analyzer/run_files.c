/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weight files of a run at its demand peak. The same file of several processes is one: its page cache is one,
 * whoever looked at it last; device bytes and anonymous copies are each process' own.
 */
#include <analyzer/run_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct seen {
	uint64_t looked; /* when its page cache was looked at */
	struct range cached;
};

static bool is_same(const struct run_file *file, const struct catalog_file *other)
{
	if (file->dev || file->ino || other->dev || other->ino)
		return file->dev == other->dev && file->ino == other->ino;
	return file->size == other->size && file->path && other->path && !strcmp(file->path, other->path);
}

static size_t find_file(struct run_total *total, const struct catalog_file *file, const char *path)
{
	size_t i = 0;

	while (i < total->file_count && !is_same(&total->files[i], file))
		i++;
	if (i == total->file_count)
		total->files[total->file_count++] = (struct run_file){.path = path,
		                                                      .dev = file->dev,
		                                                      .ino = file->ino,
		                                                      .size = file->size,
		                                                      .cached = {0, file->size}};
	return i;
}

/* What one process says of one file. */
static void file_add(struct run_file *file, struct seen *seen, const struct party *party, uint32_t index)
{
	const struct weight_file *own = &party->build->model->files[index];
	struct residency_at at = file_at(party->build, index, POINT_RUN_PEAK);

	file->processes++;
	file->copied = bytes_add(file->copied, own->copied_bytes);
	file->mapped = bytes_add(file->mapped, own->mapped);
	if (party->looked_then[index] > seen->looked) {
		seen->looked = party->looked_then[index];
		file->cached = at.cached;
	}
	if (!party->part->there)
		return;
	file->on_device = range_add(file->on_device, at.on_device);
	file->anon = range_add(file->anon, at.anon);
	file->staging += at.staging;
}

/* The page cache of the pool and of all these files, in the layers of the peak. */
static void cache_fill(const struct run_total *total, struct layers *layers)
{
	struct range cached = range_of(0), all;

	for (size_t i = 0; i < total->file_count; i++)
		cached = range_add(cached, total->files[i].cached);
	if (range_is_open(layers->stale_cache)) {
		layers->weight_cache = cached;
		return;
	}
	/* The two layers were made of one known sum: lo of one and hi of the other. */
	all = range_of(bytes_add(layers->weight_cache.lo, layers->stale_cache.hi));
	cached.hi = bytes_max(cached.lo, bytes_min(cached.hi, all.hi));
	layers->weight_cache = cached;
	layers->stale_cache = range_sub(all, cached);
}

int joint_files(const struct joint *joint, struct run_total *total)
{
	size_t count = 0;
	struct seen *seen;

	for (size_t i = 0; i < joint->count; i++)
		count += joint->parties[i].build->model->file_count;
	total->files = calloc(count + 1, sizeof(*total->files));
	seen = calloc(count + 1, sizeof(*seen));
	if (!total->files || !seen) {
		free(seen);
		return -ENOMEM;
	}
	for (size_t i = 0; i < joint->count; i++) {
		const struct build *build = joint->parties[i].build;

		for (uint32_t k = 0; k < build->model->file_count && k < build->residency.weight_room; k++) {
			const struct weight_file *own = &build->model->files[k];
			size_t at;

			if (!own->first_touch)
				continue;
			at = find_file(total, &build->catalog.files[k], own->path);
			file_add(&total->files[at], &seen[at], &joint->parties[i], k);
		}
	}
	free(seen);
	cache_fill(total, &joint->model->moments[MOMENT_DEMAND_PEAK].layers);
	return 0;
}
