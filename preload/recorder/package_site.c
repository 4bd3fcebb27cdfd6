/* SPDX-License-Identifier: Apache-2.0 */
#include "package_site.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX        ".dist-info"
#define ENTRIES_MOST  (1u << 18) /* of a folder */
#define INFOS_MOST    8192u
#define TOPS_MOST     (1u << 17)
#define RECORD_MOST   (64u << 20) /* bytes of a RECORD */
#define METADATA_MOST (64u << 10) /* the headers stand first */
#define NAME_MOST     256u

/* --- reading ------------------------------------------------------------------------------------- */

static FILE *info_open(const struct site *site, const struct distribution *distribution, const char *name)
{
	char path[PATH_MAX];
	struct stat status;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/%s", site->folder, distribution->info, name) >=
	    sizeof(path))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode)) {
		FILE *file = fdopen(fd, "r");

		if (file)
			return file;
	}
	close(fd);
	return NULL;
}

/* The next line without its end, cut to what has room; `left` bounds the whole file. */
static bool line_read(FILE *file, char *ret_line, size_t size, size_t *left)
{
	size_t length = 0;
	int c;

	while ((c = getc_unlocked(file)) != EOF && c != '\n' && *left) {
		--*left;
		if (length + 1 < size)
			ret_line[length++] = (char)c;
	}
	if (length && ret_line[length - 1] == '\r')
		length--;
	ret_line[length] = 0;
	return *left && (c == '\n' || length);
}

/* --- a folder ------------------------------------------------------------------------------------ */

static bool is_info(const char *name)
{
	size_t length = strlen(name), end = strlen(SUFFIX);

	return length > end && !strcmp(name + length - end, SUFFIX);
}

static bool info_add(struct site *site, const char *name)
{
	uint32_t room = site->room ? site->room * 2 : 64;

	if (site->count == site->room) {
		struct distribution *all = realloc(site->all, room * sizeof(*all));

		if (!all)
			return false;
		site->all = all;
		site->room = room;
	}
	site->all[site->count] = (struct distribution){.info = strdup(name)};
	return site->all[site->count].info && ++site->count < INFOS_MOST;
}

int site_open(const char *folder, struct site *ret_site)
{
	struct site site = {0};
	struct dirent *entry;
	DIR *dir = opendir(folder);

	if (!dir)
		return -errno;
	for (unsigned i = 0; i < ENTRIES_MOST && (entry = readdir(dir)); i++)
		if (is_info(entry->d_name) && !info_add(&site, entry->d_name))
			break;
	closedir(dir);
	if (site.count)
		site.folder = strdup(folder);
	if (!site.folder) {
		int error = site.count ? -ENOMEM : -ENOENT;

		site_release(&site);
		return error;
	}
	*ret_site = site;
	return 0;
}

void site_release(struct site *site)
{
	for (uint32_t i = 0; i < site->count; i++) {
		free(site->all[i].info);
		free(site->all[i].name);
		free(site->all[i].version);
	}
	for (uint32_t i = 0; i < site->top_count; i++)
		free(site->tops[i].name);
	free(site->all);
	free(site->tops);
	free(site->folder);
	*site = (struct site){0};
}

/* --- one distribution ---------------------------------------------------------------------------- */

/* The value of a header that is printable and without blanks, as names and versions are. */
static char *header_value(const char *line, const char *header)
{
	size_t length = strlen(header);

	if (strncasecmp(line, header, length))
		return NULL;
	line += length;
	line += strspn(line, " \t");
	length = strlen(line);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] <= ' ' || line[i] == 127)
			return NULL;
	return length ? strdup(line) : NULL;
}

static void metadata_read(const struct site *site, struct distribution *distribution)
{
	FILE *file = info_open(site, distribution, "METADATA");
	size_t left = METADATA_MOST;
	char line[NAME_MOST];

	if (!file)
		return;
	while (line_read(file, line, sizeof(line), &left) && line[0]) {
		if (!distribution->name)
			distribution->name = header_value(line, "Name:");
		if (!distribution->version)
			distribution->version = header_value(line, "Version:");
	}
	fclose(file);
}

static bool top_add(struct site *site, const char *name, uint32_t owner)
{
	uint32_t room = site->top_room ? site->top_room * 2 : 256;
	struct top top = {NULL, owner};

	if (site->top_count >= TOPS_MOST)
		return false;
	if (site->top_count == site->top_room) {
		struct top *tops = realloc(site->tops, room * sizeof(*tops));

		if (!tops)
			return false;
		site->tops = tops;
		site->top_room = room;
	}
	top.name = strdup(name);
	if (!top.name)
		return false;
	site->tops[site->top_count++] = top;
	return true;
}

/* The file that a line of RECORD is about: "path,hash,size", or with commas in it "\"path\",hash,size". In place. */
static char *record_path(char *line)
{
	char *read = line, *write = line;

	if (*read != '"') {
		line[strcspn(line, ",")] = 0;
		return line;
	}
	for (read++; *read && !(*read == '"' && read[1] != '"'); read++) {
		read += *read == '"';
		*write++ = *read;
	}
	*write = 0;
	return line;
}

/* Not of the distribution alone, or not in this folder: metadata, scripts in ../../bin, caches, absolute paths. */
static bool is_top(const char *name)
{
	return *name && strcmp(name, "..") && strcmp(name, ".") && strcmp(name, "__pycache__") &&
	       !is_info(name);
}

/* Lines stand in order mostly: a name is compared with the one before, and sorted out for good later. */
static void record_read(struct site *site, uint32_t owner)
{
	FILE *file = info_open(site, &site->all[owner], "RECORD");
	char line[PATH_MAX], last[NAME_MOST] = "";
	size_t left = RECORD_MOST;

	if (!file)
		return;
	while (line_read(file, line, sizeof(line), &left)) {
		char *path = record_path(line);

		path[strcspn(path, "/")] = 0;
		if (!is_top(path) || strlen(path) >= sizeof(last) || !strcmp(path, last))
			continue;
		strcpy(last, path);
		if (!top_add(site, path, owner))
			break;
	}
	fclose(file);
}

static int top_compare(const void *left, const void *right)
{
	const struct top *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->owner > b->owner) - (a->owner < b->owner);
}

static void tops_sort(struct site *site)
{
	uint32_t kept = 0;

	if (site->top_count)
		qsort(site->tops, site->top_count, sizeof(*site->tops), top_compare);
	for (uint32_t i = 0; i < site->top_count; i++) {
		if (kept && !top_compare(&site->tops[kept - 1], &site->tops[i]))
			free(site->tops[i].name);
		else
			site->tops[kept++] = site->tops[i];
	}
	site->top_count = kept;
}

bool site_step(struct site *site)
{
	uint32_t i = site->read;

	if (i < site->count) {
		metadata_read(site, &site->all[i]);
		if (site->all[i].name && site->all[i].version)
			record_read(site, i);
		site->read++;
	}
	if (i < site->count && site->read == site->count)
		tops_sort(site);
	return site->read < site->count;
}

/* --- asking -------------------------------------------------------------------------------------- */

static bool record_lists(const struct site *site, uint32_t owner, const char *path)
{
	FILE *file = info_open(site, &site->all[owner], "RECORD");
	size_t left = RECORD_MOST;
	char line[PATH_MAX];
	bool found = false;

	while (file && !found && line_read(file, line, sizeof(line), &left))
		found = !strcmp(record_path(line), path);
	if (file)
		fclose(file);
	return found;
}

/* The first of the entries of this name. */
static uint32_t top_find(const struct site *site, const char *name)
{
	uint32_t low = 0, high = site->top_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (strcmp(site->tops[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct distribution *site_owner(struct site *site, const char *path, size_t *ret_top, bool *ret_shared)
{
	char top[NAME_MOST];
	uint32_t first, end;

	*ret_top = strcspn(path, "/");
	if (*ret_top >= sizeof(top))
		return NULL;
	memcpy(top, path, *ret_top);
	top[*ret_top] = 0;
	first = end = top_find(site, top);
	while (end < site->top_count && !strcmp(site->tops[end].name, top))
		end++;
	*ret_shared = end - first > 1;
	if (end - first == 1)
		return &site->all[site->tops[first].owner];
	for (; first < end; first++)
		if (record_lists(site, site->tops[first].owner, path))
			return &site->all[site->tops[first].owner];
	return NULL;
}
