/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the numbers of a trace are called: frames of stacks with their function and module, threads.
 * Fed with every record; looks at `stack`, `module`, `symbol` and `thread` only.
 */
#ifndef SPARKTRACE_NAMES_H
#define SPARKTRACE_NAMES_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

struct names;

struct frame {
	uint64_t address;
	const char *function; /* as the trace has it, mangled; NULL: unknown */
	uint64_t offset;      /* in the function, or in the module's file where it is unknown */
	const char *module;   /* path, NULL: unknown */
};

/* 0 or -ENOMEM. */
int names_create(struct names **ret_names);
void names_free(struct names *names);

/* 0 or -ENOMEM. */
int names_record(struct names *names, const struct st_record *record);

/* Number of frames of a stack, innermost first; 0 for an unknown stack. */
size_t names_depth(const struct names *names, uint32_t stack);

/* Frame `i` < names_depth(). The strings live as long as `names`. */
struct frame names_frame(const struct names *names, uint32_t stack, size_t i);

/* The stack was cut short by the unwinder. */
bool names_stack_is_cut(const struct names *names, uint32_t stack);

/* Name of a thread, NULL if the trace has none. */
const char *names_thread(const struct names *names, uint32_t tid);

#endif
