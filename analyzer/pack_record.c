/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_WORDS (sizeof(struct st_record) / 8)

/* What a field is that a line of a scenario leaves out, where the default of its type says too little. */
static const struct {
	enum st_kind kind;
	const char *field;
	uint64_t value;
} absent_values[] = {
	{ST_KIND_block, "minor", ST_FORMAT_MINOR},
	{ST_KIND_process, "pid", PACK_PID},
	{ST_KIND_process, "page_size", 4096},
	{ST_KIND_process, "pool", ST_POOL_UMA},
	{ST_KIND_process, "cpus", 1},
};

uint64_t pack_absent(const struct event_kind *kind, const struct event_field *field)
{
	for (size_t i = 0; i < sizeof(absent_values) / sizeof(*absent_values); i++)
		if (absent_values[i].kind == (enum st_kind)kind->number &&
		    !strcmp(absent_values[i].field, field->name))
			return absent_values[i].value;
	return field->type->missing;
}

static const struct event_field *file_field(const struct event_kind *kind)
{
	for (size_t i = 0; i < kind->field_count; i++)
		if (kind->fields[i].type->form == EVENT_FORM_FILE)
			return &kind->fields[i];
	return NULL;
}

/* --- which keys a line may have ------------------------------------------------------------------ */

static bool listed(const char *const *list, const char *key)
{
	while (*list && strcmp(*list, key))
		list++;
	return *list;
}

static bool key_known(const struct event_kind *kind, const char *key)
{
	static const char *const common[] = {"event", "seq", "seq_raw", "time", "thread", NULL};
	static const char *const raw[] = {"raw", NULL};
	static const char *const text[] = {"text", "text_hex", NULL};
	static const char *const words[] = {"words", NULL};
	static const char *const more[] = {"more", NULL};
	static const char *const named[] = {"path", "file_size", "format", NULL};
	static const char *const *const tails[] = {
		[EVENT_TAIL_NONE] = more, [EVENT_TAIL_TEXT] = text, [EVENT_TAIL_WORDS] = words};

	if (listed(common, key))
		return true;
	if (!kind)
		return listed(raw, key);
	return event_field_find(kind, key) || listed(tails[kind->tail], key) ||
	       (file_field(kind) && listed(named, key)) ||
	       (kind->number == ST_KIND_file && !strcmp(key, "path"));
}

static int check_keys(struct pack *pack, const struct event_kind *kind, json_t *line)
{
	static const char *const either[][2] = {{"text", "text_hex"}, {"file", "path"}, {"seq", "seq_raw"}};
	const char *key;
	json_t *value;

	json_object_foreach(line, key, value) if (!key_known(kind, key)) return pack_fail(
		pack, key, "%s has no such field", kind ? kind->name : "this kind");
	for (size_t i = 0; i < sizeof(either) / sizeof(*either); i++)
		if (json_object_get(line, either[i][0]) && json_object_get(line, either[i][1]))
			return pack_fail(pack, either[i][1], "given beside \"%s\"", either[i][0]);
	return 0;
}

/* --- the parts of a record ----------------------------------------------------------------------- */

/* seq, time, thread into pack->record; the time stays for what comes after. */
static int common_part(struct pack *pack, unsigned kind, json_t *line)
{
	json_t *seq = json_object_get(line, "seq"), *seq_raw = json_object_get(line, "seq_raw");
	json_t *time = json_object_get(line, "time"), *thread = json_object_get(line, "thread");
	static const struct event_type time_type = {.form = EVENT_FORM_TIME};
	uint64_t number = 0, thread_number = 0;
	int error = 0;

	if (time)
		error = pack_value(pack, "time", &time_type, time, &pack->time);
	if (!error && thread)
		error = pack_number(pack, "thread", thread, UINT32_MAX, &thread_number);
	if (!error && seq)
		error = pack_number(pack, "seq", seq, ST_SEQ_MASK, &number);
	if (!error && seq_raw)
		error = pack_number(pack, "seq_raw", seq_raw, UINT64_MAX, &number);
	if (error)
		return error;
	*(struct st_record *)pack->record = pack_head(pack, kind, RECORD_WORDS);
	((struct st_record *)pack->record)->thread = (uint32_t)thread_number;
	((struct st_record *)pack->record)->seq = seq ? number | ST_SEQ_MAGIC : number;
	if (seq && pack->last_seq && (number | ST_SEQ_MAGIC) <= pack->last_seq)
		return pack_fail(pack, "seq", "not above the one before: a reader would drop the record");
	if (seq)
		pack->last_seq = number | ST_SEQ_MAGIC;
	return 0;
}

static int fields_part(struct pack *pack, const struct event_kind *kind, json_t *line)
{
	for (size_t i = 0; i < kind->field_count; i++) {
		const struct event_field *field = &kind->fields[i];
		json_t *value = json_object_get(line, field->name);
		uint64_t *ret_value = pack->record + RECORD_WORDS + i;
		int error = 0;

		*ret_value = pack_absent(kind, field);
		if (value)
			error = pack_value(pack, field->name, field->type, value, ret_value);
		else if (field == file_field(kind) && json_object_get(line, "path"))
			error = pack_file(pack, line, ret_value);
		if (error)
			return error;
	}
	if (file_field(kind) && !json_object_get(line, "path") &&
	    (json_object_get(line, "file_size") || (json_object_get(line, "format"))))
		return pack_fail(pack, "path", "missing: \"file_size\" and \"format\" go with it");
	return 0;
}

/* Room behind the fields, in words. */
static size_t tail_room(const struct event_kind *kind)
{
	return (size_t)PACK_RECORD_WORDS - kind->words;
}

static int text_part(struct pack *pack, const struct event_kind *kind, json_t *line, size_t *ret_words)
{
	json_t *text = json_object_get(line, "text"), *hex = json_object_get(line, "text_hex");
	json_t *path = kind->number == ST_KIND_file ? json_object_get(line, "path") : NULL;
	char *tail = (char *)(pack->record + kind->words);
	size_t length = 0;
	int error = 0;

	if (path && (text || hex))
		return pack_fail(pack, "path", "given beside \"text\"");
	if (path)
		text = path;
	if (text && !json_is_string(text))
		return pack_fail(pack, path ? "path" : "text", "a text is wanted");
	length = text ? json_string_length(text) : 0;
	if (length > tail_room(kind) * 8)
		return pack_fail(pack, "text", "%zu bytes are more than a record can hold", length);
	if (text)
		memcpy(tail, json_string_value(text), length);
	if (hex)
		error = pack_hex(pack, "text_hex", hex, tail_room(kind) * 8, tail, &length);
	if (!error && memchr(tail, 0, length))
		error = pack_fail(pack, "text_hex", "a NUL in a text");
	if (error)
		return error;
	*ret_words = (length + 7) / 8;
	memset(tail + length, 0, *ret_words * 8 - length);
	return 0;
}

static int words_part(struct pack *pack, const struct event_kind *kind, json_t *line, size_t *ret_words)
{
	const char *key = kind->tail == EVENT_TAIL_WORDS ? "words" : "more";
	json_t *list = json_object_get(line, key);
	size_t count = json_array_size(list);

	if (list && !json_is_array(list))
		return pack_fail(pack, key, "a list is wanted");
	if (count > tail_room(kind))
		return pack_fail(pack, key, "%zu words are more than a record can hold", count);
	for (size_t i = 0; i < count; i++) {
		int error = pack_number(pack, key, json_array_get(list, i), UINT64_MAX,
		                        pack->record + kind->words + i);

		if (error)
			return error;
	}
	*ret_words = count;
	return 0;
}

/* --- lines --------------------------------------------------------------------------------------- */

static int known_line(struct pack *pack, const struct event_kind *kind, json_t *line)
{
	struct st_record *record = (struct st_record *)pack->record;
	size_t tail = 0;
	int error = fields_part(pack, kind, line);

	if (!error && kind->tail == EVENT_TAIL_TEXT)
		error = text_part(pack, kind, line, &tail);
	else if (!error)
		error = words_part(pack, kind, line, &tail);
	if (error)
		return error;
	record->words = (uint16_t)(kind->words + tail);
	if (kind->number == ST_KIND_file)
		error = pack_file_given(pack, line, (struct st_ev_file *)record);
	else if (kind->number == ST_KIND_stack)
		pack_stack_given(pack, line, (struct st_ev_stack *)record);
	return error ? error : pack_append(pack, record);
}

/* A record that only its bytes describe. */
static int raw_line(struct pack *pack, json_t *line)
{
	struct st_record *record = (struct st_record *)pack->record;
	json_t *raw = json_object_get(line, "raw");
	size_t bytes = 0;
	int error;

	if (!raw)
		return pack_fail(pack, "raw", "missing");
	error = pack_hex(pack, "raw", raw, (PACK_RECORD_WORDS - RECORD_WORDS) * 8, record + 1, &bytes);
	if (error)
		return error;
	if (bytes % 8)
		return pack_fail(pack, "raw", "%zu bytes are not whole words", bytes);
	record->words = (uint16_t)(RECORD_WORDS + bytes / 8);
	return pack_append(pack, record);
}

static int head_text(struct pack *pack, json_t *line, const char *key, const char *hex_key, char *text,
                     size_t room)
{
	json_t *value = json_object_get(line, key), *hex = json_object_get(line, hex_key);
	size_t length = 0;

	if (hex)
		return pack_hex(pack, hex_key, hex, room - 1, text, &length);
	if (!value)
		return 0;
	if (!json_is_string(value) || json_string_length(value) >= room)
		return pack_fail(pack, key, "a text of less than %zu bytes is wanted", room);
	memcpy(text, json_string_value(value), json_string_length(value));
	return 0;
}

static int head_line(struct pack *pack, json_t *line)
{
	static const char *const keys[] = {"event",       "minor", "pid",      "start_time", "boot_id",
	                                   "boot_id_hex", "ring",  "ring_hex", NULL};
	static const struct event_type number = {.form = EVENT_FORM_UNSIGNED};
	struct st_file_head head = {.major = ST_FORMAT_MAJOR};
	uint64_t minor = ST_FORMAT_MINOR, pid = 0;
	const char *key;
	json_t *value;
	int error = 0;

	if (pack->trace || pack->complete)
		return pack_fail(pack, "event", "the head comes first");
	json_object_foreach(line, key, value)
	{
		if (!listed(keys, key))
			return pack_fail(pack, key, "head has no such field");
		if (!strcmp(key, "minor"))
			error = pack_number(pack, key, value, UINT16_MAX, &minor);
		else if (!strcmp(key, "pid"))
			error = pack_number(pack, key, value, UINT32_MAX, &pid);
		else if (!strcmp(key, "start_time"))
			error = pack_value(pack, key, &number, value, &head.start_time);
		if (error)
			return error;
	}
	error = head_text(pack, line, "boot_id", "boot_id_hex", head.boot_id, sizeof(head.boot_id));
	if (!error)
		error = head_text(pack, line, "ring", "ring_hex", head.ring, sizeof(head.ring));
	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	head.minor = (uint16_t)minor;
	head.pid = (uint32_t)pid;
	pack->head = head;
	pack->complete = true;
	return error;
}

/* The number in "kind 250"; -1: it is no such word. */
static long raw_kind(const char *name)
{
	char *end;
	long number;

	if (strncmp(name, "kind ", 5) || name[5] < '0' || name[5] > '9')
		return -1;
	number = strtol(name + 5, &end, 10);
	return *end || number > UINT16_MAX ? -1 : number;
}

int pack_line(struct pack *pack, json_t *line)
{
	const char *name = json_string_value(json_object_get(line, "event"));
	const struct event_kind *kind;
	long number;
	int error;

	if (!json_is_object(line))
		return pack_fail(pack, NULL, "not an object");
	if (!name)
		return pack_fail(pack, "event", "missing: the name of a kind of record");
	if (!strcmp(name, "head"))
		return head_line(pack, line);
	kind = event_kind_find_name(name);
	number = kind ? kind->number : raw_kind(name);
	if (number < 0)
		return pack_fail(pack, "event", "\"%.60s\" is no kind of record", name);
	error = check_keys(pack, kind, line);
	if (!error)
		error = common_part(pack, (unsigned)number, line);
	if (error)
		return error;
	return kind ? known_line(pack, kind, line) : raw_line(pack, line);
}
