/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Functions get addresses where no program has its own. */
#define SYMBOL_BASE     0x10000u
#define SYMBOL_STEP     16u
#define STACK_DEPTH_MAX 1024

static const struct {
	const char *suffix;
	enum st_file_format format;
} suffixes[] = {
	{".safetensors", ST_FILE_SAFETENSORS},
	{".gguf", ST_FILE_GGUF},
	{".pt", ST_FILE_TORCH},
	{".pth", ST_FILE_TORCH},
	{".bin", ST_FILE_TORCH},
};

static enum st_file_format format_of(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t end = strlen(suffixes[i].suffix);

		if (length > end && !strcmp(path + length - end, suffixes[i].suffix))
			return suffixes[i].format;
	}
	return ST_FILE_OTHER;
}

static int no_memory(int failed)
{
	return failed ? -ENOMEM : 0;
}

/* A record with a text behind its fields, in the room for symbols and files that lines do not give. */
static int append_text(struct pack *pack, const struct st_record *head, const char *text)
{
	size_t fields = (size_t)head->words * 8, length = strlen(text), tail = (length + 7) / 8;
	struct st_record *record;
	int error;

	if (head->words + tail > PACK_RECORD_WORDS)
		return pack_fail(pack, NULL, "\"%.20s...\" is longer than a record can hold", text);
	record = calloc(head->words + tail, 8);
	if (!record)
		return -ENOMEM;
	memcpy(record, head, fields);
	memcpy((char *)record + fields, text, length);
	record->words = (uint16_t)(head->words + tail);
	error = pack_append(pack, record);
	free(record);
	return error;
}

/* --- files --------------------------------------------------------------------------------------- */

static int remember_file(struct pack *pack, const char *path, const struct st_ev_file *file)
{
	return no_memory(json_object_set_new(pack->files, path,
	                                     json_pack("[I,I,I]", (json_int_t)file->id,
	                                               (json_int_t)file->size, (json_int_t)file->format)));
}

static uint64_t known(json_t *entry, size_t index)
{
	return (uint64_t)json_integer_value(json_array_get(entry, index));
}

/* "file_size" and "format" of a line, else what stands in `file` already. */
static int file_words(struct pack *pack, json_t *line, struct st_ev_file *file)
{
	const struct event_kind *kind = event_kind_find(ST_KIND_file);
	json_t *size = json_object_get(line, "file_size"), *format = json_object_get(line, "format");
	int error = 0;

	if (size)
		error = pack_value(pack, "file_size", event_field_find(kind, "size")->type, size,
		                   &file->size);
	if (!error && format)
		error = pack_value(pack, "format", event_field_find(kind, "format")->type, format,
		                   &file->format);
	return error;
}

static int known_file(struct pack *pack, json_t *line, json_t *entry, uint64_t *ret_id)
{
	struct st_ev_file file = {.size = known(entry, 1), .format = known(entry, 2)};
	int error = file_words(pack, line, &file);

	if (error)
		return error;
	if (file.size != known(entry, 1))
		return pack_fail(pack, "file_size", "not what an earlier line said of this path");
	if (file.format != known(entry, 2))
		return pack_fail(pack, "format", "not what an earlier line said of this path");
	*ret_id = known(entry, 0);
	return 0;
}

int pack_file(struct pack *pack, json_t *line, uint64_t *ret_id)
{
	const char *path = json_string_value(json_object_get(line, "path"));
	struct st_ev_file file = {.dev = 1};
	json_t *entry;
	int error;

	if (!path || !*path)
		return pack_fail(pack, "path", "a file's name is wanted");
	entry = json_object_get(pack->files, path);
	if (entry)
		return known_file(pack, line, entry, ret_id);
	file.r = pack_head(pack, ST_KIND_file, sizeof(file) / 8);
	file.id = file.ino = pack->last_file + 1;
	file.format = format_of(path);
	error = file_words(pack, line, &file);
	if (!error)
		error = append_text(pack, &file.r, path);
	if (!error)
		error = remember_file(pack, path, &file);
	pack->last_file = file.id;
	*ret_id = file.id;
	return error;
}

int pack_file_given(struct pack *pack, json_t *line, struct st_ev_file *file)
{
	json_t *path = json_object_get(line, "path");

	if (!path)
		path = json_object_get(line, "text");
	if (!json_object_get(line, "id"))
		file->id = pack->last_file + 1;
	if (file->id > pack->last_file)
		pack->last_file = file->id;
	if (!json_object_get(line, "ino"))
		file->ino = file->id;
	if (!json_is_string(path))
		return 0; /* "text_hex", which no "path" can name */
	if (!json_object_get(line, "format"))
		file->format = format_of(json_string_value(path));
	return remember_file(pack, json_string_value(path), file);
}

/* --- stacks -------------------------------------------------------------------------------------- */

static int symbol_address(struct pack *pack, const char *function, uint64_t *ret_address)
{
	json_t *known_address = json_object_get(pack->symbols, function);
	struct st_ev_symbol symbol = {.r = pack_head(pack, ST_KIND_symbol, sizeof(symbol) / 8)};
	int error;

	if (known_address) {
		*ret_address = (uint64_t)json_integer_value(known_address);
		return 0;
	}
	symbol.address = SYMBOL_BASE + SYMBOL_STEP * ++pack->last_symbol;
	error = append_text(pack, &symbol.r, function);
	if (error)
		return error;
	*ret_address = symbol.address;
	return no_memory(
		json_object_set_new(pack->symbols, function, json_integer((json_int_t)symbol.address)));
}

static int append_stack(struct pack *pack, json_t *functions, uint64_t id)
{
	size_t depth = json_array_size(functions);
	struct {
		struct st_ev_stack stack;
		uint64_t addresses[STACK_DEPTH_MAX];
	} record = {.stack = {.id = id}};

	if (!depth || depth > STACK_DEPTH_MAX)
		return pack_fail(pack, "stack", "1 to %d functions are wanted", STACK_DEPTH_MAX);
	for (size_t i = 0; i < depth; i++) {
		const char *function = json_string_value(json_array_get(functions, i));
		int error;

		if (!function || !*function)
			return pack_fail(pack, "stack", "function %zu is no name", i);
		error = symbol_address(pack, function, &record.addresses[i]);
		if (error)
			return error;
	}
	record.stack.r = pack_head(pack, ST_KIND_stack, sizeof(record.stack) / 8 + depth);
	return pack_append(pack, &record.stack.r);
}

int pack_stack(struct pack *pack, json_t *functions, uint64_t *ret_id)
{
	char *key = json_dumps(functions, JSON_COMPACT);
	json_t *known_id = key ? json_object_get(pack->stacks, key) : NULL;
	int error = key ? 0 : -ENOMEM;

	if (known_id) {
		*ret_id = (uint64_t)json_integer_value(known_id);
	} else if (!error) {
		uint64_t id = pack->last_stack + 1;

		error = append_stack(pack, functions, id);
		if (!error)
			error = no_memory(
				json_object_set_new(pack->stacks, key, json_integer((json_int_t)id)));
		pack->last_stack = id;
		*ret_id = id;
	}
	free(key);
	return error;
}

void pack_stack_given(struct pack *pack, json_t *line, struct st_ev_stack *stack)
{
	if (!json_object_get(line, "id"))
		stack->id = pack->last_stack + 1;
	if (stack->id > pack->last_stack)
		pack->last_stack = stack->id;
}
