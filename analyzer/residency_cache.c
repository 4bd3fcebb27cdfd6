/* SPDX-License-Identifier: Apache-2.0 */
/* Residency, page cache by cell, and with it the bytes that are both cached and on the device. */
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>

#define CELLS_MAX (UINT64_C(1) << 16) /* 4 TiB; what lies beyond counts to the last cell */
#define CELLS_ALL (UINT64_C(1) << 18) /* 16 TiB; each further file is one cell: sizes cost a trace nothing */

int weight_cells_init(struct residency *residency, struct weight *weight, const struct catalog_file *file)
{
	uint64_t count = bytes_min(file->size / ST_CELL + 1, CELLS_MAX);

	count = residency->cells + count > CELLS_ALL ? 1 : count;
	residency->cells += count;

	weight->cell_cached = malloc(count * sizeof(*weight->cell_cached));
	weight->cell_device = calloc(count, sizeof(*weight->cell_device));
	weight->cell_kept = calloc(count, sizeof(*weight->cell_kept));
	if (!weight->cell_cached || !weight->cell_device || !weight->cell_kept)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		weight->cell_cached[i] = ST_UNKNOWN;
	weight->cell_count = count;
	return 0;
}

static size_t cell_of(const struct weight *weight, uint64_t offset)
{
	return (size_t)bytes_min(offset / ST_CELL, weight->cell_count - 1);
}

static uint64_t cell_length(const struct weight *weight, uint64_t size, size_t cell)
{
	uint64_t begin = cell * ST_CELL;

	return cell + 1 == weight->cell_count ? bytes_sub(size, begin) : ST_CELL;
}

/* The last cell of a very large file is longer than a look: of a part of it nothing follows for the whole. */
static bool is_part(const struct weight *weight, uint64_t size, size_t cell, uint64_t bytes)
{
	uint64_t length = cell_length(weight, size, cell);

	return length > ST_CELL && bytes < length;
}

/* What one cell adds to a file's amounts, or takes from them. */
static void cell_count(struct residency *residency, struct weight *weight, uint64_t size, size_t cell,
                       int sign)
{
	uint64_t length = cell_length(weight, size, cell);
	uint64_t device = bytes_min(weight->cell_device[cell], length); /* a file may have grown since */
	uint64_t cached = bytes_min(weight->cell_cached[cell], length);
	bool known = weight->cell_cached[cell] != ST_UNKNOWN;
	uint64_t lo = known ? bytes_sub(cached + device, length) : 0, hi = bytes_min(cached, device);
	struct kept *kept[] = {&weight->kept, &residency->total};

	for (int i = 0; i < 2; i++) {
		struct amounts *amounts = kept_change(residency, kept[i]);

		amounts->cached += known ? (uint64_t)sign * cached : 0;
		amounts->cache_unknown += known ? 0 : (uint64_t)sign * length;
		amounts->reclaimable_lo += (uint64_t)sign * lo;
		amounts->reclaimable_hi += (uint64_t)sign * hi;
	}
}

/* Wherever bytes of unknown place lie, they cannot all be in the part that is not cached when that is too small. */
void double_update(struct residency *residency, struct weight *weight, uint64_t size)
{
	const struct amounts *now = &weight->kept.now;
	uint64_t device = bytes_min(size, now->device + now->vague);
	uint64_t least = bytes_max(now->reclaimable_lo, bytes_sub(now->cached + device, size));

	if (least == now->double_lo)
		return;
	kept_change(residency, &residency->total)->double_lo += least - now->double_lo;
	kept_change(residency, &weight->kept)->double_lo = least;
}

struct range residency_device(const struct residency *residency)
{
	return amounts_device(&residency->total.now, residency->counted_payload,
	                      residency->total.now.unknown);
}

struct range residency_reclaimable(const struct residency *residency)
{
	const struct amounts *total = &residency->total.now;
	uint64_t cached = bytes_add(total->cached, total->cache_unknown);
	struct range device = residency_device(residency);
	uint64_t nowhere = device.hi - bytes_min(device.hi, total->device);
	uint64_t least = bytes_sub(total->cached + device.lo, residency->counted);
	uint64_t most = bytes_min(cached, bytes_add(total->reclaimable_hi, nowhere));

	return (struct range){bytes_min(most, bytes_max(total->double_lo, least)), most};
}

void cells_count_in(struct residency *residency, struct weight *weight, uint64_t size)
{
	if (weight->counted)
		return;
	weight->counted = true;
	residency->counted += size;
	residency->counted_payload += residency->catalog->files[weight - residency->weights].payload;
	for (size_t i = 0; i < weight->cell_count; i++)
		cell_count(residency, weight, size, i, 1);
}

void cells_device(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi, int sign)
{
	struct weight *weight = weight_get(residency, index);
	uint64_t size = residency->catalog->files[index].size;

	if (!weight)
		return;
	cells_count_in(residency, weight, size);
	while (lo < hi) {
		size_t cell = cell_of(weight, lo);
		uint64_t end = cell + 1 == weight->cell_count ? hi : bytes_min(hi, (cell + 1) * ST_CELL);

		cell_count(residency, weight, size, cell, -1);
		weight->cell_device[cell] += (uint64_t)sign * (end - lo);
		cell_count(residency, weight, size, cell, 1);
		lo = end;
	}
	double_update(residency, weight, size);
}

/* Before a cell changes: it is kept as it was for the points that it has not been kept for. */
static void cell_keep(const struct residency *residency, struct weight *weight, size_t cell)
{
	struct cell_kept *kept = &weight->cell_kept[cell];

	for (int point = 0; point < POINT_COUNT; point++) {
		if (kept->epoch[point] == residency->epoch[point])
			continue;
		kept->cached[point] = weight->cell_cached[cell];
		kept->epoch[point] = residency->epoch[point];
	}
}

static uint64_t cell_at(const struct residency *residency, const struct weight *weight, size_t cell,
                        enum point point)
{
	const struct cell_kept *kept = &weight->cell_kept[cell];

	if (point != POINT_COUNT && residency->epoch[point] && kept->epoch[point] == residency->epoch[point])
		return kept->cached[point];
	return weight->cell_cached[cell];
}

/* Where in a cell its cached pages are is not known: a part of it has at least what does not fit into the rest. */
struct range cells_range(const struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi,
                         enum point point)
{
	const struct weight *weight = index < residency->weight_room ? &residency->weights[index] : NULL;
	uint64_t size = residency->catalog->files[index].size;
	struct range range = {0, 0};

	if (!weight || !weight->cell_count)
		return (struct range){0, bytes_sub(hi, lo)};
	while (lo < hi) {
		size_t cell = cell_of(weight, lo);
		uint64_t end = cell + 1 == weight->cell_count ? hi : bytes_min(hi, (cell + 1) * ST_CELL);
		uint64_t cached = cell_at(residency, weight, cell, point), part = end - lo;
		uint64_t length = cell_length(weight, size, cell);

		if (cached != ST_UNKNOWN)
			range.lo += bytes_min(part, bytes_sub(cached, bytes_sub(length, part)));
		range.hi += cached == ST_UNKNOWN ? part : bytes_min(part, cached);
		lo = end;
	}
	return range;
}

/* A record may span cells when it was written by hand: its bytes then fill them from the first on. */
void cells_record(struct residency *residency, const struct st_ev_cached *record)
{
	uint32_t index = catalog_weight(residency->catalog, record->file);
	struct weight *weight = index == CATALOG_NONE ? NULL : weight_get(residency, index);
	uint64_t size, lo = record->offset, hi, left = record->cached;

	if (!weight)
		return;
	size = residency->catalog->files[index].size;
	hi = record->size ? bytes_min(bytes_add(lo, record->size), size) : size;
	cells_count_in(residency, weight, size);
	weight->cache_seen = true;
	if (record->result)
		weight->cache_error = (int)record->result;
	while (lo < hi) {
		size_t cell = cell_of(weight, lo);
		uint64_t end = cell + 1 == weight->cell_count ? hi : bytes_min(hi, (cell + 1) * ST_CELL);
		uint64_t here = bytes_min(left, end - lo);
		bool known = record->cached != ST_UNKNOWN && !record->result &&
		             !is_part(weight, size, cell, end - lo);

		cell_count(residency, weight, size, cell, -1);
		cell_keep(residency, weight, cell);
		weight->cell_cached[cell] = known ? here : ST_UNKNOWN;
		cell_count(residency, weight, size, cell, 1);
		left -= record->cached == ST_UNKNOWN ? 0 : here;
		lo = end;
	}
	double_update(residency, weight, size);
}
