/* SPDX-License-Identifier: Apache-2.0 */
/* Values side by side in a sentence: what differs must not read alike. */
#ifndef SPARKTRACE_MEASURE_WORDS_H
#define SPARKTRACE_MEASURE_WORDS_H

#include <analyzer/metrics.h>
#include <stddef.h>

/* Do two of these differ that metric_print() prints alike? "1.00 GiB" and one page more do. */
bool values_look_alike(enum metric metric, const struct range *values, size_t count);

/* As metric_print(); bytes to the last one where `exact`. Returns `text`. */
char *value_print(enum metric metric, struct range value, bool exact, char text[METRIC_TEXT]);

#endif
