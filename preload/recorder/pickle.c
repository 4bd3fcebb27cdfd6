/* SPDX-License-Identifier: Apache-2.0 */
#include "pickle_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 1024u      /* opcodes that are read at a time */
#define MEMO  (4u << 20) /* values that the pickle may come back to */
#define CELLS (1u << 16)

int pickle_open(int fd, uint64_t at, uint64_t end, const struct source_cache *cache,
                struct pickle **ret_pickle)
{
	struct pickle *pickle = calloc(1, sizeof(*pickle));

	if (!pickle)
		return -ENOMEM;
	source_begin(&pickle->source, fd, at, end, cache);
	pickle->stack.max = pickle->tensors.max = pickle->nodes.max = pickle->items.max = PICKLE_MAX;
	pickle->memo.max = MEMO;
	pickle->cells.max = CELLS;
	*ret_pickle = pickle;
	return 0;
}

void pickle_free(struct pickle *pickle)
{
	if (!pickle)
		return;
	free(pickle->stack.elements);
	free(pickle->memo.elements);
	free(pickle->cells.elements);
	free(pickle->tensors.elements);
	free(pickle->nodes.elements);
	free(pickle->items.elements);
	free(pickle);
}

const struct source *pickle_source(const struct pickle *pickle)
{
	return &pickle->source;
}

/* What only served to read it. */
static void array_release(struct array *array)
{
	free(array->elements);
	*array = (struct array){0};
}

int pickle_read(struct pickle *pickle)
{
	unsigned i;
	int err = 0;

	for (i = 0; i < PIECE && !err && !pickle->over; i++)
		err = pickle_do(pickle);
	if (err)
		return err;
	if (!pickle->over)
		return 1;
	array_release(&pickle->stack);
	array_release(&pickle->memo);
	array_release(&pickle->cells);
	return 0;
}

/* --- the tensors ----------------------------------------------------------------------------- */

/* Adds a key to the name. Those by which a module holds its parts are in no name that people know. */
static void name_add(const struct pickle *pickle, uint64_t key, char *name, size_t length, size_t size)
{
	static const char *const silent[] = {"_modules", "_parameters", "_buffers"};
	char text[TENSOR_NAME] = "?";
	size_t i;

	name[length] = '\0';
	if (value_kind(key) == VALUE_SILENT)
		return;
	if (value_kind(key) == VALUE_INT)
		snprintf(text, sizeof(text), "%lld", (long long)value_int(key));
	else if (value_kind(key) == VALUE_TEXT)
		text_read(pickle, key, text, sizeof(text));
	for (i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		if (!strcmp(text, silent[i]))
			return;
	snprintf(name + length, size - length, "%s%s", length ? "." : "", text);
}

/* Goes into a node, once: two ways lead to what the pickle holds twice. */
static void enter(struct pickle *pickle, uint64_t value, size_t length)
{
	struct node *node = (struct node *)pickle->nodes.elements + value_number(value);

	if (node->seen || pickle->depth == DEPTH_MAX)
		return;
	node->seen = true;
	pickle->path[pickle->depth++] = (struct step){node->first, length};
}

int pickle_next(struct pickle *pickle, struct pickle_tensor *ret_tensor, char *name, size_t size)
{
	if (!pickle->walked)
		enter(pickle, pickle->root, 0);
	pickle->walked = true;
	while (pickle->depth) {
		struct step *step = &pickle->path[pickle->depth - 1];
		const struct item *item;

		if (!step->item) {
			pickle->depth--;
			continue;
		}
		item = (const struct item *)pickle->items.elements + step->item - 1;
		step->item = item->next;
		name_add(pickle, item->key, name, step->length, size);
		if (value_kind(item->value) == VALUE_NODE) {
			enter(pickle, item->value, strlen(name));
			continue;
		}
		*ret_tensor =
			((const struct pickle_tensor *)pickle->tensors.elements)[value_number(item->value)];
		return 1;
	}
	return 0;
}
