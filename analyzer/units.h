/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and times as people write them, in settings, on the command line and in scenarios.
 *
 *	size	"4096", "0x1000", "512 MiB", "1.5GiB", "2GB" (1000-based), "24G" (as GiB)
 *	time	"12.5s", "300ms", "7us", "40ns", "2min", "1h"; without a unit: ns
 *
 * A fraction that is no whole number of bytes or ns is rounded to the nearest.
 */
#ifndef SPARKTRACE_UNITS_H
#define SPARKTRACE_UNITS_H

#include <stdint.h>

#define UNITS_TEXT 32 /* room that every printed value fits in */

/* 0; -EINVAL: not a size, a time, a number; -ERANGE: above 64 bits. */
int size_parse(const char *text, uint64_t *ret_bytes);
int time_parse(const char *text, uint64_t *ret_ns);
/* A whole number, decimal or "0x..". */
int count_parse(const char *text, uint64_t *ret_count);

/*
 * The shortest exact form: what the parsers read back to the same value. "1.5GiB", "300ms", and the plain
 * number where no unit gives a short number of at most three decimals. Returns `text`.
 */
char *size_print(uint64_t bytes, char text[UNITS_TEXT]);
char *time_print(uint64_t ns, char text[UNITS_TEXT]);

#endif
