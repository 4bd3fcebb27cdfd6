/* SPDX-License-Identifier: Apache-2.0 */
/* Where the program was started: relative paths of settings begin there, and those of LD_PRELOAD did. */
#ifndef SPARKTRACE_SHIM_PLACE_H
#define SPARKTRACE_SHIM_PLACE_H

#include "text.h"

/* Looks where we are, once; the constructor calls it, and whoever comes earlier. */
void place_prepare(void);

/* The folder, absolute; "" when it cannot be told (too long, or removed). */
const char *place_started(void);

/* Begins `text` with that folder and a '/', when `path` is relative, and adds nothing of `path`; marks it as cut when there is none. */
void place_begin(struct text *text, const char *path);

#endif
