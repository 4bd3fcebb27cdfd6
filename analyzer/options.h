/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the report. One table in options.c gives parsing, --help and what README must say. */
#ifndef SPARKTRACE_OPTIONS_H
#define SPARKTRACE_OPTIONS_H

#include <analyzer/when.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Rungs of the ladder, in its order; options name them in --tried. */
enum rung { RUNG_FLUSH, RUNG_LOAD, RUNG_PACK, RUNG_METHOD, RUNG_SPARKS, RUNG_COUNT };

enum method { METHOD_UNKNOWN, METHOD_FULL, METHOD_LORA, METHOD_QLORA, METHOD_COUNT };

extern const char *const rung_names[RUNG_COUNT];     /* "1", "1b", "2", "3", "4" */
extern const char *const method_names[METHOD_COUNT]; /* "unknown", "full", "lora", "qlora" */

/* Numbers that were not given are ST_UNKNOWN (format.h), which is not 0. */
struct options {
	bool json, uma, fixed_pack, together, help;
	uint64_t budget, reserve, band, pool;   /* bytes */
	uint64_t optimizer_bytes;               /* optimizer states and gradients */
	uint64_t pack, batch;                   /* tokens, sequences */
	uint64_t parameters, linear_parameters; /* of the model; of its linear layers */
	uint64_t trainable_parameters;          /* of the adapters, or all in a full fine-tune */
	double quantised_bytes;                 /* per parameter of the quantised form, 0: not given */
	uint64_t tried;                         /* bit 1 << enum rung */
	uint64_t method;                        /* enum method */
	bool files;                             /* the section of every weight file */
	uint64_t tensors;                       /* tensors to show; ST_UNKNOWN: no section of them */
	struct when at;                         /* the moment to show */
	const char *ring;                       /* path of a ring to read with the trace, or NULL */
};

/*
 * Parses the command line of the report into *ret_options; *ret_first becomes the index of the first
 * operand in the (permuted) argv. Returns -EINVAL after a line on stderr when an option is wrong.
 */
int options_parse(int argc, char **argv, struct options *ret_options, int *ret_first);

/* The part of --help that lists the options. */
void options_print(FILE *out);

#endif
