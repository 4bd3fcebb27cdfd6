/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <errno.h>
#include <string.h>

/* Words of the types. Flag sets are indexed by bit number. */
#define W(number, text) text,
static const char *const device_words[] = {ST_DEVICE_HOW(W)};
static const char *const host_words[] = {ST_HOST_HOW(W)};
static const char *const read_words[] = {ST_READ_HOW(W)};
static const char *const copy_words[] = {ST_COPY_HOW(W)};
static const char *const sync_words[] = {ST_SYNC_HOW(W)};
static const char *const location_words[] = {ST_LOCATION(W)};
static const char *const format_words[] = {ST_FILE_FORMAT(W)};
static const char *const moment_words[] = {ST_MOMENT(W)};
static const char *const source_words[] = {ST_SOURCE(W)};
static const char *const pool_words[] = {ST_POOL_CLASS(W)};
static const char *const child_words[] = {ST_CHILD_HOW(W)};
static const char *const exit_words[] = {ST_EXIT_HOW(W)};
static const char *const dtype_words[] = {ST_DTYPE(W)};
static const char *const relief_words[] = {ST_RELIEF(W)};
static const char *const stackflags_words[] = {ST_STACK_FLAGS(W)};
static const char *const callflags_words[] = {ST_CALL_FLAGS(W)};
#undef W
#define E(number, name, tail, meaning) [number] = #name,
static const char *const kind_words[] = {ST_EVENTS(E)};
#undef E
/* The kernel's own bits, written out so that a trace from one machine reads the same on another. */
static const char *const prot_words[] = {"read", "write", "exec"};
static const char *const mapflags_words[] = {
	[0] = "shared",  [1] = "private",    [4] = "fixed",      [5] = "anonymous",
	[6] = "32bit",   [8] = "growsdown",  [11] = "denywrite", [12] = "executable",
	[13] = "locked", [14] = "noreserve", [15] = "populate",  [16] = "nonblock",
	[17] = "stack",  [18] = "hugetlb",   [19] = "sync",      [20] = "fixed_noreplace",
};

/* T(name as in format.h, form, value of a missing field) and V(name, form, words). */
#define TYPES(T, V)                            \
	T(ADDR, HEX, 0)                        \
	T(SIZE, SIZE, 0)                       \
	T(OPTSIZE, SIZE, ST_UNKNOWN)           \
	T(TIME, TIME, 0)                       \
	T(COUNT, UNSIGNED, 0)                  \
	T(OPTCOUNT, UNSIGNED, ST_UNKNOWN)      \
	T(INT, SIGNED, 0)                      \
	T(HANDLE, HEX, 0)                      \
	T(FILE, FILE, 0)                       \
	T(STACK, STACK, 0)                     \
	V(DEVICE, WORD, device_words)          \
	V(HOST, WORD, host_words)              \
	V(READ, WORD, read_words)              \
	V(COPY, WORD, copy_words)              \
	V(SYNC, WORD, sync_words)              \
	V(LOCATION, WORD, location_words)      \
	V(FORMAT, WORD, format_words)          \
	V(MOMENT, WORD, moment_words)          \
	V(SOURCE, WORD, source_words)          \
	V(POOL, WORD, pool_words)              \
	V(CHILD, WORD, child_words)            \
	V(EXIT, WORD, exit_words)              \
	V(DTYPE, WORD, dtype_words)            \
	V(KIND, WORD, kind_words)              \
	V(RELIEF, WORD, relief_words)          \
	V(STACKFLAGS, FLAGS, stackflags_words) \
	V(CALLFLAGS, FLAGS, callflags_words)   \
	V(PROT, FLAGS, prot_words)             \
	V(MAPFLAGS, FLAGS, mapflags_words)

#define T(id, shape, absent)                         \
	static const struct event_type type_##id = { \
		.name = #id, .form = EVENT_FORM_##shape, .missing = absent};
#define V(id, shape, list)                                                      \
	static const struct event_type type_##id = {.name = #id,                \
	                                            .form = EVENT_FORM_##shape, \
	                                            .words = list,              \
	                                            .word_count = sizeof(list) / sizeof(*list)};
TYPES(T, V)
#undef T
#undef V

/* An empty row ends each list, since a kind may have no fields. */
#define F(id, kind_of, what) {#id, what, &type_##kind_of},
#define E(number, name, tail, meaning) \
	static const struct event_field fields_##name[] = {ST_FIELDS_##name(F){NULL, NULL, NULL}};
ST_EVENTS(E)
#undef E
#undef F

const struct event_kind event_kinds[] = {
#define E(id, title, end, what)                                                      \
	{                                                                            \
		.number = id,                                                        \
		.words = sizeof(struct st_ev_##title) / 8,                           \
		.field_count = sizeof(fields_##title) / sizeof(*fields_##title) - 1, \
		.tail = EVENT_TAIL_##end,                                            \
		.name = #title,                                                      \
		.meaning = what,                                                     \
		.fields = fields_##title,                                            \
	},
	ST_EVENTS(E)
#undef E
};
const size_t event_kind_count = sizeof(event_kinds) / sizeof(*event_kinds);

enum kind_row {
#define E(number, name, tail, meaning) ROW_##name,
	ST_EVENTS(E)
#undef E
};

/* Row + 1 by number: 0 is no kind. */
static const uint8_t row_of[] = {
#define E(number, name, tail, meaning) [number] = 1 + ROW_##name,
	ST_EVENTS(E)
#undef E
};

const struct event_kind *event_kind_find(unsigned number)
{
	if (number >= sizeof(row_of) || !row_of[number])
		return NULL;
	return &event_kinds[row_of[number] - 1];
}

const struct event_kind *event_kind_find_name(const char *name)
{
	for (size_t i = 0; i < event_kind_count; i++)
		if (!strcmp(event_kinds[i].name, name))
			return &event_kinds[i];
	return NULL;
}

const struct event_field *event_field_find(const struct event_kind *kind, const char *name)
{
	for (size_t i = 0; i < kind->field_count; i++)
		if (!strcmp(kind->fields[i].name, name))
			return &kind->fields[i];
	return NULL;
}

int event_word_value(const struct event_type *type, const char *name, size_t length, uint64_t *ret_value)
{
	for (size_t i = 0; i < type->word_count; i++)
		if (type->words[i] && strlen(type->words[i]) == length &&
		    !memcmp(type->words[i], name, length)) {
			*ret_value = i;
			return 0;
		}
	return -ENOENT;
}

/* Bytes behind the fields of a record whose kind has this tail. */
static size_t tail_bytes(const struct st_record *record, enum event_tail tail, const void **ret_tail)
{
	const struct event_kind *kind = event_kind_find(record->kind);

	*ret_tail = NULL;
	if (!kind || kind->tail != tail || record->words <= kind->words)
		return 0;
	*ret_tail = (const uint64_t *)record + kind->words;
	return (size_t)(record->words - kind->words) * 8;
}

size_t record_text(const struct st_record *record, const char **ret_text)
{
	const void *tail;
	size_t bytes = tail_bytes(record, EVENT_TAIL_TEXT, &tail);

	*ret_text = bytes ? tail : "";
	return strnlen(*ret_text, bytes);
}

size_t record_words(const struct st_record *record, const uint64_t **ret_words)
{
	const void *tail;
	size_t bytes = tail_bytes(record, EVENT_TAIL_WORDS, &tail);

	*ret_words = tail;
	return bytes / 8;
}
