/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver's table; its rows are generated from exports/resolver.txt, sorted by base name. */
#ifndef SIMCUDA_RESOLVER_H
#define SIMCUDA_RESOLVER_H

#include <stddef.h>

struct resolver_row {
	const char *base;
	int version; /* first CUDA version that gets this function */
	int twin;    /* 1: uses the calling thread's own default stream */
	void *function;
};

extern const struct resolver_row resolver_rows[];
extern const size_t resolver_count;

#endif
