/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"
#include "facts.h"
#include "procfs.h"
#include "rest.h"
#include "ringfile.h"
#include "settings.h"
#include "tracescan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define OLDER_MAX 100000 /* numbers tried for one name */

/* --- the name -------------------------------------------------------------------------------- */

/* Appends; false when it does not fit. */
static bool put(char *text, size_t size, const char *part, size_t length)
{
	size_t used = strlen(text);

	if (used + length >= size)
		return false;
	memcpy(text + used, part, length);
	text[used + length] = '\0';
	return true;
}

static bool put_pattern(char *text, size_t size, const char *pattern, const struct output_names *names)
{
	char pid[16];
	bool fits = true;

	snprintf(pid, sizeof(pid), "%u", names->pid);
	for (; *pattern && fits; pattern++) {
		const char *part = pattern[0] != '%'   ? NULL
		                   : pattern[1] == 'p' ? pid
		                   : pattern[1] == 'h' ? names->host
		                   : pattern[1] == 'r' ? names->rank
		                   : pattern[1] == '%' ? "%"
		                                       : NULL;

		fits = part ? put(text, size, part, strlen(part)) : put(text, size, pattern, 1);
		pattern += part != NULL;
	}
	return fits;
}

int output_expand(const char *pattern, const struct output_names *names, char *ret_path, size_t size)
{
	char path[PATH_MAX] = "";
	struct stat stat_now;
	bool fits = true;

	if (pattern[0] != '/')
		fits = put(path, sizeof(path), names->directory, strlen(names->directory)) &&
		       put(path, sizeof(path), "/", 1);
	fits = fits && put_pattern(path, sizeof(path), pattern, names);
	if (fits && path[strlen(path) - 1] == '/')
		mkdir(path, 0777); /* whether it worked is seen when the file is made */
	else if (fits && !stat(path, &stat_now) && S_ISDIR(stat_now.st_mode))
		fits = put(path, sizeof(path), "/", 1);
	if (fits && path[strlen(path) - 1] == '/')
		fits = put(path, sizeof(path), "run.zst", 7);
	if (!fits || strlen(path) >= size)
		return -ENAMETOOLONG;
	strcpy(ret_path, path);
	return 0;
}

/* a/run.zst and 7 give a/run.7.zst; without a suffix the number goes to the end. */
static int with_number(const char *path, unsigned long number, char *ret_path, size_t size)
{
	const char *name = strrchr(path, '/'), *dot = strrchr(path, '.');
	int stem, length;

	if (!dot || (name && dot <= name + 1) || dot == path)
		dot = path + strlen(path);
	stem = (int)(dot - path);
	length = snprintf(ret_path, size, "%.*s.%lu%s", stem, path, number, dot);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

/* --- the older one --------------------------------------------------------------------------- */

static bool is_over(int fd, const struct st_file_head *head)
{
	struct tracescan scan;
	char boot_id[64];

	if (procfs_read("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) > 0 &&
	    strncmp(boot_id, head->boot_id, 36))
		return true;
	if (!procfs_is_alive(head->pid, head->start_time))
		return true;
	return !tracescan_blocks(fd, &scan) && scan.trailer; /* the same process, before an exec */
}

/* A trace whose run is over. What its dead recorder left in a ring is added before it is moved. */
static bool is_finished(const char *path, struct st_file_head *ret_head)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool finished;

	if (fd < 0)
		return false;
	finished = !tracescan_head(fd, ret_head) && is_over(fd, ret_head);
	close(fd);
	if (finished && ret_head->ring[0])
		rest_finish(ret_head->ring);
	return finished;
}

static int move_aside(const char *path, char *ret_older, size_t size)
{
	unsigned long number;
	int err;

	for (number = 1; number <= OLDER_MAX; number++) {
		err = with_number(path, number, ret_older, size);
		if (err)
			return err;
		if (!renameat2(AT_FDCWD, path, AT_FDCWD, ret_older, RENAME_NOREPLACE))
			return 0;
		if (errno == EINVAL ||
		    errno == ENOSYS) { /* a file system that cannot: link does not replace either */
			if (!link(path, ret_older))
				return unlink(path) ? -errno : 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* --- the new one ----------------------------------------------------------------------------- */

/*
 * Only one recorder at a time judges and moves in a folder: between another's look and its rename a
 * new, live trace could come under the same name. A file system without locks goes unlocked, and
 * nobody waits for more than a moment.
 */
static int lock_folder(const char *path)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	char folder[PATH_MAX];
	int fd, tries;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path) + 1, path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && tries < 250;
	     tries++)
		nanosleep(&pause, NULL);
	return fd;
}

static int create_at(const char *path, const struct st_file_head *head, struct trace **ret_trace)
{
	int err = trace_create(path, head, NULL, ret_trace);
	char moved[PATH_MAX];
	struct st_file_head older;

	if (err != -EEXIST || !is_finished(path, &older) || move_aside(path, moved, sizeof(moved)))
		return err;
	rest_moved(&older, moved);
	return trace_create(path, head, NULL, ret_trace);
}

int output_create(const char *path, bool newest, const struct st_file_head *head, struct trace **ret_trace,
                  char *ret_path, size_t size)
{
	int lock = lock_folder(path), err = -EEXIST;
	char own[PATH_MAX];

	snprintf(own, sizeof(own), "%s", path);
	if (newest)
		err = create_at(own, head, ret_trace);
	if (err == -EEXIST && !with_number(path, head->pid, own, sizeof(own)))
		err = create_at(own, head, ret_trace);
	if (!err)
		snprintf(ret_path, size, "%s", own);
	if (lock >= 0)
		close(lock);
	return err;
}

int output_make(const struct st_ring *ring, bool newest, struct trace **ret_trace, char *ret_path,
                size_t size)
{
	char pattern[PATH_MAX], path[PATH_MAX], rank[32];
	struct output_names names = {.pid = ring->pid, .rank = rank, .directory = ring->directory};
	struct st_file_head head;
	struct utsname system;
	int err;

	facts_rank(ring, rank, sizeof(rank));
	if (!rank[0])
		strcpy(rank, "0");
	names.host = uname(&system) ? "localhost" : system.nodename;
	recorder_setting(ring->settings, "SPARKTRACE_OUTPUT", pattern, sizeof(pattern));
	ringfile_make_head(ring, &head);
	err = output_expand(pattern, &names, path, sizeof(path));
	if (err)
		return err;
	err = output_create(path, newest, &head, ret_trace, ret_path, size);
	if (err)
		snprintf(ret_path, size, "%s", path);
	return err;
}
