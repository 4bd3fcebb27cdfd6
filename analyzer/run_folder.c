/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/run_folder.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sparktrace/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool path_is_folder(const char *path)
{
	struct stat found;

	return !stat(path, &found) && S_ISDIR(found.st_mode);
}

int paths_add(struct run_paths *paths, const char *path)
{
	if (paths->count == paths->room) {
		size_t room = paths->room ? paths->room * 2 : 16;
		char **moved = realloc(paths->paths, room * sizeof(*moved));

		if (!moved)
			return -ENOMEM;
		paths->paths = moved;
		paths->room = room;
	}
	paths->paths[paths->count] = strdup(path);
	if (!paths->paths[paths->count])
		return -ENOMEM;
	paths->count++;
	return 0;
}

void paths_release(struct run_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->paths[i]);
	free(paths->paths);
	*paths = (struct run_paths){0};
}

/* Never waits, whatever lies there: a pipe has no reader's patience, a device may act on being opened. */
static bool is_trace(const char *path, const char *boot_id, int64_t since)
{
	struct {
		uint32_t magic, bytes;
		struct st_file_head head;
	} begin;
	struct stat found;
	bool good = false;
	int fd;

	if (stat(path, &found) || !S_ISREG(found.st_mode) || (boot_id && found.st_mtime < since))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (pread(fd, &begin, sizeof(begin), 0) == (ssize_t)sizeof(begin))
		good = begin.magic == ST_SKIPPABLE_MAGIC &&
		       !memcmp(begin.head.magic, ST_FILE_MAGIC, sizeof(begin.head.magic)) &&
		       (!boot_id || !strncmp(begin.head.boot_id, boot_id, sizeof(begin.head.boot_id)));
	close(fd);
	return good;
}

static int path_compare(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

int paths_in_folder(struct run_paths *paths, const char *folder, const char *boot_id, int64_t since)
{
	size_t first = paths->count, length = strlen(folder);
	struct dirent *entry;
	DIR *dir = opendir(folder);
	int error = 0;

	if (!dir)
		return -errno;
	while (!error && (entry = readdir(dir))) {
		char *path = NULL;

		if (asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
		             entry->d_name) < 0) {
			error = -ENOMEM;
			break;
		}
		if (is_trace(path, boot_id, since))
			error = paths_add(paths, path);
		free(path);
	}
	closedir(dir);
	if (paths->count > first)
		qsort(paths->paths + first, paths->count - first, sizeof(*paths->paths), path_compare);
	return error;
}
