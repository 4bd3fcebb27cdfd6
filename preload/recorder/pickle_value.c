/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a pickle: the stack, tuples, and the tree that holds the tensors. */
#include "pickle_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TUPLE_DEPTH 8

int array_add(struct pickle *pickle, struct array *array, size_t size, const void *element)
{
	uint32_t room = array->room ? array->room * 2 : 64;
	void *elements;

	if (array->count == array->max)
		return source_fail(&pickle->source, "the pickle is too large to be followed");
	if (array->count == array->room) {
		elements = realloc(array->elements, room * size);
		if (!elements)
			return -ENOMEM;
		array->elements = elements;
		array->room = room;
	}
	memcpy((char *)array->elements + array->count++ * size, element, size);
	return 0;
}

int value_push(struct pickle *pickle, uint64_t value)
{
	return array_add(pickle, &pickle->stack, sizeof(value), &value);
}

int value_pop(struct pickle *pickle, uint64_t *ret_value)
{
	if (!pickle->stack.count)
		return source_fail(&pickle->source, "the pickle takes what it never made");
	*ret_value = ((const uint64_t *)pickle->stack.elements)[--pickle->stack.count];
	return 0;
}

static uint64_t *values(const struct pickle *pickle)
{
	return pickle->stack.elements;
}

int stack_marked(struct pickle *pickle, uint32_t *ret_count)
{
	uint32_t i = pickle->stack.count;

	while (i && value_kind(values(pickle)[i - 1]) != VALUE_MARK)
		i--;
	if (!i)
		return source_fail(&pickle->source, "there is no mark");
	*ret_count = pickle->stack.count - i;
	return 0;
}

void stack_drop(struct pickle *pickle, uint32_t count)
{
	while (count--)
		value_drop(pickle, values(pickle)[--pickle->stack.count]);
}

int text_read(const struct pickle *pickle, uint64_t value, char *text, size_t size)
{
	size_t length = value_number(value) & ((1u << TEXT_BITS) - 1), i;
	uint64_t offset = value_number(value) >> TEXT_BITS;

	text[0] = '\0';
	if (value_kind(value) != VALUE_TEXT)
		return 0;
	length = length < size ? length : size - 1;
	if (length && pread(pickle->source.fd, text, length, (off_t)offset) != (ssize_t)length)
		return -EIO;
	text[length] = '\0';
	for (i = 0; i < length; i++)
		if (!text[i])
			text[i] = '?';
	return 0;
}

/* --- tuples ---------------------------------------------------------------------------------- */

const uint64_t *tuple_values(const struct pickle *pickle, uint64_t value, uint64_t *ret_count)
{
	const uint64_t *cells = pickle->cells.elements;
	uint64_t first = value_number(value) + 2;

	*ret_count = 0;
	if (value_kind(value) != VALUE_TUPLE || first > pickle->cells.count ||
	    cells[first - 1] > pickle->cells.count - first)
		return NULL;
	*ret_count = cells[first - 1];
	return cells + first;
}

int tuple_push(struct pickle *pickle, uint32_t count)
{
	const uint64_t *cells = pickle->cells.elements;
	uint64_t at = pickle->cells.count, head[2] = {at, count};
	uint32_t first = pickle->stack.count - count, i;
	int err = 0;

	for (i = 0; i < count && head[0] == at; i++) {
		uint64_t value = ((const uint64_t *)pickle->stack.elements)[first + i];

		if (value_kind(value) == VALUE_TUPLE)
			head[0] = cells[value_number(value)];
	}
	for (i = 0; i < 2 && !err; i++)
		err = array_add(pickle, &pickle->cells, sizeof(*head), &head[i]);
	for (i = 0; i < count && !err; i++)
		err = array_add(pickle, &pickle->cells, sizeof(*head),
		                (const uint64_t *)pickle->stack.elements + first + i);
	pickle->stack.count = first;
	return err ? err : value_push(pickle, value_make(VALUE_TUPLE, at));
}

void value_drop(struct pickle *pickle, uint64_t value)
{
	const uint64_t *cells = pickle->cells.elements;
	uint64_t at = value_number(value);

	if (value_kind(value) == VALUE_TUPLE && at + 2 <= pickle->cells.count &&
	    at + 2 + cells[at + 1] == pickle->cells.count)
		pickle->cells.count = (uint32_t)cells[at];
}

/* --- the tree -------------------------------------------------------------------------------- */

static int node_add(struct pickle *pickle, uint64_t *ret_node)
{
	const struct node node = {0};

	*ret_node = pickle->nodes.count;
	return array_add(pickle, &pickle->nodes, sizeof(node), &node);
}

int node_push(struct pickle *pickle)
{
	uint64_t node;
	int err = node_add(pickle, &node);

	return err ? err : value_push(pickle, value_make(VALUE_NODE, node));
}

static int item_add(struct pickle *pickle, uint64_t number, uint64_t key, uint64_t value)
{
	const struct item item = {key, value, 0};
	struct node *node = (struct node *)pickle->nodes.elements + number;
	int err = array_add(pickle, &pickle->items, sizeof(item), &item);

	if (err)
		return err;
	if (node->last)
		((struct item *)pickle->items.elements)[node->last - 1].next = pickle->items.count;
	else
		node->first = pickle->items.count;
	node->last = pickle->items.count;
	return 0;
}

/* A tuple with tensors in it becomes a node; it is taken apart, because `cells` will be used again. */
static int tuple_keep(struct pickle *pickle, uint64_t tuple, unsigned depth, uint64_t *ret_value)
{
	uint64_t count, number, i;
	int err = node_add(pickle, &number);

	tuple_values(pickle, tuple, &count);
	for (i = 0; i < count && !err; i++) {
		uint64_t value = tuple_values(pickle, tuple, &count)[i];

		if (value_kind(value) == VALUE_TUPLE)
			err = depth ? tuple_keep(pickle, value, depth - 1, &value) : 0;
		if (!err && (value_kind(value) == VALUE_TENSOR || value_kind(value) == VALUE_NODE))
			err = item_add(pickle, number, value_make(VALUE_INT, i), value);
	}
	*ret_value = value_make(VALUE_NODE, number);
	return err;
}

static bool tuple_holds(const struct pickle *pickle, uint64_t tuple)
{
	uint64_t count, i;
	const uint64_t *values = tuple_values(pickle, tuple, &count);

	for (i = 0; i < count; i++)
		if (value_kind(values[i]) == VALUE_TENSOR || value_kind(values[i]) == VALUE_NODE ||
		    value_kind(values[i]) == VALUE_TUPLE)
			return true;
	return false;
}

int node_put(struct pickle *pickle, uint64_t node, uint64_t key, uint64_t value, bool list)
{
	uint64_t tuple = value, number = value_number(node);
	int err = 0;

	if (value_kind(node) != VALUE_NODE)
		return 0;
	if (list)
		key = value_make(VALUE_INT, ((struct node *)pickle->nodes.elements)[number].count++);
	if (value_kind(value) == VALUE_TUPLE && tuple_holds(pickle, value))
		err = tuple_keep(pickle, tuple, TUPLE_DEPTH, &value);
	if (!err && (value_kind(value) == VALUE_TENSOR || value_kind(value) == VALUE_NODE))
		err = item_add(pickle, number, key, value);
	return err;
}

int node_fill(struct pickle *pickle, uint64_t node, uint32_t count, uint32_t width)
{
	uint32_t first = pickle->stack.count - count, i;
	int err = 0;

	for (i = 0; i + width <= count && !err; i += width)
		err = node_put(pickle, node, values(pickle)[first + i], values(pickle)[first + i + width - 1],
		               width == 1);
	stack_drop(pickle, count);
	return err;
}
