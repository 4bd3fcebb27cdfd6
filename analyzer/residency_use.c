/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency, who used what of a weight file in which order: tensors as reads and copies come to them, the threads, and
 * the advice that the program gave. Only the measuring pass asks.
 */
#include <analyzer/residency_parts.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EDGE (UINT64_C(64) << 10)

static bool uses_ready(struct residency *residency)
{
	const struct catalog *catalog = residency->catalog;

	if (residency->survey || !residency->tensors)
		return false;
	if (!residency->uses) {
		residency->uses = calloc(catalog->tensor_count, sizeof(*residency->uses));
		residency_note(residency, residency->uses ? 0 : -ENOMEM);
	}
	return residency->uses != NULL;
}

/* Threads beyond those kept are counted, each time. */
void use_thread(struct residency *residency, uint32_t index, uint32_t thread)
{
	struct weight *weight = weight_get(residency, index);

	if (!weight || residency->survey)
		return;
	for (uint32_t i = 0; i < weight->thread_count; i++)
		if (weight->threads[i] == thread)
			return;
	if (weight->thread_count < MODEL_THREADS)
		weight->threads[weight->thread_count++] = thread;
	else
		weight->threads_more = true;
}

/* Reading the table of a file, in buffers, brings along the edges of tensors: that alone is no touch. */
static void tensor_touch(struct residency *residency, size_t index, const struct st_record *record)
{
	const struct catalog_tensor *tensor = &residency->catalog->tensors[index];
	struct tensor_use *use = &residency->uses[index];
	struct weight *weight = &residency->weights[tensor->file];

	if (!use->copied && use->read < bytes_min(tensor->size / 2, EDGE))
		return;
	use->last = record->time;
	if (use->order)
		return;
	use->first = record->time;
	use->thread = record->thread;
	use->order = ++weight->tensors_used;
}

/* The record moved the bytes [lo, hi) of a file; `copied`: to the device. */
void use_range(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi,
               const struct st_record *record, bool copied)
{
	const struct catalog *catalog = residency->catalog;
	const struct catalog_file *file = &catalog->files[index];
	size_t end = file->tensor_first + file->tensor_count;

	use_thread(residency, index, record->thread);
	if (!file->tensor_count || !uses_ready(residency) || !weight_get(residency, index))
		return;
	for (size_t i = catalog_tensor_at(catalog, index, lo); i < end && catalog->tensors[i].offset < hi;
	     i++) {
		const struct catalog_tensor *tensor = &catalog->tensors[i];
		uint64_t from = bytes_max(lo, tensor->offset),
			 to = bytes_min(hi, tensor->offset + tensor->size);

		if (from >= to)
			continue;
		if (copied)
			residency->uses[i].copied += to - from;
		else
			residency->uses[i].read += to - from;
		tensor_touch(residency, i, record);
	}
}

/* --- advice ---------------------------------------------------------------------------------- */

static void advice_add(struct residency *residency, uint32_t index, bool mapping, uint64_t advice,
                       uint64_t bytes)
{
	struct weight *weight = weight_get(residency, index);
	struct file_advice given = {mapping, (uint32_t)advice, 0, 0};
	uint32_t i = 0;

	if (!weight || residency->survey)
		return;
	while (i < weight->advice_count &&
	       (weight->advices[i].mapping != mapping || weight->advices[i].advice != given.advice))
		i++;
	if (i == MODEL_ADVICES)
		return;
	if (i == weight->advice_count)
		weight->advices[weight->advice_count++] = given;
	weight->advices[i].count++;
	weight->advices[i].bytes = bytes_add(weight->advices[i].bytes, bytes);
}

/* madvise() over any number of mappings: each weight file hears of its part. */
void use_advise(struct residency *residency, const struct st_ev_advise *record)
{
	uint64_t lo = record->addr, hi = bytes_add(lo, record->size);
	struct span map;

	while (lo < hi && livemap_next(&residency->replay.maps, lo, &map) && map.lo < hi) {
		const struct mapping *mapping = replay_mapping(&residency->replay, &map);

		if (mapping)
			advice_add(residency, mapping->weight, true, record->advice,
			           bytes_min(hi, map.hi) - bytes_max(lo, map.lo));
		lo = map.hi;
	}
}

void use_fadvise(struct residency *residency, const struct st_ev_fadvise *record)
{
	uint32_t index = catalog_weight(residency->catalog, record->file);
	uint64_t left;

	if (index == CATALOG_NONE)
		return;
	left = bytes_sub(residency->catalog->files[index].size, record->offset);
	advice_add(residency, index, false, record->advice,
	           record->size ? bytes_min(record->size, left) : left);
}
