/* SPDX-License-Identifier: Apache-2.0 */
/* Residency, one weight file: amounts of the file and its tensors, and which of its bytes are on the device. */
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>

static int class_compare(const void *left, const void *right)
{
	uint64_t a = ((const struct size_class *)left)->size, b = ((const struct size_class *)right)->size;

	return a < b ? -1 : a > b;
}

/* The distinct sizes of a file's tensors, and how many tensors have each. */
static int classes_init(struct weight *weight, const struct catalog *catalog, const struct catalog_file *file)
{
	struct size_class *classes;
	uint32_t count = 0;

	if (!file->tensor_count)
		return 0;
	classes = calloc(file->tensor_count + 1, sizeof(*classes));
	if (!classes)
		return -ENOMEM;
	for (size_t i = 0; i < file->tensor_count; i++)
		classes[i] = (struct size_class){catalog->tensors[file->tensor_first + i].size, 1, 0, false};
	qsort(classes, file->tensor_count, sizeof(*classes), class_compare);
	for (size_t i = 0; i < file->tensor_count; i++) {
		if (count && classes[count - 1].size == classes[i].size)
			classes[count - 1].tensors++;
		else
			classes[count++] = classes[i];
	}
	/* Some loaders bring all tensors of a file in one piece. */
	if (file->tensor_count > 1 && classes[count - 1].size < file->payload)
		classes[count++] = (struct size_class){file->payload, 1, 0, false};
	weight->classes = classes;
	weight->class_count = count;
	return 0;
}

/* The catalog may still grow (a trace replayed as it comes), so weights are made when first used. */
struct weight *weight_get(struct residency *residency, uint32_t index)
{
	const struct catalog *catalog = residency->catalog;
	int error;

	if (index >= residency->weight_room) {
		uint32_t room = catalog->file_room;
		struct weight *weights = realloc(residency->weights, room * sizeof(*weights));

		if (!weights) {
			residency_note(residency, -ENOMEM);
			return NULL;
		}
		for (uint32_t i = residency->weight_room; i < room; i++)
			weights[i] = (struct weight){0};
		residency->weights = weights;
		residency->weight_room = room;
	}
	if (residency->weights[index].cell_count)
		return &residency->weights[index];
	error = weight_cells_init(residency, &residency->weights[index], &catalog->files[index]);
	if (!error)
		error = classes_init(&residency->weights[index], catalog, &catalog->files[index]);
	residency_note(residency, error);
	return error ? NULL : &residency->weights[index];
}

void weight_release(struct weight *weight)
{
	livemap_release(&weight->device);
	livemap_release(&weight->loaded);
	livemap_release(&weight->read);
	free(weight->cell_cached);
	free(weight->cell_device);
	free(weight->cell_kept);
	free(weight->groups);
	free(weight->classes);
}

void weight_touch(struct residency *residency, uint32_t index, uint64_t offset, uint64_t time)
{
	struct weight *weight = weight_get(residency, index);

	if (!weight)
		return;
	cells_count_in(residency, weight, residency->catalog->files[index].size);
	if (!weight->first_touch)
		weight->first_touch = time;
	weight->last_touch = time;
	held_touched(residency, index, time);
	residency->last_file = index;
	residency->last_tensor = catalog_tensor_of(residency->catalog, index, offset);
}

static uint64_t *amount_of(struct amounts *amounts, enum amount amount)
{
	switch (amount) {
	case AMOUNT_DEVICE:
		return &amounts->device;
	case AMOUNT_ANON:
		return &amounts->anon;
	case AMOUNT_ANON_POSSIBLE:
		return &amounts->anon_possible;
	case AMOUNT_STAGING:
		break;
	}
	return &amounts->staging;
}

static void kept_move(struct residency *residency, struct kept *kept, enum amount amount, uint64_t bytes,
                      int sign)
{
	uint64_t *value = amount_of(kept_change(residency, kept), amount);

	*value = sign > 0 ? *value + bytes : bytes_sub(*value, bytes);
}

void amount_move(struct residency *residency, uint32_t index, enum amount amount, uint64_t lo, uint64_t hi,
                 int sign)
{
	const struct catalog_file *file = &residency->catalog->files[index];
	struct weight *weight = weight_get(residency, index);

	if (!weight || lo >= hi)
		return;
	kept_move(residency, &residency->total, amount, hi - lo, sign);
	kept_move(residency, &weight->kept, amount, hi - lo, sign);
	if (!residency->tensors || !file->tensor_count)
		return;
	for (size_t i = catalog_tensor_at(residency->catalog, index, lo);
	     i < file->tensor_first + file->tensor_count; i++) {
		const struct catalog_tensor *tensor = &residency->catalog->tensors[i];
		uint64_t from = bytes_max(lo, tensor->offset),
			 to = bytes_min(hi, tensor->offset + tensor->size);

		if (tensor->offset >= hi)
			break;
		if (from < to)
			kept_move(residency, &residency->tensors[i], amount, to - from, sign);
	}
}

struct size_class *weight_class(const struct weight *weight, uint64_t size)
{
	struct size_class key = {.size = size};

	if (!weight->class_count)
		return NULL;
	return bsearch(&key, weight->classes, weight->class_count, sizeof(key), class_compare);
}

/* These file bytes came to the device, or the last copy of them left it. */
static void weight_distinct(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi, int sign)
{
	amount_move(residency, index, AMOUNT_DEVICE, lo, hi, sign);
	cells_device(residency, index, lo, hi, sign);
}

/* Replaces the count of a stretch that has the same count throughout. */
static void stretch_count(struct residency *residency, uint32_t index, const struct span *stretch,
                          uint64_t count)
{
	struct livemap *map = &residency->weights[index].device;
	struct span span = {stretch->lo, stretch->hi, count, 0};

	if (stretch->a)
		residency_note(residency, livemap_cut(map, span.lo, span.hi, NULL, NULL));
	if (count)
		residency_note(residency, livemap_insert(map, &span));
	if (!stretch->a != !count)
		weight_distinct(residency, index, span.lo, span.hi, count ? 1 : -1);
}

/* The next stretch of [lo, hi): of bytes without a copy (a == 0) or with equally many. */
static struct span stretch_next(const struct livemap *map, uint64_t lo, uint64_t hi)
{
	struct span span;

	if (!livemap_next(map, lo, &span) || span.lo >= hi)
		return (struct span){lo, hi, 0, 0};
	if (span.lo > lo)
		return (struct span){lo, span.lo, 0, 0};
	return (struct span){lo, bytes_min(span.hi, hi), span.a, 0};
}

void weight_device_add(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi)
{
	struct weight *weight = weight_get(residency, index);

	while (weight && lo < hi && !residency->replay.error) {
		struct span stretch = stretch_next(&weight->device, lo, hi);

		stretch_count(residency, index, &stretch, stretch.a + 1);
		lo = stretch.hi;
	}
}

void weight_device_remove(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi)
{
	struct weight *weight = weight_get(residency, index);

	while (weight && lo < hi && !residency->replay.error) {
		struct span stretch = stretch_next(&weight->device, lo, hi);

		if (stretch.a)
			stretch_count(residency, index, &stretch, stretch.a - 1);
		lo = stretch.hi;
	}
}

void ranges_add(struct residency *residency, struct livemap *map, uint64_t lo, uint64_t hi)
{
	while (lo < hi && !residency->replay.error) {
		struct span stretch = stretch_next(map, lo, hi), span = {stretch.lo, stretch.hi, 1, 0};

		if (!stretch.a)
			residency_note(residency, livemap_insert(map, &span));
		lo = stretch.hi;
	}
}
