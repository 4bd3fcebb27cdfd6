/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far peaks move with who runs when, where several threads load. What one thread brings and lets go again is there at
 * some instant in any order; that of all others may come on top of it or not. So a peak is never more than `threads` times
 * what it is in another order, and what was 0 stays 0.
 */
#include "diff_parts.h"

#include <stdlib.h>

/* What a caching allocator takes from the driver at a time: in another order tensors fill its segments otherwise. */
#define SEGMENT (UINT64_C(20) << 20)

/* The larger one of both runs. */
struct moves {
	uint64_t threads;
	uint64_t tensors;  /* one for each thread, or what its staging slots come to */
	uint64_t files;    /* of all threads but one, the largest that is let go */
	uint64_t segments; /* one for each thread */
};

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	if (a == ST_UNKNOWN || b == ST_UNKNOWN)
		return 0;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static void moves_add(struct moves *moves, const struct measure *measure)
{
	const struct metric_scale *scale = &measure->scale;
	uint64_t threads = scale->threads == ST_UNKNOWN ? 0 : scale->threads;
	uint64_t tensors = bytes_max(times(threads, scale->largest_tensor), measure->model->load.spare);

	moves->threads = bytes_max(moves->threads, threads);
	if (threads < 2)
		return;
	moves->tensors = bytes_max(moves->tensors, tensors);
	moves->files = bytes_max(moves->files, times(threads - 1, scale->released));
	moves->segments = bytes_max(moves->segments, times(threads, SEGMENT));
}

/* Bytes that move, in the unit of the metric. */
static uint64_t in_unit(const struct diff *diff, enum metric metric, uint64_t bytes)
{
	uint64_t weights = bytes_min(diff->before->weights, diff->after->weights);
	double ratio;

	if (metric_rows[metric].unit == METRIC_BYTES || !bytes)
		return bytes;
	ratio = weights ? (double)bytes / (double)weights * METRIC_RATIO_ONE : 0;
	return ratio < 1e15 ? (uint64_t)ratio + 1 : UINT64_MAX;
}

static uint64_t upper(struct range range)
{
	return range_is_open(range) ? range.lo : range.hi;
}

static void set_bytes(struct diff *diff, enum metric metric, const struct moves *moves, uint64_t bytes)
{
	uint64_t less = bytes_min(upper(diff->before->values[metric]), upper(diff->after->values[metric]));
	uint64_t others = moves->threads ? moves->threads - 1 : 0;

	diff->scheduling[metric] = bytes_min(in_unit(diff, metric, bytes), times(less, others));
}

void diff_scheduling(struct diff *diff)
{
	struct moves moves = {0};
	uint64_t all;

	moves_add(&moves, diff->before);
	moves_add(&moves, diff->after);
	all = bytes_add(bytes_add(moves.tensors, moves.files), moves.segments);
	set_bytes(diff, METRIC_DEVICE, &moves, moves.segments);
	set_bytes(diff, METRIC_STAGING, &moves, moves.tensors);
	set_bytes(diff, METRIC_HOST, &moves, moves.tensors);
	set_bytes(diff, METRIC_ANON, &moves, moves.files);
	set_bytes(diff, METRIC_MAPPED, &moves, moves.files);
	set_bytes(diff, METRIC_MODELLED, &moves, all);
	set_bytes(diff, METRIC_FACTOR, &moves, all);
}
