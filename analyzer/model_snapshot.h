/* SPDX-License-Identifier: Apache-2.0 */
/* The whole pool at one moment, as somebody asked for it: model_options.at, model.at. */
#ifndef SPARKTRACE_MODEL_SNAPSHOT_H
#define SPARKTRACE_MODEL_SNAPSHOT_H

#include <analyzer/model.h>

/* Memory that was there at one moment, by kind and by the stack that asked for it. */
enum snapshot_region { SNAPSHOT_DEVICE, SNAPSHOT_PINNED, SNAPSHOT_HOST, SNAPSHOT_REGIONS };

struct snapshot_block {
	enum snapshot_region region; /* HOST: blocks above the recorder's threshold */
	uint32_t stack;
	uint64_t count, bytes; /* count 0: not known */
};

/* Mappings of a weight file that are alike: prot, flags, stack. */
struct snapshot_mapping {
	uint32_t file, prot, flags, stack;
	uint64_t bytes;
};

struct snapshot_file {
	struct residency_at at;
	uint64_t mapped;
	bool touched; /* so far */
};

enum snapshot_state {
	SNAPSHOT_SHOWN,
	SNAPSHOT_NEVER,   /* the run never came to a moment of that name */
	SNAPSHOT_BEFORE,  /* before the program's start */
	SNAPSHOT_AFTER,   /* after its last event */
	SNAPSHOT_NO_CLOCK /* the trace does not tell the time of day */
};

/* The pool at the moment that model_options.at asks for. */
struct snapshot {
	enum snapshot_state state; /* the rest only if SHOWN */
	struct moment moment;
	const char *event; /* the program's last one, or the one that is about to be; NULL: none yet */
	uint64_t event_time;
	uint32_t thread, stack;      /* of it */
	struct snapshot_file *files; /* one for each of the model's */
	size_t mapping_count, block_count;
	struct snapshot_mapping *mappings;
	struct snapshot_block *blocks; /* most bytes first */
};

void snapshot_free(struct snapshot *snapshot);

#endif
