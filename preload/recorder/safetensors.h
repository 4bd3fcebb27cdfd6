/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header of a safetensors file: 8 bytes length N (little-endian), N bytes of JSON, the data. Read by
 * pread in small pieces, tensor by tensor, so that neither memory nor time depends on N.
 */
#ifndef SPARKTRACE_RECORDER_SAFETENSORS_H
#define SPARKTRACE_RECORDER_SAFETENSORS_H

#include "source.h"
#include "tensor.h"

struct safetensors;

/* Length of what the header takes of the file, 8 + N; 0: the first bytes cannot be a header. */
uint64_t safetensors_header(int fd, uint64_t file_size);

/* The descriptor stays the caller's. 0; -EINVAL: no header; -ENOMEM; read errors. `cache` may be NULL. */
int safetensors_open(int fd, uint64_t file_size, const struct source_cache *cache,
                     struct safetensors **ret_reader);

/* TENSOR_READ, TENSOR_END; -EINVAL: see safetensors_error; or a read error. */
int safetensors_next(struct safetensors *reader, struct file_tensor *ret_tensor);

/* What is wrong, and at which byte of the file. */
const char *safetensors_error(const struct safetensors *reader, uint64_t *ret_offset);

/* Bytes that came into the page cache because of us. */
uint64_t safetensors_own(const struct safetensors *reader);

void safetensors_free(struct safetensors *reader);

#endif
