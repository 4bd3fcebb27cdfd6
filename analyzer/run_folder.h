/* SPDX-License-Identifier: Apache-2.0 */
/* The traces in a folder. */
#ifndef SPARKTRACE_RUN_FOLDER_H
#define SPARKTRACE_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_paths {
	char **paths;
	size_t count, room;
};

bool path_is_folder(const char *path);

/* Adds a copy. 0 or -ENOMEM. */
int paths_add(struct run_paths *paths, const char *path);
void paths_release(struct run_paths *paths);

/*
 * Adds the traces that lie in a folder itself, by name: files that begin as one does, whatever they are called.
 * With a `boot_id`, of that boot alone, and only those that were written to after `since` (seconds of the day clock).
 * 0 or negative errno.
 */
int paths_in_folder(struct run_paths *paths, const char *folder, const char *boot_id, int64_t since);

#endif
