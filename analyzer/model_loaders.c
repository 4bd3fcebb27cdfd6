/* SPDX-License-Identifier: Apache-2.0 */
/* After the passes: by which loaders the weights came, from the stacks of all that touched them. */
#include <analyzer/loader.h>
#include <analyzer/model_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOADERS_MAX 64 /* beyond, ways of loading are one */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* The first metadata that is seen of it. */
static void part_name(struct loader_part *part, const struct package *package)
{
	if (part->version || !package)
		return;
	part->name = package->name;
	part->version = package->version;
}

static struct loader_part *part_of(struct loader *loader, const struct loader_seen *seen)
{
	const struct package *package = seen->package;
	struct loader_part *part;

	for (unsigned i = 0; i < loader->part_count; i++) {
		part = &loader->parts[i];
		if (strcmp(part->known, seen->known->name) != 0)
			continue;
		part_name(part, package);
		return part;
	}
	if (loader->part_count == LOADER_PARTS)
		return NULL;
	part = &loader->parts[loader->part_count++];
	*part = (struct loader_part){
		.known = seen->known->name, .name = seen->known->name, .base = seen->known->base};
	part_name(part, package);
	return part;
}

/* Who decides: the outermost loader, one that others stand on only where there is no other. */
static const struct loader_seen *chain_head(const struct loader_chain *chain)
{
	for (unsigned i = 0; i < chain->count; i++)
		if (!chain->seen[i].known->base)
			return &chain->seen[i];
	return chain->count ? &chain->seen[0] : NULL;
}

/* The line, and its callers: of the touch that made the way. */
static void loader_name(struct loader *loader, const struct loader_chain *chain)
{
	const struct loader_seen *head = chain_head(chain);

	if (head) {
		loader->entry = head->entry;
		loader->function = head->function;
		loader->file = head->file;
		loader->line = head->line;
	}
	loader->caller = chain->caller;
	loader->caller_file = chain->caller_file;
	loader->caller_line = chain->caller_line;
}

static void loader_touch(struct loader *loader, const struct touch *touch, const struct loader_chain *chain)
{
	for (unsigned i = 0; i < chain->count; i++) {
		struct loader_part *part = part_of(loader, &chain->seen[i]);

		if (!part)
			continue;
		part->direct += touch->copied[COPY_PRIVATE_WRITABLE];
		part->read += touch->read;
	}
	loader->sliced += chain->slice ? touch->copied[COPY_PRIVATE_WRITABLE] : 0;
	loader->mapped += touch->mapped;
	loader->read += touch->read;
	for (unsigned i = 0; i < COPY_SOURCE_COUNT; i++)
		loader->copied[i] += touch->copied[i];
}

/* The touch that shows how a file was got at: the most mapped and read, else an open. */
static size_t main_touch(const struct touch *touches, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++) {
		uint64_t here = bytes_add(touches[i].mapped, touches[i].read);
		uint64_t most = bytes_add(touches[best].mapped, touches[best].read);

		if (here > most || (here == most && touches[i].opens > touches[best].opens))
			best = i;
	}
	return best;
}

static struct loader loader_of(const struct build *build, const struct touch *touches, size_t count)
{
	struct loader loader = {.first_file = touches->file, .file_count = 1};
	size_t main = main_touch(touches, count);
	struct loader_chain chain;

	loader_chain_find(build->model->names, touches[main].stack, &chain);
	loader_name(&loader, &chain);
	loader_touch(&loader, &touches[main], &chain);
	for (size_t i = 0; i < count; i++) {
		if (i == main)
			continue;
		loader_chain_find(build->model->names, touches[i].stack, &chain);
		loader_touch(&loader, &touches[i], &chain);
	}
	return loader;
}

static bool same_way(const struct loader *a, const struct loader *b)
{
	if (a->part_count != b->part_count || a->line != b->line || a->caller_line != b->caller_line ||
	    !same_text(a->function, b->function) || !same_text(a->file, b->file) ||
	    !same_text(a->caller, b->caller))
		return false;
	for (unsigned i = 0; i < a->part_count; i++)
		if (strcmp(a->parts[i].known, b->parts[i].known) != 0 ||
		    !same_text(a->parts[i].version, b->parts[i].version))
			return false;
	return true;
}

static void loader_join(struct loader *loader, const struct loader *more)
{
	for (unsigned i = 0; i < more->part_count && i < loader->part_count; i++) {
		loader->parts[i].direct += more->parts[i].direct;
		loader->parts[i].read += more->parts[i].read;
	}
	loader->bytes = bytes_add(loader->bytes, more->bytes);
	loader->file_count += more->file_count;
	loader->sliced += more->sliced;
	loader->mapped += more->mapped;
	loader->read += more->read;
	for (unsigned i = 0; i < COPY_SOURCE_COUNT; i++)
		loader->copied[i] += more->copied[i];
	loader->kept |= more->kept;
}

static void loader_keep(struct model *model, const struct loader *loader)
{
	size_t i = 0;

	while (i < model->loader_count && i < LOADERS_MAX - 1 && !same_way(&model->loaders[i], loader))
		i++;
	if (i < model->loader_count) {
		loader_join(&model->loaders[i], loader);
	} else {
		model->loaders[i] = *loader;
		model->loader_count++;
	}
	model->files[loader->first_file].loader = (uint32_t)i;
}

static bool file_is_kept(const struct weight_file *file)
{
	for (size_t i = 0; i < file->mapping_count; i++)
		if (file->mappings[i].kept)
			return true;
	return false;
}

static void loaders_of_files(struct build *build)
{
	const struct touches *touches = &build->touches;
	struct model *model = build->model;

	for (size_t i = 0, next; i < touches->count; i = next) {
		uint32_t file = touches->touches[i].file;
		struct loader loader;

		for (next = i + 1; next < touches->count && touches->touches[next].file == file; next++)
			;
		if (file >= model->file_count)
			continue;
		loader = loader_of(build, &touches->touches[i], next - i);
		loader.bytes = model->files[file].loaded.lo;
		loader.kept = file_is_kept(&model->files[file]);
		loader_keep(model, &loader);
	}
}

static int loader_compare(const void *left, const void *right)
{
	const struct loader *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->first_file < b->first_file ? -1 : a->first_file > b->first_file;
}

/* Most bytes first; files follow their loader, which they know by its first file. */
static void loaders_sort(struct model *model)
{
	uint32_t first[LOADERS_MAX];

	for (size_t i = 0; i < model->loader_count; i++)
		first[i] = model->loaders[i].first_file;
	qsort(model->loaders, model->loader_count, sizeof(*model->loaders), loader_compare);
	for (size_t i = 0; i < model->file_count; i++) {
		struct weight_file *file = &model->files[i];

		for (uint32_t k = 0; file->loader != MODEL_NONE && k < model->loader_count; k++)
			if (model->loaders[k].first_file == first[file->loader]) {
				file->loader = k;
				break;
			}
	}
}

/* Copies of bytes whose file is unknown: by the largest loader, for want of a better one. */
static void loaders_unknown_file(struct build *build)
{
	const struct touches *touches = &build->touches;

	for (size_t i = touches->count; i-- > 0 && touches->touches[i].file == CATALOG_NONE;) {
		struct loader_chain chain;

		loader_chain_find(build->model->names, touches->touches[i].stack, &chain);
		loader_touch(&build->model->loaders[0], &touches->touches[i], &chain);
	}
}

int build_loaders(struct build *build)
{
	struct model *model = build->model;

	touches_sort(&build->touches);
	model->touches_dropped = build->touches.dropped;
	if (!build->touches.count || !model->file_count)
		return 0;
	model->loaders = calloc(LOADERS_MAX, sizeof(*model->loaders));
	if (!model->loaders)
		return -ENOMEM;
	loaders_of_files(build);
	if (!model->loader_count)
		return 0;
	loaders_sort(model);
	loaders_unknown_file(build);
	return 0;
}
