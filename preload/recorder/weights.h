/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tensor` records: the tables of weight files, read a piece at a time, and preferably once the program has read
 * them itself, so that we bring nothing into the page cache.
 */
#ifndef SPARKTRACE_RECORDER_WEIGHTS_H
#define SPARKTRACE_RECORDER_WEIGHTS_H

#include "cache.h"
#include "table.h"

/* Which file it is, whatever its name. */
struct weights_key {
	uint64_t dev, ino, size;
};

struct weights_job {
	uint32_t file; /* identifier */
	enum st_file_format format;
	uint64_t since, ready; /* when it came; when its table was first seen in the page cache, 0: not yet */
	char *path;            /* of a file that the program has not opened: ours to open; else NULL */
	int fd;                /* opened for the path, -1: not */
	struct table *table;   /* NULL: not begun */
	struct cache_file file_now; /* the file as the table's reader asks for it in the page cache */
	const struct cache *cache;
};

struct weights {
	struct weights_job **jobs;
	uint32_t count, room;
	struct weights_key *known; /* files that have, or had, a job */
	uint32_t known_count, known_room;
};

/* The table of this file is to be read, unless it was already. */
void weights_add(struct weights *weights, const struct st_ev_file *file);

/* The same of a file that the program has not opened, yet. */
void weights_promise(struct weights *weights, const struct st_ev_file *file, const char *path);

/* One piece of work. `hurry`: now, cached or not. True: there is more that can be done now. */
bool weights_work(struct weights *weights, struct cache *cache, struct out *out, bool hurry);

void weights_release(struct weights *weights);

#endif
