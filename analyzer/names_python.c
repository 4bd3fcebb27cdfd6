/* SPDX-License-Identifier: Apache-2.0 */
#include "names_python.h"

#include "array.h"
#include "event.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LONGEST 4096 /* Linux has no longer ones; this bounds the work of a look-up */

struct code {
	char *function; /* ends where the file begins */
	const char *file;
	uint32_t line;
	struct package_known package;
};

struct python_stack {
	uint64_t *frames; /* code id << 32 | line */
	uint32_t depth;
	bool cut;
};

struct owner {
	struct package package; /* first: what is given out; its strings lie in `text` */
	size_t length;          /* of the folder */
	char *text;
};

/* Shorter folders first, so that most comparisons look at no character. */
static int owner_compare(const void *left, const void *right)
{
	const struct owner *a = left, *b = right;

	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return memcmp(a->package.folder, b->package.folder, a->length);
}

static void owner_free(void *owner)
{
	free(((struct owner *)owner)->text);
	free(owner);
}

void names_python_release(struct names_python *python)
{
	for (size_t i = 0; i < python->code_count; i++)
		free(python->codes[i].function);
	for (size_t i = 0; i < python->stack_count; i++)
		free(python->stacks[i].frames);
	free(python->codes);
	free(python->stacks);
	livemap_release(&python->code_at);
	livemap_release(&python->stack_at);
	tdestroy(python->packages, owner_free);
	memset(python, 0, sizeof(*python));
}

static char *text_copy(const struct st_record *record)
{
	const char *text;
	size_t length = record_text(record, &text);

	return strndup(text, length);
}

static bool is_new(const struct livemap *map, uint64_t id)
{
	struct span span;

	return id && id <= UINT32_MAX && !livemap_find(map, id, &span);
}

static int remember(struct livemap *map, uint64_t id, size_t index)
{
	return livemap_insert_alone(map, &(struct span){id, id + 1, index, 0});
}

/* "qualified.name /its/file.py": the shim leaves no space in the name. */
static int code_record(struct names_python *python, const struct st_ev_code *record)
{
	struct code code = {.line = (uint32_t)record->line};
	char *space;
	int error;

	if (!is_new(&python->code_at, record->id))
		return 0;
	error = array_reserve(&python->codes, sizeof(code), python->code_count, &python->code_room);
	if (error)
		return error;
	code.function = text_copy(&record->r);
	if (!code.function)
		return -ENOMEM;
	space = strchr(code.function, ' ');
	if (space) {
		*space = 0;
		code.file = space + 1;
	}
	python->codes[python->code_count++] = code;
	return remember(&python->code_at, record->id, python->code_count - 1);
}

static int frames_record(struct names_python *python, const struct st_ev_frames *record)
{
	const uint64_t *words;
	size_t depth = record_words(&record->r, &words);
	struct python_stack stack = {.depth = (uint32_t)depth, .cut = record->flags & 1u << ST_STACK_CUT};
	int error;

	if (!depth || !is_new(&python->stack_at, record->id))
		return 0;
	error = array_reserve(&python->stacks, sizeof(stack), python->stack_count, &python->stack_room);
	if (error)
		return error;
	stack.frames = malloc(depth * sizeof(*words));
	if (!stack.frames)
		return -ENOMEM;
	memcpy(stack.frames, words, depth * sizeof(*words));
	python->stacks[python->stack_count++] = stack;
	return remember(&python->stack_at, record->id, python->stack_count - 1);
}

/* Splits "NAME VERSION FOLDER" in place. False: it is none. */
static bool owner_split(struct owner *owner)
{
	char *version = strchr(owner->text, ' ');
	char *folder = version ? strchr(version + 1, ' ') : NULL;

	if (!folder || folder[1] != '/')
		return false;
	*version++ = 0;
	*folder++ = 0;
	owner->package = (struct package){owner->text, version, folder};
	owner->length = strlen(folder);
	return true;
}

static int package_record(struct names_python *python, const struct st_ev_package *record)
{
	struct owner *owner = calloc(1, sizeof(*owner)), **place;

	if (!owner)
		return -ENOMEM;
	owner->text = text_copy(&record->r);
	if (!owner->text) {
		free(owner);
		return -ENOMEM;
	}
	if (!owner_split(owner)) {
		owner_free(owner);
		return 0;
	}
	place = tsearch(owner, &python->packages, owner_compare);
	if (!place || *place != owner)
		owner_free(owner);
	else
		python->package_count++;
	return place ? 0 : -ENOMEM;
}

int names_python_record(struct names_python *python, const struct st_record *record)
{
	switch (record->kind) {
	case ST_KIND_code:
		return code_record(python, (const void *)record);
	case ST_KIND_frames:
		return frames_record(python, (const void *)record);
	case ST_KIND_package:
		return package_record(python, (const void *)record);
	default:
		return 0;
	}
}

static const struct python_stack *stack_find(const struct names_python *python, uint32_t stack)
{
	struct span span;

	return livemap_find(&python->stack_at, stack, &span) ? &python->stacks[span.a] : NULL;
}

size_t python_depth(const struct names_python *python, uint32_t stack)
{
	const struct python_stack *there = stack_find(python, stack);

	return there ? there->depth : 0;
}

struct python_frame python_frame(const struct names_python *python, uint32_t stack, size_t i)
{
	uint64_t word = stack_find(python, stack)->frames[i];
	struct python_frame frame = {.line = (uint32_t)word};
	struct span span;

	if (livemap_find(&python->code_at, word >> 32, &span)) {
		struct code *code = &python->codes[span.a];

		frame.function = code->function;
		frame.file = code->file;
		frame.first_line = code->line;
		frame.package = python_package_of(python, code->file, &code->package);
	}
	return frame;
}

bool python_is_cut(const struct names_python *python, uint32_t stack)
{
	const struct python_stack *there = stack_find(python, stack);

	return there && there->cut;
}

const struct package *python_package(const struct names_python *python, const char *path)
{
	size_t length = path ? strnlen(path, PATH_LONGEST + 1) : 0;

	for (size_t end = length; length <= PATH_LONGEST && end > 0; end--) {
		struct owner key = {.package.folder = path, .length = end}, **found;

		if (end < length && path[end] != '/')
			continue;
		found = tfind(&key, &python->packages, owner_compare);
		if (found)
			return &(*found)->package;
	}
	return NULL;
}

const struct package *python_package_of(const struct names_python *python, const char *path,
                                        struct package_known *known)
{
	if (known->asked != python->package_count + 1) {
		known->package = python_package(python, path);
		known->asked = python->package_count + 1;
	}
	return known->package;
}
