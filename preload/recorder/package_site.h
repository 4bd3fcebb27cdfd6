/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with installed distributions: which of them owns which of its files. */
#ifndef SPARKTRACE_RECORDER_PACKAGE_SITE_H
#define SPARKTRACE_RECORDER_PACKAGE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One *.dist-info. Name and version are NULL when METADATA does not tell them: it then owns nothing. */
struct distribution {
	char *info; /* name of the folder */
	char *name, *version;
};

/* A file or folder that stands directly in the site, in the RECORD of a distribution. */
struct top {
	char *name;
	uint32_t owner;
};

struct site {
	char *folder;
	struct distribution *all;
	uint32_t count, room;
	uint32_t read; /* so many are */
	struct top *tops;
	uint32_t top_count, top_room;
};

/* 0; -ENOENT: no distribution has its metadata there; or why the folder cannot be read. */
int site_open(const char *folder, struct site *ret_site);
void site_release(struct site *site);

/* Reads the metadata of one distribution. True: there are more. */
bool site_step(struct site *site);

/*
 * The owner of the file `path` (relative to the folder), after the last step. *ret_shared: its top-level folder, of
 * `*ret_top` bytes, belongs to others too. NULL: nobody's.
 */
const struct distribution *site_owner(struct site *site, const char *path, size_t *ret_top, bool *ret_shared);

#endif
