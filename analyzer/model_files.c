/* SPDX-License-Identifier: Apache-2.0 */
/* After the passes: weight files, tensors and holders of device memory, as the report wants them. */
#include <analyzer/model_parts.h>
#include <analyzer/names.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#define HOLDERS_MAX 64

/* Of all files; POINT_COUNT: now. */
static uint64_t unknown_at(const struct build *build, enum point point)
{
	const struct residency *residency = &build->residency;

	return point == POINT_COUNT ? residency->total.now.unknown
	                            : kept_at(residency, &residency->total, point)->unknown;
}

/* `more`: D that is not in the amounts of the file itself. */
static struct residency_at file_amounts(const struct weight *weight, const struct amounts *amounts,
                                        const struct catalog_file *file, struct range more)
{
	struct residency_at at = {
		.on_device = {amounts_device(amounts, file->payload, more.lo).hi,
	                      amounts_device(amounts, file->payload, more.hi).hi},
		.anon = {amounts->anon, bytes_add(amounts->anon, amounts->anon_possible)},
		.staging = amounts->staging,
		.cached = {amounts->cached, bytes_add(amounts->cached, amounts->cache_unknown)},
	};
	uint64_t nowhere = at.on_device.hi - bytes_min(at.on_device.hi, amounts->device);

	if (!weight->counted)
		at.cached = (struct range){0, file->size};
	at.reclaimable.hi = bytes_min(at.cached.hi, bytes_add(amounts->reclaimable_hi, nowhere));
	at.reclaimable.lo =
		bytes_max(amounts->reclaimable_lo, bytes_sub(amounts->cached + at.on_device.lo, file->size));
	at.reclaimable.lo = bytes_min(at.reclaimable.lo, at.reclaimable.hi);
	return at;
}

struct residency_at file_at(const struct build *build, uint32_t index, enum point point)
{
	const struct residency *residency = &build->residency;
	const struct weight *weight = &residency->weights[index];
	struct range more = shared_device(residency, weight, point);

	more.hi += bytes_min(unknown_at(build, point), weight->unknown);
	return file_amounts(
		weight, point == POINT_COUNT ? &weight->kept.now : kept_at(residency, &weight->kept, point),
		&build->catalog.files[index], more);
}

static int file_mappings(struct weight_file *file, const struct weight *weight)
{
	file->mappings = calloc(weight->group_count ? weight->group_count : 1, sizeof(*file->mappings));
	if (!file->mappings)
		return -ENOMEM;
	file->mapping_count = weight->group_count;
	for (uint32_t i = 0; i < weight->group_count; i++) {
		const struct map_group *group = &weight->groups[i];

		file->mappings[i] =
			(struct file_mapping){group->prot,  group->flags,  group->stack, group->count,
		                              group->bytes, group->copied, group->kept};
	}
	return 0;
}

/* The share of a rank is not known from one process: all of the file, or its part of it. */
static struct range would_load(const struct model *model, uint64_t payload)
{
	if (model->world == MODEL_NONE || model->world < 2)
		return range_of(payload);
	return (struct range){payload / model->world, payload};
}

uint64_t file_loaded(const struct build *build, uint32_t index)
{
	const struct weight *weight = &build->residency.weights[index];
	uint64_t copied = weight->loaded.bytes + weight->loaded_vague;

	return bytes_min(build->catalog.files[index].payload,
	                 build->phases.to_device ? copied : bytes_max(copied, weight->read.bytes));
}

static struct range loaded_range(const struct build *build, uint32_t index)
{
	const struct weight *weight = &build->residency.weights[index];
	uint64_t payload = build->catalog.files[index].payload, known = file_loaded(build, index);
	struct range shared = shared_loaded(&build->residency, weight);

	return (struct range){bytes_min(payload, known + shared.lo),
	                      bytes_min(payload, known + shared.hi + weight->unknown)};
}

static int file_fill(struct build *build, uint32_t index)
{
	struct weight_file *file = &build->model->files[index];
	struct catalog_file *named = &build->catalog.files[index];
	const struct weight *weight;

	*file = (struct weight_file){.path = named->path,
	                             .format = named->format,
	                             .id = named->id,
	                             .size = named->size,
	                             .payload = named->payload,
	                             .exact = true,
	                             .loader = MODEL_NONE,
	                             .would_load = would_load(build->model, named->payload),
	                             .shard = named->shard,
	                             .shards = named->shards,
	                             .opened = named->opened,
	                             .index = named->index ? named->index - 1 : MODEL_NONE};
	named->path = NULL;
	if (index >= build->residency.weight_room)
		return 0;
	weight = &build->residency.weights[index];
	file->loaded = loaded_range(build, index);
	file->mapped = weight->mapped_peak;
	file->read_bytes = weight->read_bytes;
	file->copied_bytes = weight->copied_bytes;
	file->exact =
		!weight->loaded_vague && !weight->unknown && !shared_loaded(&build->residency, weight).hi;
	file->cache_error = weight->cache_error;
	file->cache_seen = weight->cache_seen;
	file->at_peak = file_at(build, index, POINT_LOAD_PEAK);
	file->at_settled = file_at(build, index, POINT_SETTLED);
	file->at_end = file_at(build, index, POINT_COUNT);
	file->anon_peak = weight->anon_peak;
	file->first_touch = weight->first_touch;
	file->last_touch = weight->last_touch;
	file->open_stack = weight->open_stack;
	file->open_flags = weight->open_flags;
	return file_mappings(file, weight);
}

static struct range tensor_on_device(const struct build *build, size_t index, enum point point)
{
	const struct residency *residency = &build->residency;
	const struct catalog_tensor *tensor = &build->catalog.tensors[index];
	uint64_t unknown = 0;

	if (tensor->file < residency->weight_room) {
		const struct weight *weight = &residency->weights[tensor->file];

		unknown = kept_at(residency, &weight->kept, point)->vague;
		unknown += bytes_min(weight->unknown, unknown_at(build, point));
		unknown += shared_device_of(residency, tensor->size, point);
	}
	return amounts_device(kept_at(residency, &residency->tensors[index], point), tensor->size, unknown);
}

static struct residency_at tensor_at(const struct build *build, size_t index, enum point point)
{
	const struct residency *residency = &build->residency;
	const struct catalog_tensor *tensor = &build->catalog.tensors[index];
	const struct amounts *amounts = kept_at(residency, &residency->tensors[index], point);
	struct range device = tensor_on_device(build, index, point);
	struct range cached =
		cells_range(residency, tensor->file, tensor->offset, tensor->offset + tensor->size, point);

	return (struct residency_at){
		.on_device = device,
		.anon = {amounts->anon, bytes_add(amounts->anon, amounts->anon_possible)},
		.staging = amounts->staging,
		.cached = cached,
		.reclaimable = {0, bytes_min(device.hi, cached.hi)},
	};
}

/* What a file has on the device for sure is somewhere: a tensor has what the rest of the file cannot hold. */
static void tensor_bound(struct residency_at *at, const struct residency_at *file, uint64_t payload,
                         uint64_t size)
{
	uint64_t least = bytes_sub(size, bytes_sub(payload, file->on_device.lo));

	at->on_device.lo = bytes_min(at->on_device.hi, bytes_max(at->on_device.lo, least));
}

struct range tensor_device(const struct build *build, size_t index, enum point point)
{
	const struct catalog_tensor *tensor = &build->catalog.tensors[index];
	struct residency_at at = {.on_device = tensor_on_device(build, index, point)};
	struct residency_at file = {.on_device = RANGE_UNKNOWN};

	if (tensor->file < build->residency.weight_room)
		file = file_at(build, tensor->file, point);
	tensor_bound(&at, &file, build->catalog.files[tensor->file].payload, tensor->size);
	return at.on_device;
}

static void tensor_fill(struct build *build, size_t index)
{
	struct catalog_tensor *named = &build->catalog.tensors[index];
	const struct weight_file *file = &build->model->files[named->file];
	struct tensor *tensor = &build->model->tensors[index];

	*tensor = (struct tensor){
		.name = named->name,
		.file = named->file,
		.dtype = named->dtype,
		.offset = named->offset,
		.size = named->size,
		.elements = named->elements,
		.at_peak = tensor_at(build, index, POINT_LOAD_PEAK),
		.at_settled = tensor_at(build, index, POINT_SETTLED),
	};
	tensor_bound(&tensor->at_peak, &file->at_peak, file->payload, tensor->size);
	tensor_bound(&tensor->at_settled, &file->at_settled, file->payload, tensor->size);
	named->name = NULL;
}

static int holder_compare(const void *left, const void *right)
{
	const struct holder *a = left, *b = right;

	if (a->at_peak != b->at_peak)
		return a->at_peak < b->at_peak ? 1 : -1;
	if (a->at_load_peak != b->at_load_peak)
		return a->at_load_peak < b->at_load_peak ? 1 : -1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static bool stack_is_optimizer(const struct names *names, uint32_t stack)
{
	for (size_t i = 0; i < names_depth(names, stack); i++) {
		const char *function = names_frame(names, stack, i).function;

		if (function && (strcasestr(function, "optim") || strcasestr(function, "adam")))
			return true;
	}
	return false;
}

/* Optimizer states, where stacks tell; nothing is known where none does. */
static void optimizer_note(struct model *model, const struct holder *holders, size_t count)
{
	uint64_t bytes = 0;

	model->optimizer = RANGE_UNKNOWN;
	for (size_t i = 0; i < count; i++)
		if (holders[i].at_peak && stack_is_optimizer(model->names, holders[i].stack))
			bytes += holders[i].at_peak;
	if (bytes)
		model->optimizer = range_of(bytes);
}

static int holders_fill(struct build *build)
{
	const struct residency *residency = &build->residency;
	struct model *model = build->model;
	size_t count = 0;

	model->optimizer = RANGE_UNKNOWN;
	if (!residency->holding_count)
		return 0;
	model->holders = calloc(residency->holding_count, sizeof(*model->holders));
	if (!model->holders)
		return -ENOMEM;
	for (size_t i = 0; i < residency->holding_room; i++) {
		const struct holding *holding = &residency->holdings[i];
		struct holder holder = {.stack = holding->stack};

		if (holding->kept.epoch[0] == UINT32_MAX)
			continue;
		holder.at_peak = kept_at(residency, &holding->kept, POINT_DEMAND_PEAK)->device;
		if (residency->epoch[POINT_LOAD_PEAK])
			holder.at_load_peak = kept_at(residency, &holding->kept, POINT_LOAD_PEAK)->device;
		if (holder.at_peak || holder.at_load_peak)
			model->holders[count++] = holder;
	}
	qsort(model->holders, count, sizeof(*model->holders), holder_compare);
	optimizer_note(model, model->holders, count);
	model->holder_count = count < HOLDERS_MAX ? count : HOLDERS_MAX;
	return 0;
}

int build_files(struct build *build)
{
	struct model *model = build->model;
	const struct catalog *catalog = &build->catalog;
	int error = 0;

	model->files = calloc(catalog->file_count + 1, sizeof(*model->files));
	model->tensors = calloc(catalog->tensor_count + 1, sizeof(*model->tensors));
	if (!model->files || !model->tensors)
		return -ENOMEM;
	model->file_count = catalog->file_count;
	model->tensor_count = catalog->tensor_count;
	for (uint32_t i = 0; i < catalog->file_count && !error; i++)
		error = file_fill(build, i);
	for (size_t i = 0; i < catalog->tensor_count && !error; i++)
		tensor_fill(build, i);
	if (!error)
		error = build_uses(build);
	return error ? error : holders_fill(build);
}
