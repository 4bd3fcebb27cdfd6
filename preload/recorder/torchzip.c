/* SPDX-License-Identifier: Apache-2.0 */
#include "torchzip.h"
#include "pickle.h"
#include "zip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { STATE_DIRECTORY, STATE_PICKLE, STATE_NAMES, STATE_REST };

struct storage {
	uint64_t number;
	uint64_t data, size;
	bool named;
};

enum part { PART_OTHER, PART_STORAGE, PART_PICKLE };

struct torchzip {
	struct zip zip;
	enum state state;
	struct storage *storages; /* ascending numbers after the directory */
	uint32_t count, room, next;
	uint64_t pickle_at, pickle_size;
	struct pickle *pickle;
	const char *nameless;
};

/* --- the directory --------------------------------------------------------------------------- */

static int add_storage(struct torchzip *reader, const struct storage *storage)
{
	uint32_t room = reader->room ? reader->room * 2 : 256;
	struct storage *storages;

	if (reader->count == TORCHZIP_MAX) {
		reader->nameless = "there are too many storages";
		return 0;
	}
	if (reader->count == reader->room) {
		storages = realloc(reader->storages, room * sizeof(*storages));
		if (!storages)
			return -ENOMEM;
		reader->storages = storages;
		reader->room = room;
	}
	reader->storages[reader->count++] = *storage;
	return 0;
}

/* NAME/data.pkl, NAME/data/12 */
static enum part part_of(const char *name, uint64_t *ret_number)
{
	const char *slash = strchr(name, '/'), *digit;
	uint64_t number = 0;

	if (!slash)
		return PART_OTHER;
	if (!strcmp(slash, "/data.pkl"))
		return PART_PICKLE;
	if (strncmp(slash, "/data/", 6))
		return PART_OTHER;
	for (digit = slash + 6; *digit >= '0' && *digit <= '9' && number >> 40 == 0; digit++)
		number = number * 10 + (uint64_t)(*digit - '0');
	*ret_number = number;
	return *digit || digit == slash + 6 ? PART_OTHER : PART_STORAGE;
}

static int storage_compare(const void *left, const void *right)
{
	uint64_t a = ((const struct storage *)left)->number, b = ((const struct storage *)right)->number;

	return a < b ? -1 : a > b;
}

static int end_directory(struct torchzip *reader)
{
	int err;

	if (reader->count)
		qsort(reader->storages, reader->count, sizeof(*reader->storages), storage_compare);
	reader->state = STATE_REST;
	if (!reader->pickle_size) {
		reader->nameless = "it has no data.pkl";
		return TENSOR_STEP;
	}
	err = pickle_open(reader->zip.source.fd, reader->pickle_at, reader->pickle_at + reader->pickle_size,
	                  &reader->zip.source.cache, &reader->pickle);
	reader->state = STATE_PICKLE;
	return err ? err : TENSOR_STEP;
}

static int read_entry(struct torchzip *reader)
{
	struct zip_entry entry;
	uint64_t number = 0, data;
	enum part part;
	int rc = zip_next(&reader->zip, &entry);

	if (rc <= 0)
		return rc ? rc : end_directory(reader);
	/* A name that was cut may end in half a number. */
	if (entry.stored && entry.name_length < sizeof(entry.name))
		part = part_of(entry.name, &number);
	else
		part = PART_OTHER;
	if (part == PART_OTHER)
		return TENSOR_STEP;
	rc = zip_find_data(&reader->zip, &entry, &data);
	if (!rc && part == PART_STORAGE)
		rc = add_storage(reader, &(struct storage){number, data, entry.size, false});
	else if (!rc) {
		reader->pickle_at = data;
		reader->pickle_size = entry.size;
	}
	return rc ? rc : TENSOR_STEP;
}

/* --- the tensors ----------------------------------------------------------------------------- */

static int read_pickle(struct torchzip *reader)
{
	const struct source *source = pickle_source(reader->pickle);
	int rc = pickle_read(reader->pickle);

	if (rc == -ENOMEM || source->read_error)
		return rc == -ENOMEM ? rc : -source->read_error;
	if (rc < 0)
		reader->nameless = source->error ? source->error : "its pickle is damaged";
	reader->state = rc > 0 ? STATE_PICKLE : rc < 0 ? STATE_REST : STATE_NAMES;
	return TENSOR_STEP;
}

static struct storage *find_storage(const struct torchzip *reader, uint64_t number)
{
	const struct storage key = {.number = number};

	return reader->count ? bsearch(&key, reader->storages, reader->count, sizeof(key), storage_compare)
	                     : NULL;
}

static void name_storage(const struct storage *storage, char *name)
{
	snprintf(name, TENSOR_NAME, "data/%llu", (unsigned long long)storage->number);
}

/* A tensor that reaches out of its storage is none. */
static int name_next(struct torchzip *reader, struct file_tensor *tensor)
{
	struct pickle_tensor named;
	struct storage *storage;

	if (!pickle_next(reader->pickle, &named, tensor->name, sizeof(tensor->name))) {
		reader->state = STATE_REST;
		return TENSOR_STEP;
	}
	storage = find_storage(reader, named.storage);
	if (!storage || named.offset > storage->size || named.size > storage->size - named.offset)
		return TENSOR_STEP;
	storage->named = true;
	tensor->offset = storage->data + named.offset;
	tensor->size = named.size;
	tensor->elements = named.elements;
	tensor->dtype = named.dtype;
	if (!tensor->name[0])
		name_storage(storage, tensor->name);
	return TENSOR_READ;
}

static int rest_next(struct torchzip *reader, struct file_tensor *tensor)
{
	const struct storage *storage;

	if (reader->next == reader->count)
		return TENSOR_END;
	storage = &reader->storages[reader->next++];
	if (storage->named)
		return TENSOR_STEP;
	name_storage(storage, tensor->name);
	tensor->offset = storage->data;
	tensor->size = storage->size;
	tensor->elements = 0;
	tensor->dtype = ST_DTYPE_UNKNOWN;
	return TENSOR_READ;
}

int torchzip_next(struct torchzip *reader, struct file_tensor *ret_tensor)
{
	switch (reader->state) {
	case STATE_DIRECTORY:
		return reader->zip.source.error ? -EINVAL : read_entry(reader);
	case STATE_PICKLE:
		return read_pickle(reader);
	case STATE_NAMES:
		return name_next(reader, ret_tensor);
	case STATE_REST:
		break;
	}
	return rest_next(reader, ret_tensor);
}

int torchzip_open(int fd, uint64_t file_size, const struct source_cache *cache, struct torchzip **ret_reader)
{
	struct torchzip *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	err = zip_open(&reader->zip, fd, file_size, cache);
	if (err)
		free(reader);
	else
		*ret_reader = reader;
	return err;
}

const struct source *torchzip_source(const struct torchzip *reader)
{
	return &reader->zip.source;
}

const char *torchzip_nameless(const struct torchzip *reader)
{
	return reader->nameless;
}

uint64_t torchzip_own(const struct torchzip *reader)
{
	return reader->zip.source.own + (reader->pickle ? pickle_source(reader->pickle)->own : 0);
}

void torchzip_free(struct torchzip *reader)
{
	if (!reader)
		return;
	pickle_free(reader->pickle);
	free(reader->storages);
	free(reader);
}
