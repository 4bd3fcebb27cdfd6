/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tensor` records: the headers of safetensors files, read a piece at a time, and preferably once the
 * program has read them itself, so that we bring nothing into the page cache.
 */
#ifndef SPARKTRACE_RECORDER_WEIGHTS_H
#define SPARKTRACE_RECORDER_WEIGHTS_H

#include "cache.h"
#include "safetensors.h"

struct weights_job {
	uint32_t file; /* identifier */
	uint64_t since;
	struct safetensors *reader; /* NULL: not begun */
};

struct weights {
	struct weights_job *jobs;
	uint32_t count, room;
};

/* The header of this file is to be read. */
void weights_add(struct weights *weights, uint64_t file);

/* One piece of work. `hurry`: now, cached or not. True: there is more that can be done now. */
bool weights_work(struct weights *weights, struct cache *cache, struct out *out, bool hurry);

void weights_release(struct weights *weights);

#endif
