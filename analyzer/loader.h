/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which known loaders stand in a call stack. Python frames are told apart by the distribution that their file belongs
 * to, native ones by that or, where nothing was installed by pip, by their module's name. A new loader is a row of
 * the table in loader.c.
 */
#ifndef SPARKTRACE_LOADER_H
#define SPARKTRACE_LOADER_H

#include <analyzer/names.h>

struct known_loader {
	const char *name;    /* as people call it */
	const char *package; /* distribution, '_' for '-', NULL: comes in none */
	const char *module;  /* beginning of the name of native modules, NULL */
	const char *folder;  /* part of the path of Python files without a distribution, NULL */
	bool base;           /* everything stands on it: it is the loader only where nothing else is */
};

/* One loader in a stack, and its frames there. */
struct loader_seen {
	const struct known_loader *known;
	const struct package *package; /* NULL: no metadata, the version is unknown */
	const char *function, *file;   /* innermost frame: who called the next one; NULL: unknown */
	const char *entry;             /* function of the outermost frame: what was called */
	uint32_t line;                 /* 0: unknown */
};

#define CHAIN_MAX 8

/* Outermost first, each loader once. */
struct loader_chain {
	struct loader_seen seen[CHAIN_MAX];
	unsigned count;
	bool slice; /* it goes through the slice of a safetensors file, which is read in another way than a tensor */
	/* Innermost frame that belongs to no distribution and no loader: the user's own line. */
	const char *caller, *caller_file;
	uint32_t caller_line;
};

void loader_chain_find(const struct names *names, uint32_t stack, struct loader_chain *ret_chain);

#endif
