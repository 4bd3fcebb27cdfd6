/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the program: recognised by device and inode, recorded once each, weights told from the rest.
 */
#ifndef SPARKTRACE_SHIM_FILE_H
#define SPARKTRACE_SHIM_FILE_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file {
	uint32_t id; /* for fields of type FILE; 0: not a regular file, or no room */
	enum st_file_format format;
	uint64_t size; /* bytes, when asked */
};

/*
 * The file behind a descriptor, by fstat; writes the `file` record when it is new, with the path that
 * /proc names. The guard must be up. errno is not kept. False: no such descriptor, or no regular file.
 */
bool file_of(int fd, struct file *ret_file);

/*
 * The same for a file that is read from: one that was neither opened by a weight file's name nor mapped stays unknown
 * (id 0). A data set has more files than there is room for, and would get a record for each.
 */
bool file_read(int fd, struct file *ret_file);

/* A weight file, of any format? */
static inline bool file_weights(const struct file *file)
{
	return file->format != ST_FILE_OTHER;
}

/*
 * The same at the open of it, where the path that the program used is known: it, not the one that
 * symbolic links end at, has the suffix that tells a weight file. `dirfd` as in openat.
 */
bool file_opened(int fd, int dirfd, const char *path, struct file *ret_file);

/*
 * Is `fd` marked as a weight file's? A hint that costs one load, since reads of other files must cost nothing: close
 * and dup are not followed (a vfork child has descriptors of its own behind the same memory). file_of() has the last word.
 */
bool file_marked(int fd);

/* Has a weight file been seen at all? */
bool file_any_weights(void);

/* A fork child starts afresh. */
void file_reset(void);

#endif
