/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `package` records: which installed distribution owns the files that occur in stacks, native modules and Python files.
 *
 * Only what the metadata says: the nearest folder above the file that holds *.dist-info folders (site-packages,
 * dist-packages, a --target folder), the files that their RECORDs list there, and Name and Version of METADATA. A
 * folder is read once, one RECORD a step. Where the top-level folder of a file belongs to one distribution alone, the
 * record names that folder; where several share it (namespace packages), the file itself.
 */
#ifndef SPARKTRACE_RECORDER_PACKAGES_H
#define SPARKTRACE_RECORDER_PACKAGES_H

#include "out.h"
#include <stdbool.h>

struct packages_folder;

struct packages {
	char **files;              /* that occurred */
	uint32_t file_count, next; /* `next` is the first without an answer */
	uint64_t *known;           /* hash set: files that occurred, folders that a record was written for */
	struct packages_folder *folders; /* that were looked into */
	uint32_t folder_count;
};

/* A file that occurs in a stack; one that was given before, or is not absolute, costs next to nothing. */
void packages_add(struct packages *packages, const char *path, size_t length);

/* One step. True: there is more to do. */
bool packages_work(struct packages *packages, struct out *out);

void packages_release(struct packages *packages);

#endif
