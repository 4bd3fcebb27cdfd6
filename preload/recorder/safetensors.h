/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header of a safetensors file: 8 bytes length N (little-endian), N bytes of JSON, the data. Read by
 * pread in small pieces, tensor by tensor, so that neither memory nor time depends on N.
 */
#ifndef SPARKTRACE_RECORDER_SAFETENSORS_H
#define SPARKTRACE_RECORDER_SAFETENSORS_H

#include <sparktrace/format.h>
#include <stddef.h>

#define SAFETENSORS_NAME 2048 /* longer names are cut */

struct safetensors;

struct safetensors_tensor {
	char name[SAFETENSORS_NAME];
	uint64_t offset, size; /* bytes, offset in the file */
	uint64_t elements;
	enum st_dtype dtype; /* one that is not known is ST_DTYPE_OTHER: its range still counts */
};

/* Length of what the header takes of the file, 8 + N; 0: the first bytes cannot be a header. */
uint64_t safetensors_header(int fd, uint64_t file_size);

/* The descriptor stays the caller's. 0; -EINVAL: no header; -ENOMEM; read errors. */
int safetensors_open(int fd, uint64_t file_size, struct safetensors **ret_reader);

/* 1: a tensor; 0: that was all of them; -EINVAL: see safetensors_error; or a read error. */
int safetensors_next(struct safetensors *reader, struct safetensors_tensor *ret_tensor);

/* What is wrong, and at which byte of the file. */
const char *safetensors_error(const struct safetensors *reader, uint64_t *ret_offset);

void safetensors_free(struct safetensors *reader);

#endif
