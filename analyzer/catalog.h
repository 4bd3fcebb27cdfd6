/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files and tensors that a trace names. Weight files have dense indices from 0; tensors are sorted by file
 * and offset once the whole trace has been seen, because the recorder writes them when it gets to them.
 */
#ifndef SPARKTRACE_CATALOG_H
#define SPARKTRACE_CATALOG_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

#define CATALOG_NONE UINT32_MAX

struct catalog_file {
	char *path;
	uint32_t id;
	enum st_file_format format;
	uint64_t dev, ino, size;
	uint64_t payload;                  /* bytes of its tensors; `size` where they are unknown */
	size_t tensor_first, tensor_count; /* after catalog_sort() */
	uint32_t shard, shards;            /* of x-00002-of-00008.*, else 0 */
	size_t stem;                       /* bytes of the path before these, else 0 */
	uint32_t index;                    /* + 1 of the index that names it, 0: none */
	bool opened;                       /* by the program; false: only its index was there */
};

/* The index of a sharded checkpoint. Its shards that are there are files of the catalog. */
struct catalog_index {
	char *path;
	uint64_t total_size; /* ST_UNKNOWN */
	uint64_t shards, tensors;
};

struct catalog_tensor {
	char *name;
	uint32_t file; /* weight index */
	enum st_dtype dtype;
	uint64_t offset, size, elements;
};

/* A zeroed one is empty and ready. */
struct catalog {
	struct catalog_file *files; /* weight files only */
	uint32_t file_count, file_room;
	uint32_t *by_id; /* weight index + 1; 0: no weight file */
	size_t by_id_room;
	struct catalog_tensor *tensors;
	size_t tensor_count, tensor_room;
	struct catalog_index *indexes;
	size_t index_count, index_room;
	uint32_t *by_inode; /* weight index + 1, open addressing; filled once there is an index */
	size_t by_inode_room;
	bool sorted;
};

void catalog_release(struct catalog *catalog);

/* Looks at `file`, `tensor` and `index` records. 0 or -ENOMEM. */
int catalog_record(struct catalog *catalog, const struct st_record *record);

/* Sorts tensors, drops repeated ones, works out payloads. To be called once, at the end of the trace. */
void catalog_sort(struct catalog *catalog);

/* Weight index of a file id of the trace, CATALOG_NONE where that is no weight file. */
uint32_t catalog_weight(const struct catalog *catalog, uint64_t id);

/*
 * First tensor of a file that ends above `offset`, as an index below tensor_first + tensor_count, else that
 * sum. Only after catalog_sort(); before, a file has none.
 */
size_t catalog_tensor_at(const struct catalog *catalog, uint32_t weight, uint64_t offset);

/* The tensor that holds byte `offset` of a weight file, CATALOG_NONE for none. */
uint32_t catalog_tensor_of(const struct catalog *catalog, uint32_t weight, uint64_t offset);

#endif
