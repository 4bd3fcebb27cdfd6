/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A baseline: a small JSON file that lives in the user's repository. Keys sorted, a metric a line, so that a number that
 * moves is a line that moves:
 *
 *	{
 *	  "fingerprint": {
 *	    "allocator": "...",
 *	    ...
 *	  },
 *	  "largest": {
 *	    "load_anonymous_copy_peak, file model.safetensors": 1073741824,
 *	    ...					what the metrics consisted of, the largest parts only
 *	  },
 *	  "metrics": {
 *	    "load_anonymous_copy_peak": 1073741824,
 *	    "load_factor": 2.0012,		an interval is [low, high] on one line
 *	    ...
 *	  },
 *	  "schema": 1,
 *	  "versions": {
 *	    "safetensors": "0.8.0",
 *	    ...
 *	  },
 *	  "weights": 1073741824
 *	}
 *
 * In its place `check` takes a trace of an earlier run as well.
 */
#ifndef SPARKTRACE_BASELINE_H
#define SPARKTRACE_BASELINE_H

#include <analyzer/measure.h>

#define BASELINE_SCHEMA 1

/* A measure of which path, values, scale, fingerprint, versions, weights and a part of the breakdown are filled. */

/* 0, or a negative errno after a line on stderr: "FILE:LINE: what is wrong". */
int baseline_read(const char *path, struct measure *ret_baseline);

/* Replaces the file as a whole, or leaves it. 0 or a negative errno. */
int baseline_write(const char *path, const struct measure *measure);

#endif
