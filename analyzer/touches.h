/* SPDX-License-Identifier: Apache-2.0 */
/* Who touched which weight file how much: opens, maps, reads and copies, by file and call stack. */
#ifndef SPARKTRACE_TOUCHES_H
#define SPARKTRACE_TOUCHES_H

#include <analyzer/model.h>

struct touch {
	uint32_t file;                      /* weight index; CATALOG_NONE: bytes that may be of any file */
	uint32_t stack;                     /* 0: unknown */
	uint64_t opens, mapped, read;       /* opens: times; bytes */
	uint64_t copied[COPY_SOURCE_COUNT]; /* bytes to the device, by where they came from */
};

/* A zeroed one is empty and ready. */
struct touches {
	struct touch *touches;
	size_t count, room; /* open addressing; room is 0 or a power of two */
	uint64_t dropped;   /* touches for which there was no room */
};

void touches_release(struct touches *touches);

/* The touch of this file from this stack; NULL, and counted, where no more are kept. */
struct touch *touches_get(struct touches *touches, uint32_t file, uint32_t stack);

/* After the last touches_get(): closes up the table, in the order of files and stacks. */
void touches_sort(struct touches *touches);

#endif
