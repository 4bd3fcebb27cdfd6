/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pickle is while it is read. A value is a word: its kind in the lowest bits, above it a number whose meaning
 * the kind tells.
 *
 *	INT	the number, signed
 *	TEXT	length (20 bits) and offset in the file: texts stay there
 *	GLOBAL	index in the table of known ones + 1; 0: another
 *	TUPLE	index in `cells`: where the cells begin that end with it, its length, its values
 *	STORAGE	number of the record, and above STORAGE_DTYPE its element type
 *	TENSOR, NODE	index; a node is a dictionary, a list, or an object
 *
 * `cells` is a stack: tuples live from the opcode that makes them to the one that takes them.
 */
#ifndef SPARKTRACE_RECORDER_PICKLE_PARTS_H
#define SPARKTRACE_RECORDER_PICKLE_PARTS_H

#include "pickle.h"

#include <stdbool.h>

enum value_kind {
	VALUE_OTHER,
	VALUE_MARK,
	VALUE_INT,
	VALUE_TEXT,
	VALUE_GLOBAL,
	VALUE_TUPLE,
	VALUE_STORAGE,
	VALUE_TENSOR,
	VALUE_NODE,
	VALUE_SILENT /* a key that is no part of the name */
};

#define VALUE_BITS    4
#define TEXT_BITS     20
#define STORAGE_DTYPE 44

struct item {
	uint64_t key, value;
	uint32_t next; /* + 1; 0: the last */
};

struct node {
	uint32_t first, last; /* + 1; 0: none */
	uint32_t count;
	bool seen;
};

/* An array that grows, up to `max` elements. */
struct array {
	void *elements;
	uint32_t count, room, max;
};

struct step {
	uint32_t item;
	size_t length; /* of the name before it */
};

#define DEPTH_MAX 32

struct pickle {
	struct source source;
	struct array stack, memo, cells; /* values */
	struct array tensors, nodes, items;
	bool over;
	uint64_t root;
	struct step path[DEPTH_MAX];
	unsigned depth;
	bool walked;
};

static inline uint64_t value_make(enum value_kind kind, uint64_t number)
{
	return number << VALUE_BITS | kind;
}

static inline enum value_kind value_kind(uint64_t value)
{
	return (enum value_kind)(value & ((1u << VALUE_BITS) - 1));
}

static inline uint64_t value_number(uint64_t value)
{
	return value >> VALUE_BITS;
}

static inline int64_t value_int(uint64_t value)
{
	return (int64_t)value >> VALUE_BITS;
}

/* pickle_value.c: -ENOMEM, or -EINVAL where the bound is reached. */
int array_add(struct pickle *pickle, struct array *array, size_t size, const void *element);
/* What is pushed takes no place of its own in `cells`. */
int value_push(struct pickle *pickle, uint64_t value);
/* The topmost value, taken; a fault of the pickle where there is none. */
int value_pop(struct pickle *pickle, uint64_t *ret_value);
/* Values above the topmost mark; the mark stays. */
int stack_marked(struct pickle *pickle, uint32_t *ret_count);
/* Gives up the topmost `count` values. */
void stack_drop(struct pickle *pickle, uint32_t count);
/* The values of a tuple, NULL for anything else. */
const uint64_t *tuple_values(const struct pickle *pickle, uint64_t value, uint64_t *ret_count);
/* A tuple of the topmost `count` values takes their place. */
int tuple_push(struct pickle *pickle, uint32_t count);
/* The value is not needed any more. Those made last go first. */
void value_drop(struct pickle *pickle, uint64_t value);
int node_push(struct pickle *pickle);
/* Hangs a value into a node, where it is or has tensors. Keys of lists: VALUE_SILENT, they are counted. */
int node_put(struct pickle *pickle, uint64_t node, uint64_t key, uint64_t value, bool list);
/* The topmost values go into a node: pairs (width 2), or elements of a list (width 1). */
int node_fill(struct pickle *pickle, uint64_t node, uint32_t count, uint32_t width);
/* The text of a value, cut at size - 1; "" for anything else. */
int text_read(const struct pickle *pickle, uint64_t value, char *text, size_t size);

/* pickle_do.c: the next opcode. 0, -EINVAL, -ENOMEM, read errors. */
int pickle_do(struct pickle *pickle);

/* pickle_torch.c: what torch's own globals do. */
uint64_t torch_global(const char *module, const char *name);
/* The storage of a persistent identifier; VALUE_OTHER for another. */
uint64_t torch_storage(const struct pickle *pickle, uint64_t tuple);
/* The value of a call; it takes no place in `cells`. */
int torch_call(struct pickle *pickle, uint64_t function, uint64_t arguments, uint64_t *ret_value);

#endif
