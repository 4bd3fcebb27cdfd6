/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of measuring among themselves. */
#ifndef SPARKTRACE_MEASURE_PARTS_H
#define SPARKTRACE_MEASURE_PARTS_H

#include <analyzer/measure.h>
#include <analyzer/reader.h>

/* One process of a run. */
struct measured {
	const struct model *model;
	const struct reader_summary *summary;
};

/* After an error too. */
void measure_release(struct measure *measure);

/* Steps of measuring, each 0 or -ENOMEM: values and scale; fingerprint and versions; gaps and what makes all of it useless. */
void measure_values(struct measure *measure, const struct model *whole, const struct measured *processes,
                    size_t count);
int fingerprint_make(struct fingerprint *fingerprint, const struct model *whole,
                     const struct measured *processes, size_t count);
void fingerprint_release(struct fingerprint *fingerprint);
int measure_versions(struct measure *measure, const struct measured *processes, size_t count);
int measure_gaps(struct measure *measure, const struct model *whole, const struct measured *processes,
                 size_t count);

/* Bits 1 << enum metric of the metrics that a `coverage` record touches; all gated ones for a text that is not known. */
unsigned coverage_touches(const char *text);

#endif
