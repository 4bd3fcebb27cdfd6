/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/catalog.h>
#include <analyzer/event.h>
#include <analyzer/range.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INODE_PROBES 64
#define FILE_IDS_MAX (1u << 20) /* identifiers count from 1; larger ones are damage */

void catalog_release(struct catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->file_count; i++)
		free(catalog->files[i].path);
	for (size_t i = 0; i < catalog->tensor_count; i++)
		free(catalog->tensors[i].name);
	for (size_t i = 0; i < catalog->index_count; i++)
		free(catalog->indexes[i].path);
	free(catalog->files);
	free(catalog->tensors);
	free(catalog->indexes);
	free(catalog->by_inode);
	free(catalog->by_id);
	*catalog = (struct catalog){0};
}

static char *text_copy(const struct st_record *record)
{
	const char *text;
	size_t length = record_text(record, &text);

	return strndup(text, length);
}

static int by_id_reserve(struct catalog *catalog, uint64_t id)
{
	size_t room = catalog->by_id_room ? catalog->by_id_room : 64;
	uint32_t *by_id;

	if (id < catalog->by_id_room)
		return 0;
	while (room <= id)
		room *= 2;
	by_id = realloc(catalog->by_id, room * sizeof(*by_id));
	if (!by_id)
		return -ENOMEM;
	memset(by_id + catalog->by_id_room, 0, (room - catalog->by_id_room) * sizeof(*by_id));
	catalog->by_id = by_id;
	catalog->by_id_room = room;
	return 0;
}

/* Makes room for one more element of `size` bytes. */
static int array_reserve(void *array, size_t size, size_t count, size_t room, size_t *ret_room)
{
	void **elements = array;
	size_t more = room ? room * 2 : 16;
	void *moved;

	if (count < room)
		return 0;
	moved = realloc(*elements, more * size);
	if (!moved)
		return -ENOMEM;
	*elements = moved;
	*ret_room = more;
	return 0;
}

/* Up to six digits, the end of them in *ret_end. */
static uint32_t digits(const char *text, const char **ret_end)
{
	uint32_t value = 0;
	int n = 0;

	while (text[n] >= '0' && text[n] <= '9' && n < 6)
		value = value * 10 + (uint32_t)(text[n++] - '0');
	*ret_end = text + n;
	return value;
}

/* Hugging Face names shards NAME-00002-of-00008.safetensors. */
static void shard_of_name(struct catalog_file *file)
{
	const char *of = strstr(file->path, "-of-"), *next, *end;

	while (of && (next = strstr(of + 1, "-of-")))
		of = next;
	if (!of || of - file->path < 6 || of[-6] != '-')
		return;
	file->shard = digits(of - 5, &end);
	file->shards = end == of ? digits(of + 4, &end) : 0;
	if (!file->shards || file->shard > file->shards)
		file->shard = file->shards = 0;
	else
		file->stem = (size_t)(of - 5 - file->path);
}

/* The file's place, or a free one; NULL: neither is near, which only numbers made for that come to. */
static uint32_t *inode_slot(const struct catalog *catalog, uint64_t dev, uint64_t ino)
{
	size_t first = (size_t)((dev ^ ino) * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (size_t i = first; i < first + INODE_PROBES; i++) {
		uint32_t *slot = &catalog->by_inode[i & (catalog->by_inode_room - 1)];
		const struct catalog_file *file = *slot ? &catalog->files[*slot - 1] : NULL;

		if (!file || (file->dev == dev && file->ino == ino))
			return slot;
	}
	return NULL;
}

static void inode_add(struct catalog *catalog, uint32_t file)
{
	uint32_t *slot = inode_slot(catalog, catalog->files[file].dev, catalog->files[file].ino);

	if (slot)
		*slot = file + 1;
}

/* All files so far, in a table that is at most half full. */
static int inodes_fill(struct catalog *catalog)
{
	size_t room = catalog->by_inode_room ? catalog->by_inode_room : 64;

	while (room < ((size_t)catalog->file_count + 1) * 2)
		room *= 2;
	free(catalog->by_inode);
	catalog->by_inode = calloc(room, sizeof(*catalog->by_inode));
	catalog->by_inode_room = catalog->by_inode ? room : 0;
	if (!catalog->by_inode)
		return -ENOMEM;
	for (uint32_t i = 0; i < catalog->file_count; i++)
		inode_add(catalog, i);
	return 0;
}

/*
 * A shard that an index names and the program opens has two identifiers: it is one file. The other one's entry, or NULL.
 */
static struct catalog_file *file_same(const struct catalog *catalog, const struct st_ev_file *record)
{
	const uint32_t *slot = catalog->index_count ? inode_slot(catalog, record->dev, record->ino) : NULL;
	struct catalog_file *file = slot && *slot ? &catalog->files[*slot - 1] : NULL;

	if (!file || file->size != record->size ||
	    (record->id < ST_FILE_INDEXED && (file->id < ST_FILE_INDEXED || file->opened)))
		return NULL;
	return file;
}

static int file_join(struct catalog *catalog, struct catalog_file *file, const struct st_ev_file *record)
{
	char *path;

	catalog->by_id[record->id] = (uint32_t)(file - catalog->files) + 1;
	if (record->id >= ST_FILE_INDEXED) {
		file->index = (uint32_t)catalog->index_count;
		return 0;
	}
	path = text_copy(&record->r); /* the name that the program used */
	if (!path)
		return -ENOMEM;
	free(file->path);
	file->path = path;
	file->id = (uint32_t)record->id;
	file->format = EVENT_KNOWN_OR_0(ST_FILE_FORMAT, record->format);
	file->opened = true;
	shard_of_name(file);
	return 0;
}

static int index_record(struct catalog *catalog, const struct st_ev_index *record)
{
	struct catalog_index index = {
		.total_size = record->total_size, .shards = record->shards, .tensors = record->tensors};
	int error = array_reserve(&catalog->indexes, sizeof(index), catalog->index_count, catalog->index_room,
	                          &catalog->index_room);

	if (error)
		return error;
	index.path = text_copy(&record->r);
	if (!index.path)
		return -ENOMEM;
	catalog->indexes[catalog->index_count++] = index;
	return catalog->index_count == 1 ? inodes_fill(catalog) : 0;
}

static int file_record(struct catalog *catalog, const struct st_ev_file *record)
{
	struct catalog_file file = {.id = (uint32_t)record->id,
	                            .format = EVENT_KNOWN_OR_0(ST_FILE_FORMAT, record->format),
	                            .dev = record->dev,
	                            .ino = record->ino,
	                            .size = record->size,
	                            .payload = record->size};
	size_t room = catalog->file_room;
	int error;

	if (record->format == ST_FILE_OTHER || record->id >= FILE_IDS_MAX || !record->id)
		return 0;
	error = by_id_reserve(catalog, record->id);
	if (!error)
		error = array_reserve(&catalog->files, sizeof(file), catalog->file_count, room, &room);
	if (error || catalog->by_id[record->id])
		return error;
	catalog->file_room = (uint32_t)room;
	if (file_same(catalog, record))
		return file_join(catalog, file_same(catalog, record), record);
	file.opened = record->id < ST_FILE_INDEXED;
	file.index = file.opened ? 0 : (uint32_t)catalog->index_count;
	file.path = text_copy(&record->r);
	if (!file.path)
		return -ENOMEM;
	shard_of_name(&file);
	catalog->files[catalog->file_count++] = file;
	catalog->by_id[record->id] = catalog->file_count;
	if (!catalog->index_count)
		return 0;
	if ((size_t)catalog->file_count * 2 > catalog->by_inode_room)
		return inodes_fill(catalog);
	inode_add(catalog, catalog->file_count - 1);
	return 0;
}

static int tensor_record(struct catalog *catalog, const struct st_ev_tensor *record)
{
	struct catalog_tensor tensor = {.file = catalog_weight(catalog, record->file),
	                                .dtype = EVENT_KNOWN_OR_0(ST_DTYPE, record->dtype),
	                                .offset = record->offset,
	                                .size = record->size,
	                                .elements = record->elements};
	int error;

	if (tensor.file == CATALOG_NONE || catalog->sorted || tensor.offset > UINT64_MAX - tensor.size)
		return 0;
	error = array_reserve(&catalog->tensors, sizeof(tensor), catalog->tensor_count, catalog->tensor_room,
	                      &catalog->tensor_room);
	if (error)
		return error;
	tensor.name = text_copy(&record->r);
	if (!tensor.name)
		return -ENOMEM;
	catalog->tensors[catalog->tensor_count++] = tensor;
	return 0;
}

int catalog_record(struct catalog *catalog, const struct st_record *record)
{
	if (record->kind == ST_KIND_file)
		return file_record(catalog, (const struct st_ev_file *)record);
	if (record->kind == ST_KIND_tensor)
		return tensor_record(catalog, (const struct st_ev_tensor *)record);
	if (record->kind == ST_KIND_index)
		return index_record(catalog, (const struct st_ev_index *)record);
	return 0;
}

static int tensor_compare(const void *left, const void *right)
{
	const struct catalog_tensor *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void repeated_drop(struct catalog *catalog)
{
	size_t kept = 0;

	for (size_t i = 0; i < catalog->tensor_count; i++) {
		if (kept && !tensor_compare(&catalog->tensors[kept - 1], &catalog->tensors[i]))
			free(catalog->tensors[i].name);
		else
			catalog->tensors[kept++] = catalog->tensors[i];
	}
	catalog->tensor_count = kept;
}

void catalog_sort(struct catalog *catalog)
{
	uint64_t end = 0;

	catalog->sorted = true;
	if (!catalog->tensor_count)
		return;
	qsort(catalog->tensors, catalog->tensor_count, sizeof(*catalog->tensors), tensor_compare);
	repeated_drop(catalog);
	for (size_t i = 0; i < catalog->tensor_count; i++) {
		struct catalog_tensor *tensor = &catalog->tensors[i];
		struct catalog_file *file = &catalog->files[tensor->file];

		if (!file->tensor_count) {
			file->tensor_first = i;
			file->payload = end = 0;
		}
		file->tensor_count++;
		/* Tied tensors may share bytes: these count once. */
		if (tensor->offset + tensor->size > end) {
			file->payload += tensor->offset + tensor->size - bytes_max(end, tensor->offset);
			end = tensor->offset + tensor->size;
		}
	}
}

uint32_t catalog_weight(const struct catalog *catalog, uint64_t id)
{
	if (id >= catalog->by_id_room || !catalog->by_id[id])
		return CATALOG_NONE;
	return catalog->by_id[id] - 1;
}

size_t catalog_tensor_at(const struct catalog *catalog, uint32_t weight, uint64_t offset)
{
	const struct catalog_file *file = &catalog->files[weight];
	size_t lo = file->tensor_first, hi = lo + file->tensor_count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		const struct catalog_tensor *tensor = &catalog->tensors[middle];

		if (tensor->offset + tensor->size > offset)
			hi = middle;
		else
			lo = middle + 1;
	}
	return lo;
}

uint32_t catalog_tensor_of(const struct catalog *catalog, uint32_t weight, uint64_t offset)
{
	const struct catalog_file *file = &catalog->files[weight];
	size_t at = catalog_tensor_at(catalog, weight, offset);

	if (at >= file->tensor_first + file->tensor_count || catalog->tensors[at].offset > offset)
		return CATALOG_NONE;
	return (uint32_t)at;
}
