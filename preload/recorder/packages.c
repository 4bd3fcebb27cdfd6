/* SPDX-License-Identifier: Apache-2.0 */
#include "packages.h"

#include "package_site.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MOST   8192u /* that are asked about */
#define SLOTS        (FILES_MOST * 4)
#define FOLDERS_MOST 2048u /* that are looked into */
#define LEVELS_MOST  32    /* above a file */

/* A folder that was looked into; without a site most are. */
struct packages_folder {
	char *path;
	struct site *site;
};

static uint64_t path_hash(const char *path, size_t length)
{
	uint64_t hash = UINT64_C(0xCBF29CE484222325);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)path[i]) * UINT64_C(0x100000001B3);
	return hash | 1;
}

/* False: it was there already, or there is no room. */
static bool set_add(struct packages *packages, uint64_t hash)
{
	uint32_t slot = (uint32_t)(hash >> 32) % SLOTS;

	if (!packages->known)
		packages->known = calloc(SLOTS, sizeof(*packages->known));
	if (!packages->known)
		return false;
	while (packages->known[slot] && packages->known[slot] != hash)
		slot = (slot + 1) % SLOTS;
	if (packages->known[slot])
		return false;
	packages->known[slot] = hash;
	return true;
}

void packages_add(struct packages *packages, const char *path, size_t length)
{
	if (!length || path[0] != '/' || length >= PATH_MAX || packages->file_count == FILES_MOST)
		return;
	if (!packages->files)
		packages->files = calloc(FILES_MOST, sizeof(*packages->files));
	if (!packages->files || !set_add(packages, path_hash(path, length)))
		return;
	packages->files[packages->file_count] = strndup(path, length);
	packages->file_count += packages->files[packages->file_count] != NULL;
}

/* --- where a file lies --------------------------------------------------------------------------- */

static struct packages_folder *folder_find(const struct packages *packages, const char *path)
{
	for (uint32_t i = 0; i < packages->folder_count; i++)
		if (!strcmp(packages->folders[i].path, path))
			return &packages->folders[i];
	return NULL;
}

/* NULL: no memory, or enough folders were looked into. */
static struct packages_folder *folder_look(struct packages *packages, const char *path)
{
	struct packages_folder *folder = folder_find(packages, path);
	struct site *site;

	if (folder || packages->folder_count == FOLDERS_MOST)
		return folder;
	if (!packages->folders)
		packages->folders = calloc(FOLDERS_MOST, sizeof(*packages->folders));
	if (!packages->folders)
		return NULL;
	folder = &packages->folders[packages->folder_count];
	folder->path = strdup(path);
	site = calloc(1, sizeof(*site));
	if (!folder->path || !site) {
		free(folder->path);
		free(site);
		return NULL;
	}
	if (site_open(path, site))
		free(site);
	else
		folder->site = site;
	packages->folder_count++;
	return folder;
}

/* The nearest folder above a file that has a site, of *ret_length bytes. NULL: none. */
static struct site *site_above(struct packages *packages, const char *path, size_t *ret_length)
{
	char folder[PATH_MAX];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	for (int i = 0; i < LEVELS_MOST && (slash = strrchr(folder, '/')) && slash != folder; i++) {
		const struct packages_folder *look;

		*slash = 0;
		look = folder_look(packages, folder);
		*ret_length = (size_t)(slash - folder);
		if (!look || look->site)
			return look ? look->site : NULL;
	}
	return NULL;
}

/* --- records ------------------------------------------------------------------------------------- */

/* Once for each folder. */
static void package_write(struct packages *packages, struct out *out, const struct distribution *owner,
                          const char *path, size_t length)
{
	char text[PATH_MAX + 1024];
	int size;

	if (!set_add(packages, path_hash(path, length) ^ UINT64_C(0xFF00)))
		return;
	size = snprintf(text, sizeof(text), "%s %s %.*s", owner->name, owner->version, (int)length, path);
	if (size > 0 && (size_t)size < sizeof(text))
		OUT_TAIL(out, package, text, (size_t)size);
}

bool packages_work(struct packages *packages, struct out *out)
{
	const char *path = packages->next < packages->file_count ? packages->files[packages->next] : NULL;
	const struct distribution *owner;
	size_t folder = 0, top;
	struct site *site;
	bool shared;

	if (!path)
		return false;
	site = site_above(packages, path, &folder);
	if (site && site->read < site->count) {
		site_step(site);
		return true;
	}
	owner = site ? site_owner(site, path + folder + 1, &top, &shared) : NULL;
	if (owner)
		package_write(packages, out, owner, path, shared ? strlen(path) : folder + 1 + top);
	packages->next++;
	return packages->next < packages->file_count;
}

void packages_release(struct packages *packages)
{
	for (uint32_t i = 0; i < packages->file_count; i++)
		free(packages->files[i]);
	for (uint32_t i = 0; i < packages->folder_count; i++) {
		if (packages->folders[i].site)
			site_release(packages->folders[i].site);
		free(packages->folders[i].site);
		free(packages->folders[i].path);
	}
	free(packages->files);
	free(packages->folders);
	free(packages->known);
	*packages = (struct packages){0};
}
