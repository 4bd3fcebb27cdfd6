/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/measure_parts.h>

/* To the nearest unit, so that what is exact stays exact. */
static uint64_t ratio_of(uint64_t bytes, uint64_t weights)
{
	unsigned __int128 units = (unsigned __int128)bytes * METRIC_RATIO_ONE + weights / 2;

	return bytes == UINT64_MAX || units / weights >= UINT64_MAX ? UINT64_MAX
	                                                            : (uint64_t)(units / weights);
}

static struct range ratio_range(struct range bytes, uint64_t weights)
{
	if (!weights)
		return RANGE_UNKNOWN;
	return (struct range){ratio_of(bytes.lo, weights), ratio_of(bytes.hi, weights)};
}

static struct range pool_fall(const struct model *whole)
{
	if (!whole->samples || whole->first.available == ST_UNKNOWN || whole->lowest_available == ST_UNKNOWN)
		return RANGE_UNKNOWN;
	return range_of(bytes_sub(whole->first.available, whole->lowest_available));
}

static bool is_released(const struct weight_file *file)
{
	for (size_t i = 0; i < file->mapping_count; i++)
		if (!file->mappings[i].kept)
			return true;
	return false;
}

/*
 * Every mapping of a header is let go. But where all files were still there as a whole at the last weight byte nothing
 * depends on the order in which they came. Processes come in any order, and with them what a file had for a moment.
 */
static bool all_are_mapped(const struct model *whole, const struct measured *processes, size_t count)
{
	const struct moment *last = &whole->moments[MOMENT_LAST_WEIGHT];
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < processes[i].model->file_count; k++) {
			const struct weight_file *file = &processes[i].model->files[k];

			if (file->mapping_count)
				bytes = bytes_add(bytes, count > 1 ? file->mapped : file->size);
		}
	return last->valid && last->mapped >= bytes;
}

/* The largest file that some mapping of was gone when the load had settled. */
static uint64_t files_released(const struct model *whole, const struct measured *processes, size_t count)
{
	uint64_t most = 0;

	if (all_are_mapped(whole, processes, count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct model *model = processes[i].model;

		for (size_t k = 0; k < model->file_count; k++)
			if (is_released(&model->files[k]))
				most = bytes_max(most, model->files[k].mapped);
	}
	return most;
}

/*
 * H holds S outside P, whatever is counted of host blocks, and anonymous copies until somebody looks at them. How much of
 * these it held when it was highest is chance: no more is said than what is left without all of them.
 */
static uint64_t uncounted(const struct load *load)
{
	uint64_t known = bytes_add(load->peaks[LOAD_PEAK_HOST].hi, load->staging);

	return bytes_sub(load->host.lo, bytes_add(known, load->peaks[LOAD_PEAK_ANON].hi));
}

void measure_values(struct measure *measure, const struct model *whole, const struct measured *processes,
                    size_t count)
{
	static const enum metric metrics[LOAD_PEAK_COUNT] = {[LOAD_PEAK_DEVICE] = METRIC_DEVICE,
	                                                     [LOAD_PEAK_STAGING] = METRIC_STAGING,
	                                                     [LOAD_PEAK_ANON] = METRIC_ANON,
	                                                     [LOAD_PEAK_HOST] = METRIC_HOST,
	                                                     [LOAD_PEAK_MAPPED] = METRIC_MAPPED};
	const struct load *load = &whole->load;
	struct range *values = measure->values;

	measure->weights = load->weights;
	measure->finished = load->finished;
	measure->uncounted = uncounted(load);
	measure->scale = (struct metric_scale){.threads = load->threads,
	                                       .largest_tensor = load->largest_tensor,
	                                       .mappings = load->mappings,
	                                       .page_size = whole->page_size,
	                                       .weights = load->weights,
	                                       .released = files_released(whole, processes, count)};
	for (int i = 0; i < METRIC_COUNT; i++)
		values[i] = RANGE_UNKNOWN;
	values[METRIC_POOL] = pool_fall(whole);
	if (!load->present)
		return;
	for (int i = 0; i < LOAD_PEAK_COUNT; i++)
		values[metrics[i]] = load->peaks[i];
	values[METRIC_MODELLED] = load->modelled;
	values[METRIC_FACTOR] = ratio_range(load->modelled, load->weights);
	values[METRIC_READ] = ratio_range(range_of(load->read_bytes), load->weights);
	measure_scale(measure);
}
