/* SPDX-License-Identifier: Apache-2.0 */
/* After the passes: the load as a whole. */
#include <analyzer/model_parts.h>
#include <math.h>

/* Opened and not touched: to be loaded yet, where the load did not finish. Another load may come later. */
static bool file_belongs(const struct build *build, size_t index)
{
	const struct weight_file *file = &build->model->files[index];

	if (!file->first_touch)
		return !build->model->load.finished;
	return !build->phases.closed || file->first_touch <= build->phases.last_time;
}

/* Bytes of which only the sum over the files is known count there once, and in no file for sure. */
static struct range loaded_all(const struct build *build, struct range files)
{
	const struct residency *residency = &build->residency;
	uint64_t known = shared_loaded_all(residency);

	for (uint32_t i = 0; i < residency->weight_room && i < build->model->file_count; i++)
		known += file_belongs(build, i) ? file_loaded(build, i) : 0;
	known = bytes_min(known, build->model->load.weights);
	known = bytes_max(files.lo, known);
	return (struct range){
		known, bytes_max(known, bytes_min(files.hi, bytes_add(known, residency->unknown_copied)))};
}

/* Sums over files. */
static void load_sums(struct build *build)
{
	struct range loaded = range_of(0);
	struct model *model = build->model;
	struct load *load = &model->load;

	for (size_t i = 0; i < model->file_count; i++) {
		const struct weight_file *file = &model->files[i];

		if (!file_belongs(build, i))
			continue;
		load->weights += file->payload;
		load->largest_file = bytes_max(load->largest_file, file->payload);
		load->would_load = range_add(load->would_load, file->would_load);
		loaded = range_add(loaded, file->loaded);
	}
	load->loaded = loaded_all(build, loaded);
	/* Weights used in place are loaded by touching them, which no call shows. */
	if (!build->phases.to_device)
		load->loaded.hi = load->weights;
}

static void load_tensors(struct model *model)
{
	for (size_t i = 0; i < model->tensor_count; i++) {
		/* Shards that only an index names belong to a load that did not come to them yet. */
		if (!model->files[model->tensors[i].file].opened && model->load.finished)
			continue;
		model->load.largest_tensor = bytes_max(model->load.largest_tensor, model->tensors[i].size);
		model->load.parameters += model->tensors[i].elements;
	}
}

/* Of the two bounds each belongs together: what was loaded is not to be loaded. */
static struct range load_remaining(const struct load *load)
{
	return (struct range){bytes_sub(load->would_load.lo, load->loaded.hi),
	                      bytes_sub(load->would_load.hi, load->loaded.lo)};
}

struct range load_doubted(struct range demand, struct range doubt)
{
	return (struct range){bytes_sub(demand.lo, doubt.lo), bytes_add(demand.hi, doubt.hi)};
}

static void load_peaks(struct build *build)
{
	struct load *load = &build->model->load;
	const struct moment *first = &build->model->moments[MOMENT_FIRST_WEIGHT];
	const struct moment *modelled = &build->model->moments[MOMENT_LOAD_MODELLED_PEAK];

	load->modelled = peak_range(&build->peaks[PEAK_LOAD_MODELLED]);
	load->resident = peak_range(&build->peaks[PEAK_LOAD_RESIDENT]);
	load->demand = range_sub(peak_range(&build->peaks[PEAK_LOAD_DEMAND]), first->demand);
	load->demand = load_doubted(load->demand, build->first_doubt);
	load->device_other =
		bytes_sub(modelled->layers.device, modelled->on_device.lo + build->model->context_bytes);
}

static void load_factor(struct load *load)
{
	if (!load->weights)
		return;
	load->factor_lo = (double)load->modelled.lo / (double)load->weights;
	load->factor_hi =
		range_is_open(load->modelled) ? INFINITY : (double)load->modelled.hi / (double)load->weights;
}

static void load_sources(struct build *build)
{
	const struct residency *residency = &build->residency;
	struct load *load = &build->model->load;

	load->from_private_writable = residency->from[COPY_PRIVATE_WRITABLE] != 0;
	for (int i = 0; i < COPY_SOURCE_COUNT; i++)
		load->copied_from[i] = residency->from[i];
	load->anon_copied = (struct range){residency->anon_made,
	                                   bytes_add(residency->anon_made, residency->anon_possible_made)};
}

void build_load(struct build *build)
{
	struct load *load = &build->model->load;

	load->present = build->phases.first_weight != 0;
	load->finished = load->present && !build->phases.unfinished;
	load->repaired = peak_range(&build->peaks[PEAK_REPAIRED]);
	load->threads = build->thread_count;
	load->spare = build->spare;
	load_tensors(build->model);
	if (!load->present)
		return;
	load->begin = build->phases.first_time;
	load->end = build->phases.last_time;
	load_sums(build);
	load->shards_missing = build->absent.count;
	if (!load->finished)
		load->would_load = range_add(load->would_load, build->absent.bytes);
	load->remaining = load_remaining(load);
	load_peaks(build);
	load_factor(load);
	load_sources(build);
}
