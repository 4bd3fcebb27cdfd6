/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pickle of a torch checkpoint, read and never executed: what torch.save() writes (dictionaries, lists, tuples,
 * torch._utils._rebuild_tensor_v2 and its kin, persistent identifiers of storages), up to protocol 5. Objects
 * of other classes are taken as a dictionary of what they hold. Memory is bounded (PICKLE_MAX): what is larger, or
 * is no such pickle, is an error.
 */
#ifndef SPARKTRACE_RECORDER_PICKLE_H
#define SPARKTRACE_RECORDER_PICKLE_H

#include "source.h"
#include "tensor.h"

#define PICKLE_MAX (1u << 20) /* tensors, containers, entries of these, values on the stack */

struct pickle;

/* A tensor and its storage. */
struct pickle_tensor {
	uint64_t storage;                /* number of the record: data/12 */
	uint64_t offset, size, elements; /* bytes from the storage's start to the last byte used */
	enum st_dtype dtype;
};

/* Of the bytes [at, end) of a file. The descriptor stays the caller's. 0 or -ENOMEM. */
int pickle_open(int fd, uint64_t at, uint64_t end, const struct source_cache *cache,
                struct pickle **ret_pickle);

/* Reads on, a bounded piece. 1: there is more; 0: that was its end; -EINVAL: see pickle_source; -ENOMEM. */
int pickle_read(struct pickle *pickle);

/*
 * After its end: the tensors in their order, with the keys that lead to them joined by dots ("" where there are
 * none). 1; 0: no more.
 */
int pickle_next(struct pickle *pickle, struct pickle_tensor *ret_tensor, char *name, size_t size);

const struct source *pickle_source(const struct pickle *pickle);
void pickle_free(struct pickle *pickle);

#endif
