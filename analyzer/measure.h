/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run, measured for a comparison: its metrics, what they consist of, under which circumstances they were taken, and
 * what must be known before they are compared with others.
 */
#ifndef SPARKTRACE_MEASURE_H
#define SPARKTRACE_MEASURE_H

#include <analyzer/breakdown.h>
#include <analyzer/budget.h>
#include <analyzer/metrics.h>
#include <analyzer/model.h>
#include <analyzer/options.h>
#include <analyzer/run.h>

/* What two runs must have in common to be comparable. Texts are never NULL. */
struct fingerprint {
	char *allocator; /* how device memory was asked for: settings that the program was given, and the
	                          * kind of driver call that gave most bytes: "vmm (expandable_segments:True)" */
	const char *
		device; /* "unified", "discrete", "simulated", "none": it never came to the driver; "unknown" */
	char *relief;   /* SPARKTRACE_RELIEF: "off", ... */
	uint64_t heap_threshold; /* bytes from which host blocks are recorded, ST_UNKNOWN */
	/*
	 * Threads that loaded weights. Of small tensors it is chance how many of a pool's threads get one, so other counts
	 * are another circumstance only where they matter: where the larger count times the largest tensor is more than
	 * what load_staging_peak may move by anyhow (metric_rows[METRIC_STAGING].least).
	 */
	uint64_t threads;
	uint64_t page_size, processes;
};

/* A distribution in the stacks that loaded weights. No part of the fingerprint: an upgrade is what people test. */
struct measure_version {
	char *name, *version; /* "safetensors", "0.8.0"; version "unknown" where no metadata tells */
};

struct measure {
	const char *path;                  /* of the trace; of several processes the first one's */
	struct range values[METRIC_COUNT]; /* in the metric's unit; RANGE_UNKNOWN: not measured, see gaps */
	char *gaps
		[METRIC_COUNT]; /* why a value cannot be compared, as a sentence without its end; NULL: it can */
	char *unusable;         /* why none can (lost events, damaged blocks, no load, ...), NULL */
	struct metric_scale scale;
	struct fingerprint fingerprint;
	struct measure_version *versions; /* by name */
	size_t version_count;
	uint64_t weights; /* bytes */
	bool finished;    /* the load came to its end; else values are lower bounds */
	bool unproven;    /* not even lower bounds of sums: what is missing may have been a release */
	/*
	 * At least so many bytes came with the load, as samples saw, that are in no metric: host blocks below the threshold,
	 * and what a program maps by itself. load_host_peak does not count them.
	 */
	uint64_t uncounted;
	struct breakdown breakdown;

	const struct model *model; /* of all processes together where there are several */
	struct run_total *total;   /* NULL: of one process */
	struct reader *reader;     /* of one process, else NULL */
};

/* Of the scale what comes from the values. */
static inline void measure_scale(struct measure *measure)
{
	measure->scale.staged = measure->values[METRIC_STAGING].hi;
	measure->scale.copied = measure->values[METRIC_ANON].hi;
}

/* Runs, in the order in which the first trace of each was named. */
struct measures {
	struct measure *runs;
	size_t count;
	struct run_set **sets; /* whose cards and paths the runs refer to */
	size_t set_count;
};

/*
 * Reads the operands: traces of one run (its processes, on one machine) are one measure, others one each; a folder is its
 * newest run. 0, or a negative errno after a line on stderr that names the file.
 */
int measures_read(char *const *operands, int count, struct measures *ret_measures);
void measures_release(struct measures *measures);

#endif
