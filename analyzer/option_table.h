/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a command as a table: parsing, --help and what README says come from it (options.c,
 * check_options.c, diff_options.c).
 */
#ifndef SPARKTRACE_OPTION_TABLE_H
#define SPARKTRACE_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the value of one option to `at`; negative errno when it is wrong. `text` is NULL where it was left out. */
typedef int option_parser(const char *text, void *at);

struct option_row {
	const char *name;
	const char *argument; /* NULL: a switch, bool at the offset; "[=N]": may be left out */
	option_parser *parse;
	size_t offset; /* of the value in the command's struct */
	const char *help;
};

struct option_table {
	const struct option_row *rows;
	size_t count;
};

#define OPTION_ROWS_MAX 64

/*
 * Parses a command line into the struct at `options`, which has its defaults; *ret_first becomes the index of the first
 * operand in the (permuted) argv. -EINVAL after a line on stderr when an option is wrong.
 */
int option_table_parse(const struct option_table *table, int argc, char **argv, void *options,
                       int *ret_first);

/* The part of --help that lists the options. */
void option_table_print(const struct option_table *table, FILE *out);

/* Parsers: to a uint64_t each, never ST_UNKNOWN; option_text to a const char *. */
option_parser option_size, option_count, option_text;

#endif
