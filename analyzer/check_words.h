/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of a result as the forms for other programs (JUnit, GitHub, benchmark) say them alike. */
#ifndef SPARKTRACE_CHECK_WORDS_H
#define SPARKTRACE_CHECK_WORDS_H

#include <analyzer/check.h>
#include <analyzer/escape.h>

/* "load_device_peak"; "fit". */
const char *check_line_name(const struct check_line *line);

/*
 * A value in the unit of the line's metric: "1.50 GiB", "unknown"; in bytes where two of the line's numbers that differ would
 * read alike. Returns `text`.
 */
char *check_value_text(const struct check_line *line, struct range value, char text[METRIC_TEXT]);

/* Several runs were measured, so that a spread says something. */
bool check_has_spread(const struct check_result *result, const struct check_line *line);

/* What grew by this line stands by no earlier one: a copy too many is in three metrics at once. */
bool check_grown_is_new(const struct check_result *result, size_t at);

/*
 * "file model.safetensors: 0 bytes -> 1.00 GiB (private writable mapping; ...)", without a line's end; with no baseline
 * only what it is.
 */
void check_print_growth(FILE *out, enum escape how, const struct growth *growth);

/* -EIO after a failed write; 0. */
int check_stream_error(FILE *out);

#endif
