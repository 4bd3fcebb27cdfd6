/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"
#include "json.h"

#include <errno.h>
#include <sparktrace/format.h>
#include <stdlib.h>
#include <string.h>

#define PIECE      512u /* entries of the map that are read at a time */
#define SHARD_NAME 256u
#define SLOTS      (INDEX_SHARDS * 2)

enum state { STATE_BEGIN, STATE_TOP, STATE_MAP, STATE_END };

struct index {
	struct json json;
	enum state state;
	bool first; /* of the map's entries */
	uint64_t total, tensors, refused;
	char **shards;
	uint32_t count, room, last; /* last: the shard of the last tensor, the next one is likely in it too */
	uint32_t *slots;            /* by hash: shard + 1 */
};

/* --- names of shards ------------------------------------------------------------------------- */

static uint32_t *slot_of(const struct index *index, const char *name)
{
	uint32_t hash = 2166136261u;
	const char *byte;

	for (byte = name; *byte; byte++)
		hash = (hash ^ (unsigned char)*byte) * 16777619u;
	hash %= SLOTS;
	while (index->slots[hash] && strcmp(index->shards[index->slots[hash] - 1], name))
		hash = (hash + 1) % SLOTS;
	return &index->slots[hash];
}

bool index_names(const struct index *index, const char *shard)
{
	return *slot_of(index, shard) != 0;
}

/* What leads out of the folder is not looked at. */
static bool is_plain(const char *name)
{
	size_t length = strlen(name);

	return length && length < SHARD_NAME - 1 && !strchr(name, '/') && strcmp(name, ".") &&
	       strcmp(name, "..");
}

static int add_shard(struct index *index, const char *name)
{
	uint32_t *slot, room = index->room ? index->room * 2 : 16;
	char **shards;

	if (!is_plain(name)) {
		index->refused++;
		return 0;
	}
	if (index->count && !strcmp(index->shards[index->last], name))
		return 0;
	slot = slot_of(index, name);
	if (*slot) {
		index->last = *slot - 1;
		return 0;
	}
	if (index->count == INDEX_SHARDS)
		return json_fail(&index->json, "it names too many files");
	if (index->count == index->room) {
		shards = realloc(index->shards, room * sizeof(*shards));
		if (!shards)
			return -ENOMEM;
		index->shards = shards;
		index->room = room;
	}
	index->shards[index->count] = strdup(name);
	if (!index->shards[index->count])
		return -ENOMEM;
	index->last = index->count++;
	*slot = index->count;
	return 0;
}

/* --- the text -------------------------------------------------------------------------------- */

/* Takes the comma or the end of an object: 1: one more name; 0: the end. */
static int read_more(struct index *index, bool first)
{
	if (!first)
		return json_read_more(&index->json, '}');
	if (json_next_sign(&index->json) != '}')
		return 1;
	index->json.at++;
	return 0;
}

static int read_key(struct index *index, char *key, size_t size)
{
	if (json_read_string(&index->json, key, size))
		return -EINVAL;
	return json_expect(&index->json, ':', "a colon was expected");
}

/* Some writers give it as a fraction: then it is skipped, and unknown. */
static int read_total(struct index *index)
{
	int sign = json_next_sign(&index->json);

	if (sign < '0' || sign > '9')
		return json_skip_value(&index->json);
	if (json_read_number(&index->json, &index->total))
		return -EINVAL;
	sign = json_next_sign(&index->json);
	if (sign == ',' || sign == '}')
		return 0;
	index->total = ST_UNKNOWN;
	return json_skip_value(&index->json);
}

static int read_metadata(struct index *index)
{
	bool first = true;
	char key[32];
	int more;

	if (json_next_sign(&index->json) != '{')
		return json_skip_value(&index->json);
	index->json.at++;
	while ((more = read_more(index, first)) > 0) {
		first = false;
		if (read_key(index, key, sizeof(key)) ||
		    (strcmp(key, "total_size") ? json_skip_value(&index->json) : read_total(index)))
			return -EINVAL;
	}
	return more;
}

/* One entry of the file's object; the map is read in pieces. */
static int read_top(struct index *index)
{
	char key[32];
	int more = read_more(index, index->state == STATE_BEGIN);

	if (more <= 0) {
		index->state = STATE_END;
		return more;
	}
	index->state = STATE_TOP;
	if (read_key(index, key, sizeof(key)))
		return -EINVAL;
	if (!strcmp(key, "metadata"))
		return read_metadata(index);
	if (strcmp(key, "weight_map"))
		return json_skip_value(&index->json);
	index->state = STATE_MAP;
	index->first = true;
	return json_expect(&index->json, '{', "weight_map is no object");
}

static int read_map(struct index *index)
{
	char key[8], shard[SHARD_NAME];
	int more = 1, err;
	unsigned i;

	for (i = 0; i < PIECE && (more = read_more(index, index->first)) > 0; i++) {
		index->first = false;
		if (read_key(index, key, sizeof(key)) || json_read_string(&index->json, shard, sizeof(shard)))
			return -EINVAL;
		index->tensors++;
		err = add_shard(index, shard);
		if (err)
			return err;
	}
	if (!more)
		index->state = STATE_TOP;
	return more < 0 ? more : 0;
}

int index_read(struct index *index)
{
	int err = 0;

	if (index->json.error)
		return -EINVAL;
	if (index->state == STATE_BEGIN)
		err = json_expect(&index->json, '{', "it is no object");
	if (!err)
		err = index->state == STATE_MAP ? read_map(index) : read_top(index);
	if (index->json.read_error)
		return -index->json.read_error;
	return err ? err : index->state != STATE_END;
}

int index_open(int fd, uint64_t file_size, const struct source_cache *cache, struct index **ret_index)
{
	struct index *index = calloc(1, sizeof(*index));

	if (!index)
		return -ENOMEM;
	index->slots = calloc(SLOTS, sizeof(*index->slots));
	if (!index->slots) {
		free(index);
		return -ENOMEM;
	}
	json_begin(&index->json, fd, 0, file_size, cache);
	index->total = ST_UNKNOWN;
	*ret_index = index;
	return 0;
}

const char *index_error(const struct index *index)
{
	return index->json.error ? index->json.error : "";
}

uint64_t index_total(const struct index *index)
{
	return index->total;
}

uint64_t index_tensors(const struct index *index)
{
	return index->tensors;
}

uint64_t index_own(const struct index *index)
{
	return index->json.own;
}

uint32_t index_shards(const struct index *index)
{
	return index->count;
}

const char *index_shard(const struct index *index, uint32_t i)
{
	return index->shards[i];
}

uint64_t index_refused(const struct index *index)
{
	return index->refused;
}

void index_free(struct index *index)
{
	uint32_t i;

	if (!index)
		return;
	for (i = 0; i < index->count; i++)
		free(index->shards[i]);
	free(index->shards);
	free(index->slots);
	free(index);
}
