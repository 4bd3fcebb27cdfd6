/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of a GGUF file, versions 2 and 3, little-endian: "GGUF", u32 version, u64 tensors, u64 pairs; the pairs (key,
 * type, value); the tensors (name, u32 dimensions, their u64 lengths, u32 type, u64 offset); the data, from
 * the next multiple of general.alignment on. It is walked twice, since only its end tells where the data begin.
 */
#ifndef SPARKTRACE_RECORDER_GGUF_H
#define SPARKTRACE_RECORDER_GGUF_H

#include "source.h"
#include "tensor.h"

struct gguf;

/* The descriptor stays the caller's. 0; -EINVAL: no such file; -ENOMEM; read errors. `cache` may be NULL. */
int gguf_open(int fd, uint64_t file_size, const struct source_cache *cache, struct gguf **ret_reader);

/* TENSOR_READ, TENSOR_STEP (a bounded piece of work), TENSOR_END; -EINVAL: see gguf_source; a read error. */
int gguf_next(struct gguf *reader, struct file_tensor *ret_tensor);

/* What is wrong and where, and what was read. */
const struct source *gguf_source(const struct gguf *reader);

void gguf_free(struct gguf *reader);

#endif
