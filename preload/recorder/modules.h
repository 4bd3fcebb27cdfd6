/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded objects of the program: `module` records, read from its memory map when a stack asks for it. */
#ifndef SPARKTRACE_RECORDER_MODULES_H
#define SPARKTRACE_RECORDER_MODULES_H

#include "out.h"
#include <stdbool.h>

struct module {
	uint64_t start, end, offset, ino;
	uint64_t bias; /* address minus the object's own virtual address */
	char *path;
	bool elf; /* its file could be read */
	/* Of symbols.c. */
	uint64_t pass_cost, pass_next;
};

struct modules {
	uint32_t pid;
	uint64_t start_stack; /* another one: it has become another program by exec; 0: not known */
	struct module *all;   /* by address */
	uint32_t count, room;
	uint64_t cost, next; /* CPU time of reading the map; not before */
};

void modules_init(struct modules *modules, uint32_t pid);

/* The module at an address, NULL: none is known. */
struct module *modules_find(const struct modules *modules, uint64_t address);

/*
 * Reads the memory map again, unless that was just done, and writes a record for each executable
 * mapping that is new. True: it was read, or is no longer that of the program.
 */
bool modules_read(struct modules *modules, struct out *out);

void modules_release(struct modules *modules);

#endif
