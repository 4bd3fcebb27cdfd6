/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a zip archive, 64-bit ones included, read entry by entry. */
#ifndef SPARKTRACE_RECORDER_ZIP_H
#define SPARKTRACE_RECORDER_ZIP_H

#include "source.h"

#include <stdbool.h>

struct zip_entry {
	char name[512]; /* longer ones are cut */
	uint64_t local, size;
	uint64_t next; /* where the next entry begins, or the directory */
	uint32_t name_length;
	bool behind; /* sizes stand behind the data */
	bool stored; /* not compressed */
};

struct zip {
	struct source source;
	uint64_t file_size, directory;
	uint64_t entries; /* yet to come */
	struct zip_entry ahead;
	bool begun, has_ahead;
};

/* The descriptor stays the caller's; `cache` may be NULL. 0; -EINVAL: no such archive; a read error. */
int zip_open(struct zip *zip, int fd, uint64_t file_size, const struct source_cache *cache);

/* 1: an entry; 0: no more; -EINVAL: see zip->source; a read error. */
int zip_next(struct zip *zip, struct zip_entry *ret_entry);

/* Where in the file the bytes of a stored entry are. 0, -EINVAL, a read error. */
int zip_find_data(struct zip *zip, const struct zip_entry *entry, uint64_t *ret_offset);

#endif
