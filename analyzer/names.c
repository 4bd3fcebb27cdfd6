/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/event.h>
#include <analyzer/livemap.h>
#include <analyzer/names.h>
#include <analyzer/names_python.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACK_IDS_MAX (1u << 24) /* identifiers count from 1; larger ones are damage */

struct stack {
	uint64_t *address;
	uint32_t depth;
	bool known, cut;
};

struct module {
	char *path;
	uint64_t start, offset;
	struct package_known package;
};

struct symbol {
	char *name;
	uint64_t offset;
};

struct names {
	struct stack *stacks; /* by identifier */
	size_t stack_room;
	struct module *modules;
	size_t module_count, module_room;
	struct livemap module_at; /* a: index; a later module takes the addresses of an earlier one */
	struct symbol *symbols;
	size_t symbol_count, symbol_room;
	struct livemap symbol_at, thread_at; /* a: index */
	char **threads;
	size_t thread_count, thread_room;
	struct names_python python;
};

int names_create(struct names **ret_names)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	*ret_names = names;
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->stack_room; i++)
		free(names->stacks[i].address);
	for (size_t i = 0; i < names->module_count; i++)
		free(names->modules[i].path);
	for (size_t i = 0; i < names->symbol_count; i++)
		free(names->symbols[i].name);
	for (size_t i = 0; i < names->thread_count; i++)
		free(names->threads[i]);
	names_python_release(&names->python);
	livemap_release(&names->module_at);
	livemap_release(&names->symbol_at);
	livemap_release(&names->thread_at);
	free(names->stacks);
	free(names->modules);
	free(names->symbols);
	free(names->threads);
	free(names);
}

static int grow(void *array, size_t size, size_t need, size_t *room)
{
	void **elements = array;
	size_t more = *room ? *room : 64;
	char *moved;

	if (need <= *room)
		return 0;
	while (more < need)
		more *= 2;
	moved = realloc(*elements, more * size);
	if (!moved)
		return -ENOMEM;
	memset(moved + *room * size, 0, (more - *room) * size);
	*elements = moved;
	*room = more;
	return 0;
}

static char *text_copy(const struct st_record *record)
{
	const char *text;
	size_t length = record_text(record, &text);

	return strndup(text, length);
}

/* [lo, hi) now means `index`, whatever it meant before. */
static int meaning_set(struct livemap *map, uint64_t lo, uint64_t hi, uint64_t index)
{
	struct span span = {lo, hi, index, 0};
	int error = lo < hi ? livemap_cut(map, lo, hi, NULL, NULL) : 0;

	return error || lo >= hi ? error : livemap_insert(map, &span);
}

static int stack_record(struct names *names, const struct st_ev_stack *record)
{
	const uint64_t *words;
	size_t depth = record_words(&record->r, &words);
	struct stack *stack;
	int error;

	if (!record->id || record->id >= STACK_IDS_MAX)
		return 0;
	error = grow(&names->stacks, sizeof(*names->stacks), record->id + 1, &names->stack_room);
	if (error)
		return error;
	stack = &names->stacks[record->id];
	if (stack->known)
		return 0;
	stack->known = true;
	stack->cut = record->flags & 1u << ST_STACK_CUT;
	if (!depth)
		return 0;
	stack->address = malloc(depth * sizeof(*words));
	if (!stack->address)
		return -ENOMEM;
	memcpy(stack->address, words, depth * sizeof(*words));
	stack->depth = (uint32_t)depth;
	return 0;
}

static int module_record(struct names *names, const struct st_ev_module *record)
{
	struct module module = {
		.path = text_copy(&record->r), .start = record->start, .offset = record->offset};
	int error = grow(&names->modules, sizeof(module), names->module_count + 1, &names->module_room);

	if (!error && !module.path)
		error = -ENOMEM;
	if (error) {
		free(module.path);
		return error;
	}
	names->modules[names->module_count++] = module;
	return meaning_set(&names->module_at, record->start, record->end, names->module_count - 1);
}

static int symbol_record(struct names *names, const struct st_ev_symbol *record)
{
	struct symbol symbol = {text_copy(&record->r), record->offset};
	int error = grow(&names->symbols, sizeof(symbol), names->symbol_count + 1, &names->symbol_room);

	if (!error && !symbol.name)
		error = -ENOMEM;
	if (error) {
		free(symbol.name);
		return error;
	}
	names->symbols[names->symbol_count++] = symbol;
	return meaning_set(&names->symbol_at, record->address, record->address + 1, names->symbol_count - 1);
}

static int thread_record(struct names *names, const struct st_ev_thread *record)
{
	char *name = text_copy(&record->r);
	int error =
		grow(&names->threads, sizeof(*names->threads), names->thread_count + 1, &names->thread_room);

	if (!error && !name)
		error = -ENOMEM;
	if (error) {
		free(name);
		return error;
	}
	names->threads[names->thread_count++] = name;
	return meaning_set(&names->thread_at, record->tid, record->tid + 1, names->thread_count - 1);
}

int names_record(struct names *names, const struct st_record *record)
{
	switch (record->kind) {
	case ST_KIND_stack:
		return stack_record(names, (const void *)record);
	case ST_KIND_module:
		return module_record(names, (const void *)record);
	case ST_KIND_symbol:
		return symbol_record(names, (const void *)record);
	case ST_KIND_thread:
		return thread_record(names, (const void *)record);
	default:
		return names_python_record(&names->python, record);
	}
}

size_t names_depth(const struct names *names, uint32_t stack)
{
	return stack < names->stack_room ? names->stacks[stack].depth : 0;
}

struct frame names_frame(const struct names *names, uint32_t stack, size_t i)
{
	struct frame frame = {.address = names->stacks[stack].address[i]};
	struct span span;

	/* A return address may be the first byte behind its function's module: the call is before it. */
	if (frame.address && livemap_find(&names->module_at, frame.address - 1, &span)) {
		struct module *module = &names->modules[span.a];

		frame.module = module->path;
		frame.offset = frame.address - module->start + module->offset;
		frame.package = python_package_of(&names->python, module->path, &module->package);
	}
	if (livemap_find(&names->symbol_at, frame.address, &span)) {
		frame.function = names->symbols[span.a].name;
		frame.offset = names->symbols[span.a].offset;
	}
	return frame;
}

bool names_stack_is_cut(const struct names *names, uint32_t stack)
{
	return stack < names->stack_room && names->stacks[stack].cut;
}

size_t names_python_depth(const struct names *names, uint32_t stack)
{
	return python_depth(&names->python, stack);
}

struct python_frame names_python_frame(const struct names *names, uint32_t stack, size_t i)
{
	return python_frame(&names->python, stack, i);
}

bool names_python_is_cut(const struct names *names, uint32_t stack)
{
	return python_is_cut(&names->python, stack);
}

const struct package *names_package(const struct names *names, const char *path)
{
	return python_package(&names->python, path);
}

const char *names_base(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

bool names_is_standard(const char *file)
{
	const char *lib = file ? strstr(file, "/lib/python3.") : NULL;

	return !file || file[0] == '<' || (lib && !strstr(lib, "-packages/"));
}

const char *names_thread(const struct names *names, uint32_t tid)
{
	struct span span;

	return livemap_find(&names->thread_at, tid, &span) ? names->threads[span.a] : NULL;
}
