/* SPDX-License-Identifier: Apache-2.0 */
/* Weight files, told by the name that the program used and by magic or size. Pure functions. */
#ifndef SPARKTRACE_SHIM_WEIGHTS_H
#define SPARKTRACE_SHIM_WEIGHTS_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

#define FILE_MAGIC_BYTES 16

/* Does the name end like one of a weight file? Cheap: asked at every open. */
bool file_may_hold_weights(const char *path);

/* What name, size and the first bytes make of a file; count 0: the bytes could not be had. */
enum st_file_format file_format(const char *path, uint64_t size, const unsigned char *bytes, size_t count);

#endif
