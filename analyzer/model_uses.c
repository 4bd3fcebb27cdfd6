/* SPDX-License-Identifier: Apache-2.0 */
/* After the passes: who used which file and tensor in which order, and the indexes of sharded checkpoints. */
#include <analyzer/model_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void file_use(struct weight_file *file, const struct weight *weight)
{
	file->thread_count = weight->thread_count;
	file->threads_more = weight->threads_more;
	memcpy(file->threads, weight->threads, sizeof(file->threads));
	file->advice_count = weight->advice_count;
	memcpy(file->advices, weight->advices, sizeof(file->advices));
}

/* Copies of a file of which the place is not known may have been of any tensor, and are of some. */
static struct range copied_range(const struct build *build, const struct tensor *tensor, uint64_t known)
{
	const struct residency *residency = &build->residency;
	const struct weight_file *file = &build->model->files[tensor->file];
	const struct weight *weight = &residency->weights[tensor->file];
	uint64_t least = 0, most = known, elsewhere;

	if (build->phases.to_device)
		least = bytes_sub(tensor->size, bytes_sub(file->payload, file->loaded.lo));
	most = bytes_add(most, weight->loaded_vague + weight->unknown);
	most = bytes_add(most, shared_loaded(residency, weight).hi);
	/* What the other tensors have for sure, and not by copies of known place, went to them. */
	elsewhere = bytes_sub(file->loaded.lo, tensor->size + weight->loaded.bytes);
	most = bytes_max(known, bytes_sub(most, build->phases.to_device ? elsewhere : 0));
	return (struct range){bytes_min(bytes_max(known, least), most), most};
}

static void tensor_use(const struct build *build, size_t index)
{
	const struct residency *residency = &build->residency;
	struct tensor *tensor = &build->model->tensors[index];
	const struct tensor_use *use = residency->uses ? &residency->uses[index] : NULL;

	tensor->place = (uint32_t)(index - build->catalog.files[tensor->file].tensor_first) + 1;
	if (tensor->file < residency->weight_room)
		tensor->copied = copied_range(build, tensor, use ? use->copied : 0);
	if (!use)
		return;
	tensor->first_touch = use->first;
	tensor->last_touch = use->last;
	tensor->read_bytes = use->read;
	tensor->thread = use->thread;
	tensor->order = use->order;
}

static int touch_compare(const void *left, const void *right)
{
	const struct weight_file *a = *(struct weight_file *const *)left,
				 *b = *(struct weight_file *const *)right;

	if (a->first_touch != b->first_touch)
		return a->first_touch < b->first_touch ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int files_order(struct model *model)
{
	struct weight_file **touched = calloc(model->file_count + 1, sizeof(struct weight_file *));
	size_t count = 0;

	if (!touched)
		return -ENOMEM;
	for (size_t i = 0; i < model->file_count; i++)
		if (model->files[i].first_touch)
			touched[count++] = &model->files[i];
	qsort(touched, count, sizeof(struct weight_file *), touch_compare);
	for (size_t i = 0; i < count; i++)
		touched[i]->order = (uint32_t)i + 1;
	free(touched);
	return 0;
}

static int indexes_fill(struct build *build)
{
	struct catalog *catalog = &build->catalog;
	struct model *model = build->model;

	model->indexes = calloc(catalog->index_count + 1, sizeof(*model->indexes));
	if (!model->indexes)
		return -ENOMEM;
	model->index_count = catalog->index_count;
	for (size_t i = 0; i < catalog->index_count; i++) {
		struct catalog_index *named = &catalog->indexes[i];

		model->indexes[i] = (struct checkpoint_index){named->path, named->total_size, named->shards,
		                                              named->tensors};
		named->path = NULL;
	}
	return 0;
}

int build_uses(struct build *build)
{
	int error = indexes_fill(build);

	for (uint32_t i = 0; i < build->catalog.file_count && i < build->residency.weight_room; i++)
		file_use(&build->model->files[i], &build->residency.weights[i]);
	for (size_t i = 0; i < build->catalog.tensor_count; i++)
		tensor_use(build, i);
	return error ? error : files_order(build->model);
}
