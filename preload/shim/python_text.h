/* SPDX-License-Identifier: Apache-2.0 */
/* Texts (PyUnicodeObject) of the interpreter, read where they lie. */
#ifndef SPARKTRACE_SHIM_PYTHON_TEXT_H
#define SPARKTRACE_SHIM_PYTHON_TEXT_H

#include "peek.h"
#include "python_layout.h"
#include "text.h"

/* Longest text that is looked at, in characters. */
#define PYTHON_TEXT_MOST 4096u

/*
 * Adds the text at `object` in UTF-8, cut where `to` ends, with `blank` in place of blanks and '?' in place of what no
 * text holds. Bytes of a file name that were no UTF-8 come out as they were. False: there is no text.
 */
bool python_text_add(struct peek *seen, const struct python_layout *layout, uintptr_t object, char blank,
                     struct text *to);

/* Goes on with `hash` over the text's characters; 0: there is no text. */
uint64_t python_text_hash(struct peek *seen, const struct python_layout *layout, uintptr_t object,
                          uint64_t hash);

#endif
