/* SPDX-License-Identifier: Apache-2.0 */
#include "finish.h"
#include "facts.h"
#include "output.h"
#include "rest.h"
#include "ringfile.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The newest run keeps its name: a late trace is never run.zst. */
static int write_late(struct st_ring *ring)
{
	char path[sizeof(ring->trace)];
	struct out out = {0};
	int err = output_make(ring, false, &out.trace, path, sizeof(path));

	if (err)
		return err;
	facts_write_late(ring, &out);
	err = rest_write(ring, &out, "there was no recorder: a later one wrote this trace from the ring");
	trace_free(out.trace);
	if (err)
		unlink(path);
	return err;
}

/* What is no reason to give a ring up: there will be room, or descriptors, another time. */
static bool is_passing(int err)
{
	return err == -EBUSY || err == -ENOSPC || err == -EDQUOT || err == -EFBIG || err == -ENOMEM ||
	       err == -EMFILE || err == -ENFILE || err == -EIO;
}

static int finish_unnamed(const char *path)
{
	struct ringfile file;
	int err = ringfile_open(path, &file);

	if (err)
		return err == -EWOULDBLOCK ? -EBUSY : err;
	err = ringfile_is_dead(file.ring) ? write_late(file.ring) : -EBUSY;
	if (!is_passing(err))
		unlink(path);
	ringfile_release(&file);
	return err;
}

int finish_ring(const char *path)
{
	int err = rest_finish(path);

	return err == -ENODATA ? finish_unnamed(path) : err;
}

/* Rings of one user have names that are equal up to the first digit. */
static size_t common_prefix(const char *name)
{
	size_t length = strcspn(name, "0123456789");

	return length ? length : 1;
}

void finish_beside(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], other[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	dir = opendir(folder);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, name, common_prefix(name)) || !strcmp(entry->d_name, name))
			continue;
		if (snprintf(other, sizeof(other), "%s%s", folder, entry->d_name) < (int)sizeof(other))
			finish_ring(other);
	}
	closedir(dir);
}
