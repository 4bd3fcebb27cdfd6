/* SPDX-License-Identifier: Apache-2.0 */
/* Residency: copies out of memory that the program filled itself, where no size or place tells of which file. */
#include <analyzer/residency_parts.h>

enum copy_source source_of(const struct residency *residency, uint64_t address)
{
	struct span span;

	if (livemap_find(&residency->replay.registered, address, &span))
		return COPY_REGISTERED;
	switch (replay_region(&residency->replay, address, &span)) {
	case REGION_PINNED:
		return COPY_PINNED;
	case REGION_HOST:
		return COPY_HOST;
	case REGION_NONE:
	case REGION_DEVICE:
	case REGION_MAPPING:
		break;
	}
	return COPY_OTHER;
}

/* Bytes of a file that copies of unknown content may have been, or may be yet. */
static uint64_t unknown_room(const struct residency *residency, uint32_t file)
{
	const struct weight *weight = &residency->weights[file];
	uint64_t left = bytes_sub(residency->catalog->files[file].payload,
	                          weight->loaded.bytes + weight->loaded_vague);

	return weight_may_come(weight) ? left : bytes_min(left, weight->unknown);
}

/* Opened, and neither mapped nor read but for its header: if it is loaded at all, nobody sees how. */
static bool unseen(const struct residency *residency, uint32_t file)
{
	const struct weight *weight = &residency->weights[file];

	return weight->opened && !weight->mapped_peak &&
	       weight->read_bytes < residency->catalog->files[file].payload / 16;
}

bool unknown_may_be_weights(struct residency *residency, uint64_t bytes)
{
	uint32_t count = residency->weight_room;
	uint64_t room = 0, taken = residency->unknown_copied + shared_loaded_all(residency);
	bool any = false;

	count = count < residency->catalog->file_count ? count : residency->catalog->file_count;
	for (uint32_t i = 0; i < count; i++)
		room = bytes_add(room, unknown_room(residency, i));
	for (uint32_t i = 0; i < count && room > taken; i++) {
		struct weight *weight = &residency->weights[i];
		uint64_t left = unknown_room(residency, i);

		if (!weight_may_come(weight) || !left)
			continue;
		weight->unknown = bytes_min(left, bytes_add(weight->unknown, bytes));
		any = true;
		/* Where tensors are known, a mapping alone does not make batches of other sizes weights. */
		if (!weight->class_count || weight->floating || unseen(residency, i))
			residency->signs |= SIGN_BYTES | SIGN_DEVICE;
	}
	if (any)
		residency->unknown_copied += bytes;
	return any;
}

static bool converted_before(const struct residency *residency, uint32_t stack)
{
	for (unsigned i = 0; stack && i < CONVERTED_ROOM; i++)
		if (residency->converted_by[i] == stack)
			return true;
	return false;
}

/* Small blocks are not recorded: what is copied by the very lines that copied converted weights is the same. */
bool source_converts(struct residency *residency, uint64_t src, uint32_t copied_by)
{
	struct span span;
	enum region region = replay_region(&residency->replay, src, &span);

	if (region == REGION_NONE)
		return converted_before(residency, copied_by);
	if (!residency->converts || region != REGION_HOST ||
	    !residency->converts(residency->converts_context, (uint32_t)span.a))
		return false;
	if (!converted_before(residency, copied_by))
		residency->converted_by[residency->converted_count++ % CONVERTED_ROOM] = copied_by;
	return true;
}
