/* SPDX-License-Identifier: Apache-2.0 */
#include "breakdown_names.h"

#include "emit_back.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LONGEST 800 /* of one name: those of a hostile trace are as long as it likes */

char *content_clean(const char *text)
{
	size_t length = strlen(text), size;
	char *clean = NULL;
	FILE *out = open_memstream(&clean, &size);

	if (!out)
		return NULL;
	if (length > NAME_LONGEST) {
		text += length - NAME_LONGEST;
		while ((*text & 0xc0) == 0x80)
			text++;
		fputs("...", out);
	}
	emit_clean(out, text, "\\");
	if (fclose(out)) {
		free(clean);
		return NULL;
	}
	return clean;
}

/* --- files: the shortest tail that no other path has ----------------------------------------------- */

/* Paths in the order of their ends, component by component: those with most of their ends in common are neighbours. */
static int compare_ends(const void *a, const void *b)
{
	const char *left = *(const char *const *)a, *right = *(const char *const *)b;
	size_t l = strlen(left), r = strlen(right);

	while (l && r) {
		unsigned char x = (unsigned char)left[--l], y = (unsigned char)right[--r];

		if (x != y)
			return x == '/' ? -1 : y == '/' ? 1 : x - y;
	}
	return (l > 0) - (r > 0);
}

/* Bytes of whole components at the ends of both, without the slash before them. */
static size_t common_end(const char *a, const char *b)
{
	size_t l = strlen(a), r = strlen(b), length = 0, whole = 0;

	while (l && r && a[l - 1] == b[r - 1]) {
		if (a[l - 1] == '/')
			whole = length;
		length++;
		l--;
		r--;
	}
	return (!l || a[l - 1] == '/') && (!r || b[r - 1] == '/') ? length : whole;
}

/* The tail of `path` that begins with a component and has more than `common` bytes at its end. */
static const char *tail_beyond(const char *path, size_t common)
{
	size_t at = strlen(path);

	at = common < at ? at - common : 0;
	/* The slash before what is common belongs to neither. */
	at -= common && at;
	while (at && path[at - 1] != '/')
		at--;
	return path + at;
}

static size_t sort_unique(const char **paths, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(paths, count, sizeof(*paths), compare_ends);
	for (size_t i = 0; i < count; i++)
		if (!kept || strcmp(paths[i], paths[kept - 1]) != 0)
			paths[kept++] = paths[i];
	return kept;
}

static char *file_name(const char *path, const char **paths, size_t count)
{
	const char **at = bsearch(&path, paths, count, sizeof(*paths), compare_ends);
	size_t common = 0;

	if (at && at > paths)
		common = common_end(at[0], at[-1]);
	if (at && at + 1 < paths + count) {
		size_t next = common_end(at[0], at[1]);

		common = next > common ? next : common;
	}
	path = tail_beyond(path, common);
	return content_clean(*path ? path : "(without a name)");
}

static int name_files(struct content_names *names)
{
	size_t total = names->first_file[names->count], unique, at = 0;
	const char **paths = calloc(total + 1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	for (size_t m = 0; m < names->count; m++)
		for (size_t i = 0; i < names->models[m]->file_count; i++)
			paths[at++] = names->models[m]->files[i].path;
	unique = sort_unique(paths, total);
	at = 0;
	for (size_t m = 0; m < names->count; m++)
		for (size_t i = 0; i < names->models[m]->file_count; i++)
			names->files[at++] = file_name(names->models[m]->files[i].path, paths, unique);
	free(paths);
	for (size_t i = 0; i < total; i++)
		if (!names->files[i])
			return -ENOMEM;
	return 0;
}

const char *content_file(const struct content_names *names, size_t model, uint32_t file)
{
	return file < names->models[model]->file_count ? names->files[names->first_file[model] + file]
	                                               : "(unknown file)";
}

/* --- tensors: their name, and that of the file where it takes both --------------------------------- */

struct tensor_key {
	const char *name, *file;
	size_t index;
};

static int compare_tensors(const void *a, const void *b)
{
	const struct tensor_key *left = a, *right = b;
	int order = strcmp(left->name, right->name);

	return order ? order : strcmp(left->file, right->file);
}

static void mark_twice(struct content_names *names, const struct tensor_key *keys, size_t count)
{
	for (size_t i = 0, end; i < count; i = end) {
		end = i + 1;
		while (end < count && !strcmp(keys[i].name, keys[end].name))
			end++;
		/* In the order of their files: first and last differ where any do. */
		for (size_t k = i; k < end; k++)
			names->twice[keys[k].index] = strcmp(keys[i].file, keys[end - 1].file) != 0;
	}
}

static int name_tensors(struct content_names *names)
{
	size_t total = names->first_tensor[names->count], at = 0;
	struct tensor_key *keys = calloc(total + 1, sizeof(*keys));

	if (!keys)
		return -ENOMEM;
	for (size_t m = 0; m < names->count; m++) {
		for (size_t i = 0; i < names->models[m]->tensor_count; i++, at++) {
			const struct tensor *tensor = &names->models[m]->tensors[i];

			keys[at] =
				(struct tensor_key){tensor->name, content_file(names, m, tensor->file), at};
		}
	}
	if (total)
		qsort(keys, total, sizeof(*keys), compare_tensors);
	mark_twice(names, keys, total);
	free(keys);
	return 0;
}

char *content_tensor(const struct content_names *names, size_t model, uint32_t tensor)
{
	const struct model *m = names->models[model];
	const char *name = tensor < m->tensor_count ? m->tensors[tensor].name : "(unknown tensor)";
	char *clean = content_clean(*name ? name : "(without a name)"), *both;

	if (!clean || tensor >= m->tensor_count || !names->twice[names->first_tensor[model] + tensor])
		return clean;
	if (asprintf(&both, "%s: %s", content_file(names, model, m->tensors[tensor].file), clean) < 0)
		both = NULL;
	free(clean);
	return both;
}

/* --- all of them ------------------------------------------------------------------------------------ */

int content_names_make(const struct model *const *models, size_t count, struct content_names *ret_names)
{
	struct content_names *names = ret_names;
	int error;

	*names = (struct content_names){.models = models, .count = count};
	names->first_file = calloc(count + 1, sizeof(*names->first_file));
	names->first_tensor = calloc(count + 1, sizeof(*names->first_tensor));
	if (!names->first_file || !names->first_tensor)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		names->first_file[i + 1] = names->first_file[i] + models[i]->file_count;
		names->first_tensor[i + 1] = names->first_tensor[i] + models[i]->tensor_count;
	}
	names->files = calloc(names->first_file[count] + 1, sizeof(*names->files));
	names->twice = calloc(names->first_tensor[count] + 1, sizeof(*names->twice));
	if (!names->files || !names->twice)
		return -ENOMEM;
	error = name_files(names);
	return error ? error : name_tensors(names);
}

void content_names_release(struct content_names *names)
{
	for (size_t i = 0; names->files && i < names->first_file[names->count]; i++)
		free(names->files[i]);
	free(names->files);
	free(names->twice);
	free(names->first_file);
	free(names->first_tensor);
}
