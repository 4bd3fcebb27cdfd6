/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency, weights of which not even the file is known: several files are mapped, each has a tensor of the size
 * that was copied out of a buffer that the program filled itself. The sum over the files is exact then, and what
 * the others cannot hold must be of this one.
 */
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>

static struct shared_size *shared_find(const struct residency *residency, uint64_t size)
{
	for (size_t i = 0; i < residency->shared_count; i++)
		if (residency->shared[i].size == size)
			return &residency->shared[i];
	return NULL;
}

static struct shared_size *shared_get(struct residency *residency, uint64_t size)
{
	struct shared_size *shared = shared_find(residency, size);
	size_t count = residency->shared_count;

	if (shared)
		return shared;
	shared = realloc(residency->shared, (count + 1) * sizeof(*shared));
	if (!shared) {
		residency_note(residency, -ENOMEM);
		return NULL;
	}
	residency->shared = shared;
	residency->shared_count++;
	shared[count] = (struct shared_size){.size = size};
	return &shared[count];
}

/* Files that a copy of so many bytes may be of, and the tensors that copies can still stand for. */
struct candidates {
	uint32_t count, only;
	uint64_t room;
};

/* May it be on its way, with a tensor of the class that nothing has accounted for? */
static bool class_is_open(const struct residency *residency, uint32_t file, const struct size_class *class)
{
	const struct weight *weight = &residency->weights[file];
	uint64_t copied = weight->copied_bytes - weight->copied_before;

	return weight_may_come(weight) && class->used < class->tensors &&
	       copied + class->size <= residency->catalog->files[file].payload;
}

static uint32_t weight_count(const struct residency *residency)
{
	uint32_t count = residency->catalog->file_count;

	return count < residency->weight_room ? count : residency->weight_room;
}

static struct candidates candidates_of(const struct residency *residency, uint64_t size)
{
	struct candidates candidates = {0, CATALOG_NONE, 0};
	const struct shared_size *shared = shared_find(residency, size);

	for (uint32_t i = 0; i < weight_count(residency); i++) {
		const struct size_class *class = weight_class(&residency->weights[i], size);
		bool open = class && class_is_open(residency, i, class);

		if (open || (class && class->shared))
			candidates.room += class->tensors - class->used;
		if (open)
			candidates.only = candidates.count++ ? CATALOG_NONE : i;
	}
	if (shared && candidates.room <= shared->copies)
		return (struct candidates){0, CATALOG_NONE, 0};
	return candidates;
}

static void candidates_share(struct residency *residency, struct shared_size *shared)
{
	for (uint32_t i = 0; i < weight_count(residency); i++) {
		struct size_class *class = weight_class(&residency->weights[i], shared->size);

		if (!class || class->shared || !class_is_open(residency, i, class))
			continue;
		class->shared = true;
		shared->tensors += class->tensors;
	}
	shared->copies++;
	if (shared->copies > shared->most)
		shared->most = shared->copies;
}

enum guess weight_guess(struct residency *residency, uint64_t size, uint32_t *ret_file)
{
	struct candidates candidates = candidates_of(residency, size);
	struct shared_size *shared;

	if (!candidates.count)
		return GUESS_NONE;
	if (candidates.count == 1) {
		weight_class(&residency->weights[candidates.only], size)->used++;
		*ret_file = candidates.only;
		return GUESS_FILE;
	}
	shared = shared_get(residency, size);
	if (!shared)
		return GUESS_NONE;
	candidates_share(residency, shared);
	return GUESS_SHARED;
}

/* A file that is mapped anew may be loaded anew; so may those that it shares sizes with, once all were loaded. */
void weight_forget(struct residency *residency, struct weight *weight)
{
	weight->copied_before = weight->copied_bytes;
	for (uint32_t i = 0; i < weight->class_count; i++) {
		struct size_class *class = &weight->classes[i];
		struct shared_size *shared = class->shared ? shared_find(residency, class->size) : NULL;

		if (shared && !candidates_of(residency, class->size).room)
			shared->copies = 0;
		class->used = 0;
	}
}

void shared_live(struct residency *residency, uint64_t size, uint64_t bytes)
{
	struct shared_size *shared = shared_find(residency, size);

	if (!shared)
		return;
	kept_change(residency, &shared->kept)->device += bytes;
	kept_change(residency, &residency->total)->shared += bytes;
}

/* Of `bytes` in tensors of one size, those that this file has for sure, and may have. */
static struct range share_of(const struct size_class *class, const struct shared_size *shared, uint64_t bytes)
{
	uint64_t own = class->tensors * class->size, all = shared->tensors * class->size;

	return (struct range){bytes_sub(bytes, all - own), bytes_min(bytes, own)};
}

static uint64_t live_at(const struct residency *residency, const struct shared_size *shared, enum point point)
{
	return point == POINT_COUNT ? shared->kept.now.device
	                            : kept_at(residency, &shared->kept, point)->device;
}

uint64_t shared_device_of(const struct residency *residency, uint64_t size, enum point point)
{
	const struct shared_size *shared = shared_find(residency, size);

	return shared ? live_at(residency, shared, point) : 0;
}

static struct range shares_sum(const struct residency *residency, const struct weight *weight, bool ever,
                               enum point point)
{
	struct range sum = range_of(0);

	for (size_t i = 0; i < residency->shared_count; i++) {
		const struct shared_size *shared = &residency->shared[i];
		const struct size_class *class = weight_class(weight, shared->size);
		uint64_t bytes = ever ? shared->most * shared->size : live_at(residency, shared, point);

		if (class && class->shared)
			sum = range_add(sum, share_of(class, shared, bytes));
	}
	return sum;
}

struct range shared_loaded(const struct residency *residency, const struct weight *weight)
{
	return shares_sum(residency, weight, true, POINT_COUNT);
}

struct range shared_device(const struct residency *residency, const struct weight *weight, enum point point)
{
	return shares_sum(residency, weight, false, point);
}

uint64_t shared_loaded_all(const struct residency *residency)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < residency->shared_count; i++)
		bytes += residency->shared[i].most * residency->shared[i].size;
	return bytes;
}
