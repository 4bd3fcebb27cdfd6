/* SPDX-License-Identifier: Apache-2.0 */
#include "rest.h"
#include "clock.h"
#include "drain.h"
#include "ringfile.h"
#include "tracescan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DAY (86400 * SECOND)

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
	if (err == -EINVAL || (!err && !is_same_run(&head, ring)))
		err = -ENOENT; /* something else stands there */
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* Repetitions the reader drops by seq. */
int rest_write(struct st_ring *ring, struct out *out, const char *why)
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
	out_coverage(out, "%s", why);
	OUT(out, exit, .how = ST_EXIT_UNKNOWN, .oom_kills = ST_UNKNOWN);
	rc = trace_finish(out->trace, atomic_load(&ring->lost_count));
	if (rc)
		return rc;
	drain_acknowledge(&drain);
	trace_sync(out->trace);
	return 0;
}

static int finish_trace(struct st_ring *ring, int fd)
{
	struct st_file_head head;
	struct tracescan scan;
	struct trace_options options = {0};
	struct out out = {0};
	int err = tracescan_blocks(fd, &scan), own;

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
	own = dup(fd);
	err = own < 0 ? -errno : trace_create_fd(own, &head, &options, &out.trace);
	if (err && own >= 0)
		close(own);
	if (!err)
		err = rest_write(ring, &out,
		                 "the recorder died before the program did, a later one finished this trace");
	trace_free(out.trace);
	return err;
}

/*
 * Was the trace taken away, so that nobody will read its ring any more? The folders of another container are not seen
 * from here: somebody may come back to it the next day.
 */
static bool is_taken_away(const struct st_ring *ring, int err)
{
	return err == -ENOENT && (!ringfile_is_foreign(ring) || clock_now() > ring->epoch + DAY);
}

static int finish_named(struct st_ring *ring)
{
	int fd, err = open_trace(ring, &fd);

	if (err)
		return is_taken_away(ring, err) ? 0 : err;
	err = finish_trace(ring, fd);
	close(fd);
	return err;
}

void rest_moved(const struct st_file_head *head, const char *path)
{
	struct ringfile file;

	if (!head->ring[0] || ringfile_open(head->ring, &file))
		return;
	if (is_same_run(head, file.ring) && strlen(path) < sizeof(file.ring->trace))
		strcpy(file.ring->trace, path);
	ringfile_release(&file);
}

int rest_finish(const char *path)
{
	struct ringfile file;
	int err;

	err = ringfile_open(path, &file);
	if (err)
		return err == -EWOULDBLOCK ? -EBUSY : err;
	if (!ringfile_is_dead(file.ring))
		err = -EBUSY;
	else
		err = file.ring->trace[0] ? finish_named(file.ring) : -ENODATA;
	if (!err)
		unlink(path);
	ringfile_release(&file);
	return err;
}
