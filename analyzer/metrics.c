/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/emit.h>
#include <analyzer/metrics.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

const struct metric_row metric_rows[METRIC_COUNT] = {
	[METRIC_DEVICE] = {.name = "load_device_peak",
                           .share = 0.01,
                           .least = 64 * MIB,
                           .help = "device memory, by the driver's ledger"},
	[METRIC_STAGING] = {.name = "load_staging_peak",
                            .share = 0.05,
                            .least = 64 * MIB,
                            .by_thread = true,
                            .help = "pinned memory, and host blocks outside it with weights on their way"},
	[METRIC_ANON] = {.name = "load_anonymous_copy_peak",
                         .least = 64 * MIB,
                         .by_files = true,
                         .help = "anonymous copies of pages of private mappings of weight files"},
	[METRIC_HOST] = {.name = "load_host_peak",
                         .share = 0.05,
                         .least = 64 * MIB,
                         .help = "large host blocks since the first weight byte, without staging and pinned"},
	[METRIC_MODELLED] = {.name = "load_modelled_peak",
                             .share = 0.02,
                             .least = 128 * MIB,
                             .is_sum = true,
                             .help = "device, pinned, anonymous copies and staging together: the gate"},
	[METRIC_FACTOR] = {.name = "load_factor",
                           .unit = METRIC_RATIO,
                           .least = METRIC_RATIO_ONE / 50,
                           .is_sum = true,
                           .help = "load_modelled_peak by the bytes of the weights"},
	[METRIC_MAPPED] = {.name = "load_mapped_peak",
                           .by_mapping = true,
                           .by_files = true,
                           .help = "bytes of weight files mapped"},
	[METRIC_READ] = {.name = "load_read_amplification",
                         .unit = METRIC_RATIO,
                         .least = METRIC_RATIO_ONE / 20,
                         .help = "bytes of weight files read by calls, by the bytes of the weights"},
	[METRIC_POOL] =
		{.name = "pool_peak",
                 .share = 0.1,
                 .least = 2 * GIB,
                 .sampled = true,
                 .warn = 0.05,
                 .help = "by how much MemAvailable fell: sampled, the smallest of three runs or more"},
};

enum metric metric_find(const char *name)
{
	int metric = 0;

	while (metric < METRIC_COUNT && strcmp(metric_rows[metric].name, name) != 0)
		metric++;
	return (enum metric)metric;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t result;

	return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* What is unknown makes no tolerance. */
static uint64_t product(uint64_t a, uint64_t b)
{
	return a == ST_UNKNOWN || b == ST_UNKNOWN ? 0 : multiply(a, b);
}

/* In whole units, rounded down; exact, which a double is not from 2^53 on. */
static uint64_t share_of(double share, uint64_t baseline)
{
	uint64_t parts = (uint64_t)(share * 10000 + 0.5);

	return baseline / 10000 * parts + baseline % 10000 * parts / 10000;
}

/* Bytes in a metric's unit. */
static uint64_t in_unit(enum metric_unit unit, uint64_t bytes, uint64_t weights)
{
	if (unit == METRIC_BYTES)
		return bytes;
	if (!weights || weights == ST_UNKNOWN)
		return 0;
	bytes = multiply(bytes, METRIC_RATIO_ONE);
	return bytes == UINT64_MAX ? UINT64_MAX : bytes / weights;
}

/*
 * What several threads bring and let go again is there at a time or one after the other: that of all threads but one may
 * come on top. In another order all that is there at once was there by itself, so what was 0 stays 0.
 */
static uint64_t others_bring(uint64_t bytes, uint64_t baseline, const struct metric_scale *scale)
{
	return bytes_min(bytes, multiply(baseline, scale->threads - 1));
}

/* Files that are mapped, and copies of their pages. */
static uint64_t files_move(uint64_t baseline, const struct metric_scale *scale)
{
	return others_bring(product(scale->released, scale->threads - 1), baseline, scale);
}

/*
 * By how much a sum moves: by what staging and anonymous copies, which are in it, may move. The device memory that an
 * allocator packs by the order in which they come is within the least that staging may.
 */
static uint64_t sums_move(const struct metric_row *row, const struct metric_scale *scale)
{
	uint64_t staging = others_bring(product(scale->threads, scale->largest_tensor), scale->staged, scale);
	uint64_t bytes = bytes_max(staging, files_move(scale->copied, scale));

	return in_unit(row->unit, bytes_max(bytes, metric_rows[METRIC_STAGING].least), scale->weights);
}

uint64_t metric_tolerance(enum metric metric, uint64_t baseline, const struct metric_scale *scale)
{
	const struct metric_row *row = &metric_rows[metric];
	uint64_t tolerance = bytes_max(row->least, share_of(row->share, baseline));
	bool several = scale->threads != ST_UNKNOWN && scale->threads > 1;

	if (row->by_thread)
		tolerance = bytes_max(tolerance, product(scale->threads, scale->largest_tensor));
	if (row->is_sum && several)
		tolerance = bytes_max(tolerance, sums_move(row, scale));
	if (row->by_files && several)
		tolerance = bytes_max(tolerance, files_move(baseline, scale));
	if (row->by_mapping)
		tolerance = bytes_max(tolerance, product(scale->mappings, scale->page_size));
	return tolerance;
}

static void print_ratio(struct range value, char *text)
{
	double lo = (double)value.lo / METRIC_RATIO_ONE, hi = (double)value.hi / METRIC_RATIO_ONE;

	if (range_is_exact(value))
		snprintf(text, METRIC_TEXT, "%.4f", lo);
	else if (range_is_open(value))
		snprintf(text, METRIC_TEXT, "at least %.4f", lo);
	else if (!value.lo)
		snprintf(text, METRIC_TEXT, "up to %.4f", hi);
	else
		snprintf(text, METRIC_TEXT, "%.4f to %.4f", lo, hi);
}

static void print_bytes(struct range value, char *text)
{
	struct emit_field field = emit_interval(NULL, value.lo, value.hi);
	char *words = emit_value_text(&field);

	if (words)
		snprintf(text, METRIC_TEXT, "%s", words);
	else
		snprintf(text, METRIC_TEXT, "%" PRIu64 " to %" PRIu64 " bytes", value.lo, value.hi);
	free(words);
}

char *metric_print(enum metric metric, struct range value, char text[METRIC_TEXT])
{
	if (!value.lo && range_is_open(value))
		snprintf(text, METRIC_TEXT, "unknown");
	else if (metric_rows[metric].unit == METRIC_RATIO)
		print_ratio(value, text);
	else
		print_bytes(value, text);
	return text;
}
