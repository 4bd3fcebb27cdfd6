/* SPDX-License-Identifier: Apache-2.0 */
/* The location table of a code object (co_linetable, CPython 3.11 and later). */
#ifndef SPARKTRACE_SHIM_PYTHON_LINE_H
#define SPARKTRACE_SHIM_PYTHON_LINE_H

#include "peek.h"

/*
 * The line of the instruction at `unit` (two bytes each, from the start of the code) by the bytes object `table` of a
 * function that begins in `first_line`. 0: it belongs to no line, or the table cannot be read.
 */
uint32_t python_line(struct peek *seen, uintptr_t table, uint32_t first_line, uint32_t unit);

#endif
