/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's layers at one moment, before and after. */
#include "diff_parts.h"

#include <stddef.h>

enum layer_form { LAYER_BYTES, LAYER_RANGE, LAYER_CHANGE };

/* A member of struct moment. */
static const struct layer {
	const char *key, *title;
	enum layer_form form;
	enum diff_class class;
	enum metric metric; /* whose scheduling it shares */
	size_t offset;
} layers[] = {
#define LAYER(member) offsetof(struct moment, layers.member)
	{"device", "device memory", LAYER_BYTES, DIFF_SCHEDULING, METRIC_DEVICE, LAYER(device)},
	{"pinned", "pinned host memory", LAYER_BYTES, DIFF_SCHEDULING, METRIC_STAGING, LAYER(pinned)},
	{"anon", "anonymous copies of weight pages", LAYER_RANGE, DIFF_SCHEDULING, METRIC_ANON, LAYER(anon)},
	{"staging", "host blocks with weights, not pinned", LAYER_BYTES, DIFF_SCHEDULING, METRIC_STAGING,
         LAYER(staging)},
	{"staging_pinned", "weights in pinned memory", LAYER_BYTES, DIFF_SCHEDULING, METRIC_STAGING,
         LAYER(staging_pinned)},
	{"modelled", "these together", LAYER_RANGE, DIFF_SCHEDULING, METRIC_MODELLED,
         offsetof(struct moment, modelled)},
	{"mapped", "weight files mapped", LAYER_BYTES, DIFF_SCHEDULING, METRIC_MAPPED,
         offsetof(struct moment, mapped)},
	{"host", "other host memory (change)", LAYER_CHANGE, DIFF_SAMPLED, METRIC_HOST, LAYER(host)},
	{"demand", "demand of the run", LAYER_RANGE, DIFF_SAMPLED, METRIC_MODELLED,
         offsetof(struct moment, demand)},
	{"others", "other processes (change)", LAYER_CHANGE, DIFF_POOL, METRIC_POOL, LAYER(others)},
	{"weight_cache", "page cache of the weight files", LAYER_RANGE, DIFF_POOL, METRIC_POOL,
         LAYER(weight_cache)},
	{"stale_cache", "other page cache", LAYER_RANGE, DIFF_POOL, METRIC_POOL, LAYER(stale_cache)},
	{"free", "free, per-CPU lists included", LAYER_RANGE, DIFF_POOL, METRIC_POOL, LAYER(free)},
	{"kernel", "kernel, driver and the rest (change)", LAYER_CHANGE, DIFF_POOL, METRIC_POOL,
         LAYER(kernel)},
#undef LAYER
};

#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))
_Static_assert(LAYER_COUNT <= DIFF_ROWS, "struct diff_layers has too few rows");

static const enum moment_name moment_of[DIFF_MOMENTS] = {
	[DIFF_LOAD_PEAK] = MOMENT_LOAD_MODELLED_PEAK,
	[DIFF_DEMAND_PEAK] = MOMENT_DEMAND_PEAK,
};

static struct change value_of(const struct moment *moment, const struct layer *layer)
{
	const void *at = (const char *)moment + layer->offset;

	if (!moment->valid)
		return CHANGE_UNKNOWN;
	switch (layer->form) {
	case LAYER_BYTES:
		return diff_value(range_of(*(const uint64_t *)at));
	case LAYER_RANGE:
		return diff_value(*(const struct range *)at);
	case LAYER_CHANGE:
		break;
	}
	return *(const struct change *)at;
}

/* The instant is that of a maximum of exact layers: samples are only compared where they are part of what is highest. */
static bool is_judged(const struct diff_row *row, enum diff_moment which)
{
	return row->class != DIFF_POOL && (row->class != DIFF_SAMPLED || which == DIFF_DEMAND_PEAK);
}

static struct diff_row compare_layer(const struct layer *layer, enum diff_moment which,
                                     const struct moment *before, const struct moment *after,
                                     uint64_t scheduling)
{
	struct diff_row row = {
		.key = layer->key,
		.title = layer->title,
		.class = layer->class,
		.is_change = layer->form == LAYER_CHANGE,
		.before = value_of(before, layer),
		.after = value_of(after, layer),
	};

	diff_judge(&row, scheduling);
	if (!is_judged(&row, which))
		row.state = DIFF_SHOWN;
	row.hidden = !row.before.lo && !row.before.hi && !row.after.lo && !row.after.hi;
	return row;
}

void diff_layers_compare(struct diff *diff)
{
	for (int i = 0; i < DIFF_MOMENTS; i++) {
		const struct moment *before = &diff->before->model->moments[moment_of[i]];
		const struct moment *after = &diff->after->model->moments[moment_of[i]];
		struct diff_layers *result = &diff->layers[i];

		*result = (struct diff_layers){.before = before->valid, .after = after->valid};
		if (!before->valid && !after->valid)
			continue;
		for (; result->count < LAYER_COUNT; result->count++)
			result->rows[result->count] =
				compare_layer(&layers[result->count], (enum diff_moment)i, before, after,
			                      diff->scheduling[layers[result->count].metric]);
	}
}
