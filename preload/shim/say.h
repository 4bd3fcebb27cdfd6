/* SPDX-License-Identifier: Apache-2.0 */
/* The only words to the user: lines on stderr, `sparktrace: ...`. Nothing when SPARKTRACE_QUIET=1. */
#ifndef SPARKTRACE_SHIM_SAY_H
#define SPARKTRACE_SHIM_SAY_H

/* Remembers which file stderr is; the constructor calls it. A program may put its own file at 2 later. */
void say_prepare(void);

/* "sparktrace: WHAT DETAIL: ERROR"; detail may be NULL, error is a negative errno or 0. Not after SPARKTRACE_QUIET=1. */
void say(const char *what, const char *detail, int error);

/* The one line about a recording that cannot be made or is incomplete: the first call speaks, the others do not. */
void say_once(const char *what, const char *detail, int error);

#endif
