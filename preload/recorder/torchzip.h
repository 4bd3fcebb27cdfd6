/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of a torch checkpoint (torch.save() since 1.6): a zip archive of stored entries NAME/data/N, one a storage,
 * and NAME/data.pkl, which tells which tensors lie in them. Where that pickle is not understood, or names no tensor of
 * it, a storage stands for its tensors under its own name, "data/12".
 */
#ifndef SPARKTRACE_RECORDER_TORCHZIP_H
#define SPARKTRACE_RECORDER_TORCHZIP_H

#include "source.h"
#include "tensor.h"

#define TORCHZIP_MAX (1u << 20) /* storages; what lies beyond is left out and said */

struct torchzip;

/* The descriptor stays the caller's. 0; -EINVAL: no such archive; -ENOMEM; read errors. `cache` may be NULL. */
int torchzip_open(int fd, uint64_t file_size, const struct source_cache *cache, struct torchzip **ret_reader);

/*
 * TENSOR_READ, TENSOR_STEP (a bounded piece of work), TENSOR_END; -EINVAL: the archive is damaged, see
 * torchzip_source; -ENOMEM; a read error.
 */
int torchzip_next(struct torchzip *reader, struct file_tensor *ret_tensor);

/* What is wrong and where, and what was read. */
const struct source *torchzip_source(const struct torchzip *reader);

/* Why tensors have no names, NULL where they do. */
const char *torchzip_nameless(const struct torchzip *reader);

/* Bytes that came into the page cache because of us. */
uint64_t torchzip_own(const struct torchzip *reader);

void torchzip_free(struct torchzip *reader);

#endif
