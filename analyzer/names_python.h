/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `names` that knows Python: functions, the frames of stacks, installed distributions. */
#ifndef SPARKTRACE_NAMES_PYTHON_H
#define SPARKTRACE_NAMES_PYTHON_H

#include "livemap.h"
#include "names.h"

struct code;
struct python_stack;

/* The package of one file, once looked for: the same until there are more packages. */
struct package_known {
	const struct package *package;
	size_t asked; /* 0: never; else 1 + the number of packages then */
};

/* A zeroed one is empty and ready. */
struct names_python {
	struct code *codes;
	size_t code_count, code_room;
	struct python_stack *stacks;
	size_t stack_count, stack_room;
	struct livemap code_at, stack_at; /* by identifier; a: index */
	void *packages;                   /* tree of struct owner, by folder */
	size_t package_count;
};

void names_python_release(struct names_python *python);

/* A `code`, `frames` or `package` record: 0 or -ENOMEM. Others are ignored; so is a second one of the same. */
int names_python_record(struct names_python *python, const struct st_record *record);

/* As the functions of names.h. */
size_t python_depth(const struct names_python *python, uint32_t stack);
struct python_frame python_frame(const struct names_python *python, uint32_t stack, size_t i);
bool python_is_cut(const struct names_python *python, uint32_t stack);
const struct package *python_package(const struct names_python *python, const char *path);

/* The same for a file that is asked for over and over. */
const struct package *python_package_of(const struct names_python *python, const char *path,
                                        struct package_known *known);

#endif
