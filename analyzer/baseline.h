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
 *	  "scale": {
 *	    "largest_tensor": 134217728,
 *	    "mappings": 1,		what tolerances depend on beside the values
 *	    "released": 0
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

/* What two runs must have in common (struct fingerprint), by name. */
struct fingerprint_row {
	const char *name;  /* as in baselines: "page_size" */
	const char *label; /* for people: "page size" */
	enum { FINGERPRINT_TEXT, FINGERPRINT_WORD, FINGERPRINT_BYTES, FINGERPRINT_COUNT } type;
	size_t offset; /* in struct fingerprint: of a text, or of a uint64_t that may be ST_UNKNOWN */
	const char *const *words; /* of FINGERPRINT_WORD: all there are, then NULL */
};

#define FINGERPRINT_ROWS 7
extern const struct fingerprint_row fingerprint_rows[FINGERPRINT_ROWS];

bool fingerprint_equal(const struct fingerprint_row *row, const struct fingerprint *a,
                       const struct fingerprint *b);
bool fingerprint_known(const struct fingerprint_row *row, const struct fingerprint *fingerprint);
/* The value for people, to be freed: "4096 bytes", "unified", "unknown". NULL: no memory. */
char *fingerprint_text(const struct fingerprint_row *row, const struct fingerprint *fingerprint);

/*
 * Reads a baseline, or a trace (told by its content), into measures of exactly one run; `path` is kept. Of a file path,
 * values, scale, fingerprint, versions, weights and a part of the breakdown are filled; values that it lacks are
 * RANGE_UNKNOWN. 0, or a negative errno after a line on stderr: "FILE:LINE: what is wrong"; -ENOENT: there is no such file,
 * and no line.
 */
int baseline_read(const char *path, struct measures *ret_baseline);

/* Did it come from a baseline file, which has the largest parts only? */
static inline bool baseline_is_file(const struct measure *baseline)
{
	return !baseline->model;
}

#define BASELINE_PARTS      8
#define BASELINE_PART_LEAST (UINT64_C(1) << 20)
#define BASELINE_NAME_MAX   1024 /* bytes of the name of a part: longer ones are not worth a line */

/*
 * Bytes of a part that a baseline file does not name: those that it does are all that were large enough, up to
 * BASELINE_PARTS of a metric, but for those whose names are too long.
 */
struct range baseline_unnamed(const struct measure *baseline, enum metric metric, const char *name);

/*
 * Replaces the file as a whole, or leaves it; values that are RANGE_UNKNOWN are left out. What was written, baseline_read()
 * takes. 0, or a negative errno: -ENODATA: no value is known; -EFBIG: larger than a baseline may be.
 */
int baseline_write(const char *path, const struct measure *measure);

#endif
