/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `check` and `diff` compare of two runs. None of the gated ones depends on the disk, on what was cached
 * before, or on who else runs on the machine; each is a maximum over the load (until the steps begin).
 */
#ifndef SPARKTRACE_METRICS_H
#define SPARKTRACE_METRICS_H

#include <analyzer/range.h>
#include <stdbool.h>
#include <stdint.h>

enum metric {
	METRIC_DEVICE,   /* V */
	METRIC_STAGING,  /* P, and S outside P, together at one instant */
	METRIC_ANON,     /* A */
	METRIC_HOST,     /* host blocks asked for since the first weight byte, without S */
	METRIC_MODELLED, /* V + P + A + S */
	METRIC_FACTOR,   /* the same by the bytes of the weights */
	METRIC_MAPPED,   /* bytes of weight files mapped */
	METRIC_READ,     /* bytes of weight files read by calls, by the bytes of the weights */
	METRIC_POOL,     /* by how much MemAvailable fell: sampled */
	METRIC_COUNT
};

/* Values are integers: bytes, or ratios in units of 1 / METRIC_RATIO_ONE. */
enum metric_unit { METRIC_BYTES, METRIC_RATIO };
#define METRIC_RATIO_ONE 10000u

/*
 * A value fails where it is above the baseline by more than the largest of these. A metric that is `sampled` is never
 * judged by fewer than METRIC_RUNS runs, of which the smallest counts; above `warn` of the baseline it warns.
 */
struct metric_row {
	const char *name; /* as in baselines and on the command line: "load_device_peak" */
	enum metric_unit unit;
	double share;   /* of the baseline */
	uint64_t least; /* in the metric's unit */
	bool by_thread; /* the largest tensor for each loader thread */
	/* Where there are several threads: how many files are there at a time; what staging and copies move by is in the sums. */
	bool by_files, is_sum;
	bool by_mapping; /* a page for each mapping */
	bool sampled;
	double warn;      /* share of the baseline, 0: it never warns */
	const char *help; /* one line, for --help and README */
};

#define METRIC_RUNS 3

extern const struct metric_row metric_rows[METRIC_COUNT];

/* METRIC_COUNT: no metric of that name. */
enum metric metric_find(const char *name);

/* What a metric's tolerance depends on beside the baseline's value. */
struct metric_scale {
	uint64_t threads, largest_tensor, mappings, page_size;
	uint64_t weights;  /* bytes */
	uint64_t released; /* most bytes that one weight file had mapped which was let go during the load */
	uint64_t staged, copied; /* load_staging_peak, load_anonymous_copy_peak: upper ends */
};

/* By how much a value may be above `baseline`, in the metric's unit. */
uint64_t metric_tolerance(enum metric metric, uint64_t baseline, const struct metric_scale *scale);

#define METRIC_TEXT 48
/* For people: "1.50 GiB", "512 MiB", "2.0012"; an interval as "1.00 to 1.50 GiB", "at least 1.00 GiB". Returns `text`. */
char *metric_print(enum metric metric, struct range value, char text[METRIC_TEXT]);

#endif
