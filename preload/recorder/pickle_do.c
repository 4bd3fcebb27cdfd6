/* SPDX-License-Identifier: Apache-2.0 */
/* What each opcode of a pickle does. */
#include "pickle_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL   5
#define MEMO_GAP   1024u /* pickles count what they keep from 0; pieces of it may be left out */
#define OFFSET_MAX (UINT64_C(1) << 40)
#define LINE_LIMIT 65536u /* an opcode is a bounded piece of work */

static uint64_t *values(const struct pickle *pickle)
{
	return pickle->stack.elements;
}

/* A tuple is taken once: of a second look at it nothing is known. */
static uint64_t value_again(uint64_t value)
{
	return value_kind(value) == VALUE_TUPLE || value_kind(value) == VALUE_MARK ? VALUE_OTHER : value;
}

static int node_take(struct pickle *pickle, uint64_t *ret_node)
{
	int err = node_push(pickle);

	return err ? err : value_pop(pickle, ret_node);
}

/* --- plain values ---------------------------------------------------------------------------- */

static int do_nothing(struct pickle *pickle, uint64_t argument)
{
	(void)pickle;
	(void)argument;
	return 0;
}

static int do_protocol(struct pickle *pickle, uint64_t argument)
{
	return argument > PROTOCOL ? source_fail(&pickle->source, "a later protocol") : 0;
}

static int do_push(struct pickle *pickle, uint64_t value)
{
	return value_push(pickle, value);
}

static int do_int(struct pickle *pickle, uint64_t argument)
{
	return value_push(pickle, value_make(VALUE_INT, argument));
}

static int do_signed(struct pickle *pickle, uint64_t argument)
{
	return value_push(pickle, value_make(VALUE_INT, (uint64_t)(int64_t)(int32_t)(uint32_t)argument));
}

static int do_long(struct pickle *pickle, uint64_t bytes)
{
	uint64_t number = 0;

	if (bytes > 7) {
		if (source_skip(&pickle->source, bytes))
			return -EINVAL;
		return value_push(pickle, VALUE_OTHER);
	}
	if (source_number(&pickle->source, bytes, &number))
		return -EINVAL;
	if (bytes && number >> (bytes * 8 - 1))
		return value_push(pickle, VALUE_OTHER); /* no size is negative */
	return do_int(pickle, number);
}

static int do_bytes(struct pickle *pickle, uint64_t bytes)
{
	return source_skip(&pickle->source, bytes) ? -EINVAL : value_push(pickle, VALUE_OTHER);
}

static int do_text(struct pickle *pickle, uint64_t bytes)
{
	uint64_t at = pickle->source.at;

	if (bytes >> TEXT_BITS || at >= OFFSET_MAX)
		return do_bytes(pickle, bytes);
	if (source_skip(&pickle->source, bytes))
		return -EINVAL;
	return value_push(pickle, value_make(VALUE_TEXT, at << TEXT_BITS | bytes));
}

/* A line, cut at size - 1. */
static int read_line(struct pickle *pickle, char *text, size_t size)
{
	size_t used = 0, length;
	char byte;

	for (length = 0;; length++) {
		if (length == LINE_LIMIT)
			return source_fail(&pickle->source, "a line is too long");
		if (source_take(&pickle->source, &byte, 1))
			return -EINVAL;
		if (byte == '\n')
			break;
		if (used + 1 < size)
			text[used++] = byte;
	}
	text[used] = '\0';
	return 0;
}

static int do_line(struct pickle *pickle, uint64_t argument)
{
	char text[8];

	(void)argument;
	return read_line(pickle, text, sizeof(text)) ? -EINVAL : value_push(pickle, VALUE_OTHER);
}

static int do_global(struct pickle *pickle, uint64_t argument)
{
	char module[64], name[64];

	(void)argument;
	if (read_line(pickle, module, sizeof(module)) || read_line(pickle, name, sizeof(name)))
		return -EINVAL;
	return value_push(pickle, torch_global(module, name));
}

static int do_stack_global(struct pickle *pickle, uint64_t argument)
{
	uint64_t texts[2] = {VALUE_OTHER, VALUE_OTHER};
	char module[64], name[64];
	int err = value_pop(pickle, &texts[1]);

	(void)argument;
	if (!err)
		err = value_pop(pickle, &texts[0]);
	if (!err)
		err = text_read(pickle, texts[0], module, sizeof(module));
	if (!err)
		err = text_read(pickle, texts[1], name, sizeof(name));
	return err ? err : value_push(pickle, torch_global(module, name));
}

/* --- the stack and the memo ------------------------------------------------------------------ */

static int do_stop(struct pickle *pickle, uint64_t argument)
{
	uint64_t value;
	int err = value_pop(pickle, &value);

	(void)argument;
	if (!err)
		err = node_take(pickle, &pickle->root);
	if (!err)
		err = node_put(pickle, pickle->root, value_make(VALUE_SILENT, 0), value, false);
	pickle->over = !err;
	return err;
}

static int do_pop(struct pickle *pickle, uint64_t argument)
{
	uint64_t value;
	int err = value_pop(pickle, &value);

	(void)argument;
	if (!err)
		value_drop(pickle, value);
	return err;
}

static int do_pop_mark(struct pickle *pickle, uint64_t argument)
{
	uint32_t count = 0;

	(void)argument;
	if (stack_marked(pickle, &count))
		return -EINVAL;
	stack_drop(pickle, count + 1);
	return 0;
}

static int do_dup(struct pickle *pickle, uint64_t argument)
{
	(void)argument;
	if (!pickle->stack.count)
		return source_fail(&pickle->source, "the pickle takes what it never made");
	return value_push(pickle, value_again(values(pickle)[pickle->stack.count - 1]));
}

static int do_put(struct pickle *pickle, uint64_t number)
{
	const uint64_t none = VALUE_OTHER;
	int err = 0;

	if (!pickle->stack.count)
		return source_fail(&pickle->source, "the pickle keeps what it never made");
	if (number > (uint64_t)pickle->memo.count + MEMO_GAP)
		return source_fail(&pickle->source, "the pickle keeps things out of order");
	while (!err && pickle->memo.count <= number)
		err = array_add(pickle, &pickle->memo, sizeof(none), &none);
	if (!err)
		((uint64_t *)pickle->memo.elements)[number] =
			value_again(values(pickle)[pickle->stack.count - 1]);
	return err;
}

static int do_memoize(struct pickle *pickle, uint64_t argument)
{
	(void)argument;
	return do_put(pickle, pickle->memo.count);
}

static int do_get(struct pickle *pickle, uint64_t number)
{
	if (number >= pickle->memo.count)
		return source_fail(&pickle->source, "the pickle comes back to what it never kept");
	return value_push(pickle, ((const uint64_t *)pickle->memo.elements)[number]);
}

/* --- containers ------------------------------------------------------------------------------ */

static int do_tuple(struct pickle *pickle, uint64_t argument)
{
	uint32_t count = 0;
	uint64_t tuple = 0;
	int err = stack_marked(pickle, &count);

	(void)argument;
	if (!err)
		err = tuple_push(pickle, count);
	if (!err)
		err = value_pop(pickle, &tuple);
	if (!err)
		values(pickle)[pickle->stack.count - 1] = tuple; /* in the mark's place */
	return err;
}

/* A tuple of so many. */
static int do_short_tuple(struct pickle *pickle, uint64_t count)
{
	uint64_t i;

	for (i = 1; i <= count; i++)
		if (pickle->stack.count < i ||
		    value_kind(values(pickle)[pickle->stack.count - i]) == VALUE_MARK)
			return source_fail(&pickle->source, "the pickle takes what it never made");
	return tuple_push(pickle, (uint32_t)count);
}

static int do_node(struct pickle *pickle, uint64_t argument)
{
	(void)argument;
	return node_push(pickle);
}

/* Into the container below the mark. */
static int do_fill(struct pickle *pickle, uint64_t width)
{
	uint32_t count = 0;
	int err;

	if (stack_marked(pickle, &count))
		return -EINVAL;
	if (pickle->stack.count < count + 2)
		return source_fail(&pickle->source, "the pickle fills what it never made");
	err = node_fill(pickle, values(pickle)[pickle->stack.count - count - 2], count, (uint32_t)width);
	pickle->stack.count--; /* the mark */
	return err;
}

/* Into a container that is made for it. */
static int do_gather(struct pickle *pickle, uint64_t width)
{
	uint32_t count = 0;
	uint64_t node;
	int err;

	if (stack_marked(pickle, &count))
		return -EINVAL;
	err = node_take(pickle, &node);
	if (!err)
		err = node_fill(pickle, node, count, (uint32_t)width);
	if (err)
		return err;
	pickle->stack.count--;
	return value_push(pickle, node);
}

/* One pair, or one element. */
static int do_add(struct pickle *pickle, uint64_t width)
{
	if (pickle->stack.count < width + 1)
		return source_fail(&pickle->source, "the pickle fills what it never made");
	return node_fill(pickle, values(pickle)[pickle->stack.count - width - 1], (uint32_t)width,
	                 (uint32_t)width);
}

/* The state of an object: what it holds, under no name of its own. */
static int do_build(struct pickle *pickle, uint64_t argument)
{
	uint64_t state;
	int err = value_pop(pickle, &state);

	(void)argument;
	if (!err && !pickle->stack.count)
		return source_fail(&pickle->source, "the pickle fills what it never made");
	if (!err)
		err = node_put(pickle, values(pickle)[pickle->stack.count - 1], value_make(VALUE_SILENT, 0),
		               state, false);
	if (!err)
		value_drop(pickle, state);
	return err;
}

/* With `keywords` these stand on top of the arguments. */
static int do_call(struct pickle *pickle, uint64_t keywords)
{
	uint64_t function, arguments, value = VALUE_OTHER;
	int err = keywords ? do_pop(pickle, 0) : 0;

	if (!err)
		err = value_pop(pickle, &arguments);
	if (!err)
		err = value_pop(pickle, &function);
	if (!err)
		err = torch_call(pickle, function, arguments, &value);
	if (err)
		return err;
	value_drop(pickle, arguments);
	return value_push(pickle, value);
}

static int do_persistent(struct pickle *pickle, uint64_t argument)
{
	uint64_t tuple, storage;
	int err = value_pop(pickle, &tuple);

	(void)argument;
	if (err)
		return err;
	storage = torch_storage(pickle, tuple);
	value_drop(pickle, tuple);
	return value_push(pickle, storage);
}

/* By opcode: the bytes of the number that follows (0: `argument` stands for it). */
static const struct op {
	int (*run)(struct pickle *pickle, uint64_t argument);
	unsigned char bytes, argument;
} ops[256] = {
	[0x80] = {do_protocol, 1, 0},    [0x95] = {do_nothing, 8, 0},      ['('] = {do_push, 0, VALUE_MARK},
	['.'] = {do_stop, 0, 0},         ['0'] = {do_pop, 0, 0},           ['1'] = {do_pop_mark, 0, 0},
	['2'] = {do_dup, 0, 0},          ['J'] = {do_signed, 4, 0},        ['K'] = {do_int, 1, 0},
	['M'] = {do_int, 2, 0},          [0x8a] = {do_long, 1, 0},         [0x8b] = {do_long, 4, 0},
	['G'] = {do_bytes, 0, 8},        ['N'] = {do_push, 0, 0},          [0x88] = {do_push, 0, 0},
	[0x89] = {do_push, 0, 0},        ['X'] = {do_text, 4, 0},          [0x8c] = {do_text, 1, 0},
	[0x8d] = {do_text, 8, 0},        ['T'] = {do_bytes, 4, 0},         ['U'] = {do_bytes, 1, 0},
	['B'] = {do_bytes, 4, 0},        ['C'] = {do_bytes, 1, 0},         [0x8e] = {do_bytes, 8, 0},
	[0x96] = {do_bytes, 8, 0},       ['I'] = {do_line, 0, 0},          ['L'] = {do_line, 0, 0},
	['F'] = {do_line, 0, 0},         ['S'] = {do_line, 0, 0},          ['V'] = {do_line, 0, 0},
	['c'] = {do_global, 0, 0},       [0x93] = {do_stack_global, 0, 0}, [')'] = {do_short_tuple, 0, 0},
	[0x85] = {do_short_tuple, 0, 1}, [0x86] = {do_short_tuple, 0, 2},  [0x87] = {do_short_tuple, 0, 3},
	['t'] = {do_tuple, 0, 0},        [']'] = {do_node, 0, 0},          ['}'] = {do_node, 0, 0},
	[0x8f] = {do_node, 0, 0},        ['l'] = {do_gather, 0, 1},        ['d'] = {do_gather, 0, 2},
	[0x91] = {do_gather, 0, 1},      ['a'] = {do_add, 0, 1},           ['s'] = {do_add, 0, 2},
	['e'] = {do_fill, 0, 1},         ['u'] = {do_fill, 0, 2},          [0x90] = {do_fill, 0, 1},
	['R'] = {do_call, 0, 0},         [0x81] = {do_call, 0, 0},         [0x92] = {do_call, 0, 1},
	['b'] = {do_build, 0, 0},        ['q'] = {do_put, 1, 0},           ['r'] = {do_put, 4, 0},
	[0x94] = {do_memoize, 0, 0},     ['h'] = {do_get, 1, 0},           ['j'] = {do_get, 4, 0},
	['Q'] = {do_persistent, 0, 0},
};

int pickle_do(struct pickle *pickle)
{
	const struct op *op;
	unsigned char code;
	uint64_t argument;

	if (source_take(&pickle->source, &code, 1))
		return -EINVAL;
	op = &ops[code];
	argument = op->argument;
	if (!op->run)
		return source_fail(&pickle->source, "an opcode that torch.save() does not write");
	if (op->bytes && source_number(&pickle->source, op->bytes, &argument))
		return -EINVAL;
	return op->run(pickle, argument);
}
