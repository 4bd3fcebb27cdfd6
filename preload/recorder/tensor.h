/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as the table of a weight file names it; what every reader of such a table hands out. */
#ifndef SPARKTRACE_RECORDER_TENSOR_H
#define SPARKTRACE_RECORDER_TENSOR_H

#include <sparktrace/format.h>
#include <stddef.h>

#define TENSOR_NAME 2048 /* longer names are cut */

struct file_tensor {
	char name[TENSOR_NAME];
	uint64_t offset, size; /* bytes, offset in the file */
	uint64_t elements;
	enum st_dtype dtype; /* one that is not known is ST_DTYPE_OTHER: its range still counts */
};

/* What a reader returns: a tensor; a step done and no tensor yet; that was all of them; or a negative errno. */
enum { TENSOR_END, TENSOR_READ, TENSOR_STEP };

#endif
