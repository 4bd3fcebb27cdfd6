/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/stages_stack.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACKS_MAX   (1u << 24) /* identifiers beyond are damage: see names.c */
#define NAME_LONGEST 4096       /* this bounds the work of a name that is made to be long */

struct stack_stages {
	const struct names *names;
	uint8_t *of; /* 1 + enum stage; 0: not looked yet */
	size_t room;
};

/*
 * Part of a function's name, or the name of a package, and what it says; the first row that any frame fits counts.
 * at::native::_to_copy is what PyTorch's .to(dtype) becomes; bitsandbytes quantises on the device and allocates its
 * outputs there (facts/loaders.md 4.3); engines re-pack in process_weights_after_loading (5.1).
 */
static const struct {
	const char *function, *package;
	enum stage stage;
} rows[] = {
	{"process_weights_after_loading", NULL, STAGE_REPACK},
	{"repack", NULL, STAGE_REPACK},
	{NULL, "bitsandbytes", STAGE_QUANTISE},
	{"quantize", NULL, STAGE_QUANTISE},
	{"_ZN2at6native8_to_copy", NULL, STAGE_CONVERSION},
	{"_ZN2at6native5clone", NULL, STAGE_HOST_COPY},
	{"_ZN2at6native10contiguous", NULL, STAGE_HOST_COPY},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool row_fits(size_t row, const char *function, size_t length, const struct package *package)
{
	if (rows[row].package)
		return package && !strcmp(package->name, rows[row].package);
	return function && memmem(function, length, rows[row].function, strlen(rows[row].function));
}

/* The first of the rows before `end` that the frame fits, else `end`. */
static size_t row_of_frame(size_t end, const char *function, const struct package *package)
{
	size_t length = function ? strnlen(function, NAME_LONGEST) : 0;

	for (size_t row = 0; row < end; row++)
		if (row_fits(row, function, length, package))
			return row;
	return end;
}

static enum stage stack_look(const struct names *names, uint32_t stack)
{
	size_t row = ROWS, native = names_depth(names, stack), python = names_python_depth(names, stack);

	for (size_t i = 0; i < native && row; i++) {
		struct frame frame = names_frame(names, stack, i);

		row = row_of_frame(row, frame.function, frame.package);
	}
	for (size_t i = 0; i < python && row; i++) {
		struct python_frame frame = names_python_frame(names, stack, i);

		row = row_of_frame(row, frame.function, frame.package);
	}
	return row < ROWS ? rows[row].stage : STAGE_COUNT;
}

/* False: no memory for an answer. */
static bool stages_reach(struct stack_stages *stages, size_t stack)
{
	size_t room = stack + stack / 2 + 64;
	uint8_t *of;

	if (stack < stages->room)
		return true;
	of = realloc(stages->of, room);
	if (!of)
		return false;
	memset(of + stages->room, 0, room - stages->room);
	stages->of = of;
	stages->room = room;
	return true;
}

enum stage stack_stage(struct stack_stages *stages, uint64_t stack)
{
	if (!stages || !stack || stack >= STACKS_MAX || !stages_reach(stages, stack))
		return STAGE_COUNT;
	if (!stages->of[stack])
		stages->of[stack] = (uint8_t)(1 + stack_look(stages->names, (uint32_t)stack));
	return (enum stage)(stages->of[stack] - 1);
}

int stack_stages_create(const struct names *names, struct stack_stages **ret_stages)
{
	struct stack_stages *stages = calloc(1, sizeof(*stages));

	if (!stages)
		return -ENOMEM;
	stages->names = names;
	*ret_stages = stages;
	return 0;
}

void stack_stages_free(struct stack_stages *stages)
{
	if (!stages)
		return;
	free(stages->of);
	free(stages);
}
