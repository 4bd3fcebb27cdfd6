/* SPDX-License-Identifier: Apache-2.0 */
#include "finish.h"
#include "drain.h"
#include "ringfile.h"
#include "tracescan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_same_run(const struct st_file_head *head, const struct st_ring *ring)
{
	return head->pid == ring->pid && head->start_time == ring->start_time &&
	       !strncmp(head->boot_id, ring->boot_id, sizeof(head->boot_id));
}

/* Opens the trace that the ring names, if it is still that one. */
static int open_trace(const struct st_ring *ring, int *ret_fd)
{
	struct st_file_head head;
	int fd = open(ring->trace, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int err;

	if (fd < 0)
		return -errno;
	err = tracescan_head(fd, &head);
	if (!err && !is_same_run(&head, ring))
		err = -ENOENT;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* Behind the last whole block goes what the ring still has. Repetitions the reader drops by seq. */
static int write_rest(struct st_ring *ring, struct out *out)
{
	struct drain drain;
	int rc;

	drain_init(&drain, ring, out);
	drain.dead = true;
	/* How much of the loss is in the file already nobody knows; the trailer says it all. */
	drain.lost_count = atomic_load(&ring->lost_count);
	do
		rc = drain_step(&drain);
	while (rc > 0);
	if (rc)
		return rc;
	out_coverage(out, "the recorder died before the program's end; a later one finished this trace");
	OUT(out, exit, .how = ST_EXIT_UNKNOWN, .oom_kills = ST_UNKNOWN);
	rc = trace_finish(out->trace, atomic_load(&ring->lost_count));
	if (!rc)
		drain_acknowledge(&drain);
	return rc;
}

static int finish_trace(struct st_ring *ring, int fd)
{
	struct st_file_head head;
	struct tracescan scan;
	struct trace_options options = {0};
	struct out out = {0};
	int err = tracescan_blocks(fd, &scan);

	if (!err && scan.trailer)
		return 0;
	if (!err && ftruncate(fd, (off_t)scan.end))
		err = -errno;
	if (err)
		return err;
	options.offset = scan.end;
	options.blocks = scan.blocks;
	options.records = scan.records;
	ringfile_make_head(ring, &head);
	err = trace_create_fd(dup(fd), &head, &options, &out.trace);
	if (!err)
		err = write_rest(ring, &out);
	if (!err)
		trace_sync(out.trace);
	trace_free(out.trace);
	return err;
}

int finish_ring(const char *path)
{
	struct ringfile file;
	int fd, err;

	err = ringfile_open(path, &file);
	if (err)
		return err == -EWOULDBLOCK ? -EBUSY : err;
	if (!ringfile_is_dead(file.ring)) {
		err = -EBUSY;
	} else if (!open_trace(file.ring, &fd)) {
		err = finish_trace(file.ring, fd);
		close(fd);
	} /* else: no trace, so nobody reads this ring any more */
	if (!err)
		unlink(path);
	ringfile_release(&file);
	return err;
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
