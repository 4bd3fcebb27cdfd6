/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the numbers of a trace are called: frames of stacks with their function and module, native and Python,
 * the installed distributions that these files belong to, threads. Fed with every record; looks at `stack`,
 * `module`, `symbol`, `thread`, `code`, `frames` and `package` only.
 */
#ifndef SPARKTRACE_NAMES_H
#define SPARKTRACE_NAMES_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

struct names;

/* An installed distribution, from its metadata. */
struct package {
	const char *name, *version;
	const char *folder; /* absolute; the file itself for a module of one file */
};

struct frame {
	uint64_t address;
	const char *function;          /* as the trace has it, mangled; NULL: unknown */
	uint64_t offset;               /* in the function, or in the module's file where it is unknown */
	const char *module;            /* path, NULL: unknown */
	const struct package *package; /* that the module belongs to: see names_package() */
};

/* A Python frame. function and file are NULL where the trace has lost them. */
struct python_frame {
	const char *function;          /* qualified: "Trainer.train", "load.<locals>.<lambda>" */
	const char *file;              /* as the interpreter has it: absolute, relative, or "<string>" */
	uint32_t line;                 /* where it is, 0: unknown */
	uint32_t first_line;           /* of the function */
	const struct package *package; /* that the file belongs to: see names_package() */
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

/* Number of Python frames of a stack, innermost first; 0: none, or not known. */
size_t names_python_depth(const struct names *names, uint32_t stack);

/* Python frame `i` < names_python_depth(). The strings live as long as `names`. */
struct python_frame names_python_frame(const struct names *names, uint32_t stack, size_t i);

/* There were more Python frames than these. */
bool names_python_is_cut(const struct names *names, uint32_t stack);

/*
 * The distribution that a file belongs to: the one whose folder is the longest that holds `path`, or whose only
 * file it is. NULL: none that the trace knows of; also for a `path` of NULL. Lives as long as `names`.
 */
const struct package *names_package(const struct names *names, const char *path);

/* What stands behind the last slash; NULL stays. */
const char *names_base(const char *path);

/* A Python file of the interpreter itself (lib/python3.11/threading.py, but none of site-packages), or no file. */
bool names_is_standard(const char *file);

/* Name of a thread, NULL if the trace has none. */
const char *names_thread(const struct names *names, uint32_t tid);

#endif
