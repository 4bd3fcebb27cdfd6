/* SPDX-License-Identifier: Apache-2.0 */
/* --update: what these runs are as a baseline, and what that changes. */
#include <analyzer/baseline.h>
#include <analyzer/check_parts.h>

/* It was in the baseline, and will not be in the new one. */
static void say_left_out(struct check *check, enum metric metric)
{
	bool before = check->baseline && check_known(check->baseline->values[metric]);

	if (before && check->measures->count < METRIC_RUNS)
		check_note(check, check_format(check, "%s is left out of the baseline: it takes %d runs",
		                               metric_rows[metric].name, METRIC_RUNS));
}

void check_update_reasons(struct check *check)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct check_sum *sum = &check->sums[i];
		const struct measure *gap = sum->gap;

		if (metric_rows[i].sampled)
			say_left_out(check, (enum metric)i);
		if (metric_rows[i].sampled || check->unusable || check->unfinished)
			continue;
		if (gap)
			check_reason(check, check_format(check, "%s: %s is not known: %s", gap->path,
			                                 metric_rows[i].name, gap->gaps[i]));
		else if (range_is_open(sum->value))
			check_reason(check, check_format(check, "%s: %s has no upper bound", sum->run->path,
			                                 metric_rows[i].name));
	}
}

bool check_is_written(const struct measures *measures, enum metric metric)
{
	bool gap = false;

	for (size_t i = 0; i < measures->count; i++)
		gap |= measures->runs[i].gaps[metric] != NULL;
	return !metric_rows[metric].sampled || (!gap && measures->count >= METRIC_RUNS);
}

static struct range value_for(const struct measures *measures, enum metric metric)
{
	struct range value = measures->runs[0].values[metric];

	for (size_t i = 1; i < measures->count; i++)
		value = check_combine(metric, value, measures->runs[i].values[metric]);
	return check_is_written(measures, metric) ? value : RANGE_UNKNOWN;
}

/* The parts of the run that needed most. */
static const struct measure *largest_run(const struct measures *measures)
{
	const struct measure *largest = &measures->runs[0];

	for (size_t i = 1; i < measures->count; i++)
		if (measures->runs[i].values[METRIC_MODELLED].hi > largest->values[METRIC_MODELLED].hi)
			largest = &measures->runs[i];
	return largest;
}

int check_update(const char *path, const struct measures *measures)
{
	struct measure baseline = *largest_run(measures);

	for (int i = 0; i < METRIC_COUNT; i++)
		baseline.values[i] = value_for(measures, (enum metric)i);
	for (size_t i = 0; i < measures->count; i++) {
		const struct metric_scale *scale = &measures->runs[i].scale;

		baseline.scale.largest_tensor =
			bytes_max(baseline.scale.largest_tensor, scale->largest_tensor);
		baseline.scale.released = bytes_max(baseline.scale.released, scale->released);
		baseline.scale.mappings = bytes_max(baseline.scale.mappings, scale->mappings);
	}
	return baseline_write(path, &baseline);
}
