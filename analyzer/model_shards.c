/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards that the names of others promise: where x-00002-of-00008 was loaded there are seven more. A load that
 * ends between two shards has read all it touched and is not complete all the same.
 */
#include <analyzer/model_parts.h>
#include <string.h>

static bool files_are_kin(const struct catalog_file *a, const struct catalog_file *b)
{
	return a->shards == b->shards && a->stem == b->stem && !memcmp(a->path, b->path, a->stem);
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
static void family_add(struct build *build, uint32_t first)
{
	const struct catalog_file *files = build->catalog.files, *head = &files[first];
	uint64_t seen = 0, touched = 0, smallest = UINT64_MAX, largest = 0, waiting = 0, absent;
	struct absent_shards *all = &build->absent;
	uint64_t ranks = build->model->world == MODEL_NONE || !build->model->world ? 1 : build->model->world;

	for (uint32_t i = first; i < build->catalog.file_count; i++) {
		if (!files_are_kin(&files[i], head))
			continue;
		seen++;
		touched += file_touched(build, i);
		waiting += file_touched(build, i) ? 0 : files[i].payload;
		smallest = bytes_min(smallest, files[i].payload);
		largest = bytes_max(largest, files[i].payload);
	}
	absent = bytes_sub(head->shards, seen);
	if (!touched)
		return;
	all->count += absent;
	all->bytes.lo = bytes_add(all->bytes.lo, bytes_times(absent ? absent - 1 : 0, smallest) / ranks);
	all->bytes.hi = bytes_add(all->bytes.hi, bytes_times(absent, largest));
	if (ranks == 1)
		all->waiting = bytes_add(all->waiting, bytes_add(waiting, bytes_times(absent, smallest)));
}

void build_shards(struct build *build)
{
	const struct catalog_file *files = build->catalog.files;

	for (uint32_t i = 0; i < build->catalog.file_count; i++) {
		uint32_t earlier = 0;

		if (!files[i].shards)
			continue;
		while (earlier < i && !files_are_kin(&files[earlier], &files[i]))
			earlier++;
		if (earlier == i)
			family_add(build, i);
	}
}
