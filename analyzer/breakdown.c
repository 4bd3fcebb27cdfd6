/* SPDX-License-Identifier: Apache-2.0 */
#include "breakdown.h"

#include "array.h"
#include "breakdown_names.h"
#include "model.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char *const part_kind_names[PART_KINDS] = {"file", "tensor", "stack"};

/* While it is made: parts in any order, the same names more than once. */
struct making {
	struct content_names names;
	struct part *parts;
	size_t count, room;
};

static const enum metric metric_of[LOAD_PEAK_COUNT] = {
	[LOAD_PEAK_DEVICE] = METRIC_DEVICE, [LOAD_PEAK_STAGING] = METRIC_STAGING,
	[LOAD_PEAK_ANON] = METRIC_ANON,     [LOAD_PEAK_HOST] = METRIC_HOST,
	[LOAD_PEAK_MAPPED] = METRIC_MAPPED,
};

static const enum part_kind kind_of[] = {
	[LOAD_PART_FILE] = PART_FILE,
	[LOAD_PART_TENSOR] = PART_TENSOR,
	[LOAD_PART_STACK] = PART_STACK,
};

/* --- details ---------------------------------------------------------------------------------------- */

/* What holds the file's bytes: of anonymous copies the mapping that makes them, else the longest one. */
static const struct file_mapping *telling_mapping(const struct weight_file *file, enum metric metric)
{
	const struct file_mapping *best = NULL;

	for (size_t i = 0; i < file->mapping_count; i++) {
		const struct file_mapping *at = &file->mappings[i];
		bool writable = (at->flags & MAP_PRIVATE) && (at->prot & PROT_WRITE);

		if ((metric != METRIC_ANON || writable) && (!best || at->bytes > best->bytes))
			best = at;
	}
	return best;
}

/* "private writable mapping; safetensors 0.7.0, load_file (torch.py:359), called from main (train.py:12)"; NULL: nothing to say. */
static char *file_detail(const struct model *model, const struct weight_file *file, enum metric metric)
{
	bool mapped = metric == METRIC_ANON || metric == METRIC_MAPPED;
	const struct file_mapping *mapping = mapped ? telling_mapping(file, metric) : NULL;
	const char *how = mapping ? report_mapping(mapping) : NULL;
	char *loader = NULL, *detail = NULL;

	if (file->loader < model->loader_count)
		loader = report_loader_words(&model->loaders[file->loader]);
	if (!how)
		return loader;
	if (asprintf(&detail, "%s%s%s", how, loader ? "; " : "", loader ? loader : "") < 0)
		detail = NULL;
	free(loader);
	return detail;
}

static char *tensor_detail(const struct making *making, size_t m, uint32_t which)
{
	const struct model *model = making->names.models[m];
	char *detail;

	if (which >= model->tensor_count || making->names.twice[making->names.first_tensor[m] + which])
		return NULL;
	if (asprintf(&detail, "of %s", content_file(&making->names, m, model->tensors[which].file)) < 0)
		return NULL;
	return detail;
}

static char *part_detail(const struct making *making, size_t m, const struct load_part *load)
{
	const struct model *model = making->names.models[m];

	switch (load->kind) {
	case LOAD_PART_FILE:
		return load->which < model->file_count
		               ? file_detail(model, &model->files[load->which], metric_of[load->peak])
		               : NULL;
	case LOAD_PART_TENSOR:
		return tensor_detail(making, m, load->which);
	case LOAD_PART_STACK:
		return report_stack_brief(model->names, load->which);
	}
	return NULL;
}

static char *part_name(const struct making *making, size_t m, const struct load_part *load)
{
	switch (load->kind) {
	case LOAD_PART_FILE:
		return strdup(content_file(&making->names, m, load->which));
	case LOAD_PART_TENSOR:
		return content_tensor(&making->names, m, load->which);
	case LOAD_PART_STACK:
		return content_stack(making->names.models[m]->names, load->which);
	}
	return NULL;
}

/* --- collecting ------------------------------------------------------------------------------------- */

/* The metric is given apart: what is read has no peak. */
static int collect(struct making *making, size_t m, enum metric metric, const struct load_part *load)
{
	struct part part = {.metric = metric, .kind = kind_of[load->kind], .bytes = load->bytes};
	char *detail;

	if (!load->bytes.hi)
		return 0;
	if (array_reserve(&making->parts, sizeof(part), making->count, &making->room))
		return -ENOMEM;
	part.name = part_name(making, m, load);
	if (!part.name)
		return -ENOMEM;
	detail = part_detail(making, m, load);
	part.detail = detail ? content_clean(detail) : NULL;
	free(detail);
	making->parts[making->count++] = part;
	return 0;
}

static int collect_peaks(struct making *making, size_t m)
{
	const struct model *model = making->names.models[m];
	int error = 0;

	for (size_t i = 0; !error && i < model->load_part_count; i++)
		error = collect(making, m, metric_of[model->load_parts[i].peak], &model->load_parts[i]);
	return error;
}

static int collect_reads(struct making *making, size_t m)
{
	const struct model *model = making->names.models[m];
	struct load_part load = {.peak = LOAD_PEAK_STAGING, .kind = LOAD_PART_FILE};
	int error = 0;

	for (load.which = 0; !error && load.which < model->file_count; load.which++) {
		load.bytes = range_of(model->files[load.which].read_bytes);
		error = collect(making, m, METRIC_READ, &load);
	}
	load.kind = LOAD_PART_TENSOR;
	for (load.which = 0; !error && load.which < model->tensor_count; load.which++) {
		load.bytes = range_of(model->tensors[load.which].read_bytes);
		error = collect(making, m, METRIC_READ, &load);
	}
	return error;
}

/* --- the whole of it -------------------------------------------------------------------------------- */

int part_order(enum metric metric, enum part_kind kind, const char *name, const struct part *part)
{
	if (metric != part->metric)
		return metric < part->metric ? -1 : 1;
	if (kind != part->kind)
		return kind < part->kind ? -1 : 1;
	return strcmp(name, part->name);
}

/* What has most bytes is first of its name: its detail stays. */
static int compare_parts(const void *a, const void *b)
{
	const struct part *left = a, *right = b;
	int order = part_order(left->metric, left->kind, left->name, right);

	if (order)
		return order;
	if (left->bytes.hi != right->bytes.hi)
		return left->bytes.hi > right->bytes.hi ? -1 : 1;
	return strcmp(left->detail ? left->detail : "", right->detail ? right->detail : "");
}

static void part_release(struct part *part)
{
	free(part->name);
	free(part->detail);
}

static void merge_parts(struct making *making)
{
	size_t kept = 0;

	if (making->count)
		qsort(making->parts, making->count, sizeof(*making->parts), compare_parts);
	for (size_t i = 0; i < making->count; i++) {
		struct part *part = &making->parts[i], *last = kept ? &making->parts[kept - 1] : NULL;

		if (last && !part_order(last->metric, last->kind, last->name, part)) {
			last->bytes = range_add(last->bytes, part->bytes);
			part_release(part);
		} else {
			making->parts[kept++] = *part;
		}
	}
	making->count = kept;
}

static int collect_load(struct making *making, size_t m)
{
	int error = collect_peaks(making, m);

	return error ? error : collect_reads(making, m);
}

static int collect_run(struct making *making, size_t m)
{
	const struct model *model = making->names.models[m];
	struct load_part part = {.peak = LOAD_PEAK_DEVICE, .kind = LOAD_PART_STACK};
	int error = 0;

	for (size_t i = 0; !error && i < model->holder_count; i++) {
		part.which = model->holders[i].stack;
		part.bytes = range_of(model->holders[i].at_peak);
		error = collect(making, m, METRIC_DEVICE, &part);
	}
	return error;
}

static int make(const struct model *const *models, size_t count, int (*collector)(struct making *, size_t),
                struct breakdown *ret_breakdown)
{
	struct making making = {0};
	int error = content_names_make(models, count, &making.names);

	for (size_t m = 0; !error && m < count; m++)
		error = collector(&making, m);
	content_names_release(&making.names);
	if (!error)
		merge_parts(&making);
	*ret_breakdown = (struct breakdown){making.parts, making.count};
	if (error)
		breakdown_release(ret_breakdown);
	return error;
}

int breakdown_make(const struct model *const *models, size_t count, struct breakdown *ret_breakdown)
{
	return make(models, count, collect_load, ret_breakdown);
}

int breakdown_make_run(const struct model *const *models, size_t count, struct breakdown *ret_breakdown)
{
	return make(models, count, collect_run, ret_breakdown);
}

void breakdown_release(struct breakdown *breakdown)
{
	for (size_t i = 0; i < breakdown->count; i++)
		part_release(&breakdown->parts[i]);
	free(breakdown->parts);
	*breakdown = (struct breakdown){0};
}

const struct part *breakdown_find(const struct breakdown *breakdown, enum metric metric, enum part_kind kind,
                                  const char *name)
{
	size_t low = 0, high = breakdown->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = part_order(metric, kind, name, &breakdown->parts[middle]);

		if (!order)
			return &breakdown->parts[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}
