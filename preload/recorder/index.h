/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a sharded checkpoint (model.safetensors.index.json, pytorch_model.bin.index.json): JSON with
 * `metadata.total_size` and `weight_map`, tensor name to file name.
 */
#ifndef SPARKTRACE_RECORDER_INDEX_H
#define SPARKTRACE_RECORDER_INDEX_H

#include "source.h"

#include <stdbool.h>
#include <stdint.h>

#define INDEX_SHARDS (1u << 14)

struct index;

/* The descriptor stays the caller's. 0 or -ENOMEM. `cache` may be NULL. */
int index_open(int fd, uint64_t file_size, const struct source_cache *cache, struct index **ret_index);

/* Reads on, a bounded piece. 1: there is more; 0: that was its end; -EINVAL: see index_error; -ENOMEM; a read error. */
int index_read(struct index *index);

const char *index_error(const struct index *index);

/* ST_UNKNOWN where it does not say. */
uint64_t index_total(const struct index *index);
uint64_t index_tensors(const struct index *index);

/* Bytes that came into the page cache because of us. */
uint64_t index_own(const struct index *index);

/* Names of files in the index's own folder; others are refused, counted, and not among them. */
uint32_t index_shards(const struct index *index);
const char *index_shard(const struct index *index, uint32_t i);
bool index_names(const struct index *index, const char *shard);
uint64_t index_refused(const struct index *index);

void index_free(struct index *index);

#endif
