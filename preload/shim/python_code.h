/* SPDX-License-Identifier: Apache-2.0 */
/* Python functions (code objects) that occur in stacks: recognised, written to the ring once each. */
#ifndef SPARKTRACE_SHIM_PYTHON_CODE_H
#define SPARKTRACE_SHIM_PYTHON_CODE_H

#include "peek.h"
#include "python_layout.h"

struct python_code {
	uintptr_t address, name, file, lines;
	uint32_t first_line, version, traceable;
	uint64_t units; /* its length; an instruction has one or more */
};

/* The code object at `address`, whose type is at `type`. False: there is none. */
bool python_code_read(struct peek *seen, const struct python_layout *layout, uintptr_t type,
                      uintptr_t address, struct python_code *ret_code);

/*
 * Its identifier and the line of the instruction at `unit`, as a word of a `frames` record; writes the `code` record
 * when it is new. The identifier is 0 when there was no room.
 */
uint64_t python_code_word(struct peek *seen, const struct python_layout *layout,
                          const struct python_code *code, uint32_t unit);

/* A fork child starts a trace of its own. */
void python_code_reset(void);

#endif
