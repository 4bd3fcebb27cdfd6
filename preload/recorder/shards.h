/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharded checkpoints: where a weight file of the program lies beside an index that names it, an `index` record and
 * a `file` record for each shard that is there, opened or not.
 */
#ifndef SPARKTRACE_RECORDER_SHARDS_H
#define SPARKTRACE_RECORDER_SHARDS_H

#include "index.h"
#include "weights.h"

/* An index that has been read. */
struct shards_index {
	char *folder, *name;
	struct index *index;
};

/* A weight file whose index is looked for. */
struct shards_job {
	char *folder, *name; /* of the file; the folder without its last slash */
	uint64_t since;
};

struct shards {
	struct shards_job *jobs;
	uint32_t count, room;
	struct shards_index *found;
	uint32_t found_count, found_room;
	uint64_t page_size;
	uint32_t next_file; /* identifiers given so far */

	/* Of the first job: the index files beside it, and the one that is being read. */
	char **candidates;
	uint32_t candidate_count, candidate;
	bool listed;
	int fd; /* -1: none */
	struct index *index;
	struct cache_file file_now;
	struct cache cache_now;
	uint32_t announced; /* shards of the index found last that have been said */
};

void shards_init(struct shards *shards, uint64_t page_size);
void shards_release(struct shards *shards);

/* A weight file was seen. `folder`: where a relative path starts. */
void shards_add(struct shards *shards, const char *path, const char *folder);

/* One piece of work. True: there is more that can be done now. */
bool shards_work(struct shards *shards, struct weights *weights, struct out *out, bool hurry);

#endif
