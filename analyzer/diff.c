/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

const char *const diff_state_names[DIFF_STATES] = {"same", "grew", "shrank", "cannot tell", "shown"};

/* --- one row ------------------------------------------------------------------------------------------ */

struct change diff_value(struct range range)
{
	if (!range.lo && range_is_open(range))
		return CHANGE_UNKNOWN;
	return (struct change){(int64_t)bytes_min(range.lo, INT64_MAX),
	                       (int64_t)bytes_min(range.hi, INT64_MAX)};
}

static int64_t difference(int64_t a, int64_t b)
{
	int64_t result;

	if (__builtin_sub_overflow(a, b, &result))
		return a < b ? INT64_MIN : INT64_MAX;
	return result;
}

struct change diff_change(struct change before, struct change after)
{
	bool no_low = before.hi == INT64_MAX || after.lo == INT64_MIN;
	bool no_high = before.lo == INT64_MIN || after.hi == INT64_MAX;

	return (struct change){no_low ? INT64_MIN : difference(after.lo, before.hi),
	                       no_high ? INT64_MAX : difference(after.hi, before.lo)};
}

/* A share of a value, by its upper end where there is one. */
static uint64_t share_of(struct change value, uint64_t parts)
{
	int64_t most = value.hi == INT64_MAX ? value.lo : value.hi;

	if (most < 0 && value.lo != INT64_MIN)
		most = value.lo == INT64_MIN + 1 ? INT64_MAX : -value.lo;
	return most > 0 ? (uint64_t)most / parts : 0;
}

uint64_t diff_noise(enum diff_class class, enum metric_unit unit, struct change before, uint64_t scheduling)
{
	uint64_t least = unit == METRIC_RATIO ? METRIC_RATIO_ONE / 1000 : (uint64_t)MIB;
	uint64_t noise = bytes_max(least, share_of(before, 1000));

	if (class == DIFF_SCHEDULING || class == DIFF_SAMPLED)
		noise = bytes_add(noise, scheduling);
	if (class == DIFF_SAMPLED)
		noise = bytes_add(noise, bytes_max(DIFF_ALLOWANCE, share_of(before, 20)));
	return noise;
}

enum diff_state diff_state(struct change change, uint64_t noise)
{
	int64_t bound = (int64_t)bytes_min(noise, INT64_MAX);

	if (change.lo > bound)
		return DIFF_GREW;
	if (change.hi < -bound)
		return DIFF_SHRANK;
	return change.lo >= -bound && change.hi <= bound ? DIFF_SAME : DIFF_CANNOT_TELL;
}

void diff_judge(struct diff_row *row, uint64_t scheduling)
{
	row->change = diff_change(row->before, row->after);
	if (!row->noise)
		row->noise = diff_noise(row->class, row->unit, row->before, scheduling);
	row->state = diff_state(row->change, row->noise);
}

/* --- metrics ------------------------------------------------------------------------------------------ */

enum diff_class diff_metric_class(enum metric metric)
{
	switch (metric) {
	case METRIC_DEVICE:
	case METRIC_STAGING:
	case METRIC_ANON:
	case METRIC_HOST:
	case METRIC_MODELLED:
	case METRIC_FACTOR:
	case METRIC_MAPPED:
		return DIFF_SCHEDULING;
	case METRIC_POOL:
		return DIFF_POOL;
	case METRIC_READ:
	case METRIC_COUNT:
		break;
	}
	return DIFF_EXACT;
}

static void compare_metric(struct diff *diff, enum metric metric)
{
	const struct metric_row *about = &metric_rows[metric];
	const struct measure *before = diff->before, *after = diff->after;
	struct diff_row *row = &diff->peaks[metric];
	uint64_t level = before->values[metric].hi;

	*row = (struct diff_row){
		.key = about->name,
		.title = about->name,
		.class = diff_metric_class(metric),
		.unit = about->unit,
		.before = diff_value(before->values[metric]),
		.after = diff_value(after->values[metric]),
		.gap = after->gaps[metric] ? after->gaps[metric] : before->gaps[metric],
	};
	if (about->sampled)
		row->noise = metric_tolerance(metric, level == UINT64_MAX ? 0 : level, &before->scale);
	diff_judge(row, diff->scheduling[metric]);
}

/*
 * A peak of the driver's ledger. What was not seen may have been a release; and of a run that goes on, or whose rest is gone,
 * more may come. Where a load is there, its device peak was loosened for that; else nothing of the run is compared.
 */
static struct range ledger_peak(const struct measure *measure, uint64_t peak)
{
	bool more = measure->model->load.present && range_is_open(measure->values[METRIC_DEVICE]);

	if (measure->unproven)
		return RANGE_UNKNOWN;
	return (struct range){peak, more ? UINT64_MAX : peak};
}

/* `like`: whose scheduling it shares. Whatever keeps the driver from being seen is why device memory is not known. */
static void compare_run(struct diff *diff, int which, enum metric like, uint64_t before, uint64_t after)
{
	static const char *const keys[] = {"run_device_peak", "run_pinned_peak"};
	const char *old = diff->before->gaps[METRIC_DEVICE], *new = diff->after->gaps[METRIC_DEVICE];
	struct diff_row *row = &diff->peaks[which];

	*row = (struct diff_row){.key = keys[which - METRIC_COUNT],
	                         .title = keys[which - METRIC_COUNT],
	                         .class = DIFF_SCHEDULING,
	                         .before = diff_value(ledger_peak(diff->before, before)),
	                         .after = diff_value(ledger_peak(diff->after, after)),
	                         .gap = new ? new : old};
	diff_judge(row, diff->scheduling[like]);
}

/* --- all of it ---------------------------------------------------------------------------------------- */

int diff_sentence(char ***sentences, size_t *count, char *sentence)
{
	char **moved = sentence ? realloc(*sentences, (*count + 1) * sizeof(*moved)) : NULL;

	if (!moved) {
		free(sentence);
		return -ENOMEM;
	}
	*sentences = moved;
	moved[(*count)++] = sentence;
	return 0;
}

int diff_compare(const struct measure *before, const struct measure *after,
                 const struct diff_options *options, struct diff *ret_diff)
{
	struct diff diff = {.before = before, .after = after};
	int error;

	diff_scheduling(&diff);
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		compare_metric(&diff, (enum metric)metric);
	compare_run(&diff, DIFF_RUN_DEVICE, METRIC_DEVICE, before->model->device_peak,
	            after->model->device_peak);
	compare_run(&diff, DIFF_RUN_PINNED, METRIC_STAGING, before->model->pinned_peak,
	            after->model->pinned_peak);
	diff_layers_compare(&diff);
	error = diff_breakdowns(&diff);
	error = error ? error : diff_notes(&diff);
	error = error ? error : diff_verdict(&diff);
	error = error ? error : diff_fail_on(&diff, &options->fail_on);
	if (error)
		diff_release(&diff);
	else
		*ret_diff = diff;
	return error;
}

static void free_sentences(char **sentences, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(sentences[i]);
	free(sentences);
}

void diff_release(struct diff *diff)
{
	diff_parts_release(&diff->load);
	diff_parts_release(&diff->run);
	free(diff->verdict);
	free_sentences(diff->notes, diff->note_count);
	free_sentences(diff->failures, diff->failure_count);
	*diff = (struct diff){0};
}
