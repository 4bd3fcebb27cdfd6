/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `check`. */
#ifndef SPARKTRACE_CHECK_COMMAND_H
#define SPARKTRACE_CHECK_COMMAND_H

#include <analyzer/check.h>

/* As option_table_parse(). */
int check_options_parse(int argc, char **argv, struct check_options *ret_options, int *ret_first);
/* The whole of --help. */
void check_options_print(FILE *out);

#endif
