/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines without secrets. */
#ifndef SPARKTRACE_RECORDER_SCRUB_H
#define SPARKTRACE_RECORDER_SCRUB_H

#include <stddef.h>

/*
 * Copies arguments (NUL after each, as in /proc/PID/cmdline, `bytes` in all) as one line with blanks
 * between, quoted where they hold blanks. *** stands for values of names that end in token, key,
 * secret, password and the like (NAME=VALUE, --name=VALUE, --name VALUE), for user and password in
 * addresses, and for words that look like the tokens of known services. Cut at size - 1.
 */
void scrub_arguments(const char *arguments, size_t bytes, char *ret_line, size_t size);

#endif
