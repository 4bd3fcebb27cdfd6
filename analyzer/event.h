/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event table of format.h at run time: names, fields and words of every kind. Whoever prints or
 * parses records generically (dump, pack, reader) goes through it, so that a new event needs only its
 * row in format.h; a new type of field needs its row in event.c too.
 */
#ifndef SPARKTRACE_EVENT_H
#define SPARKTRACE_EVENT_H

#include <sparktrace/format.h>
#include <stddef.h>

enum event_tail {
	EVENT_TAIL_NONE,
	EVENT_TAIL_TEXT,
	EVENT_TAIL_WORDS,
};

/* How a value is written. */
enum event_form {
	EVENT_FORM_HEX,      /* address or handle: "0x7f.." */
	EVENT_FORM_SIZE,     /* bytes */
	EVENT_FORM_TIME,     /* ns */
	EVENT_FORM_UNSIGNED, /* a plain number */
	EVENT_FORM_SIGNED,
	EVENT_FORM_FILE,  /* identifier of a `file` record, 0: none */
	EVENT_FORM_STACK, /* identifier of a `stack` record, 0: none */
	EVENT_FORM_WORD,  /* words[value] */
	EVENT_FORM_FLAGS, /* any of `words`: words[bit] */
};

struct event_type {
	const char *name; /* as in format.h: "OPTSIZE" */
	enum event_form form;
	uint64_t missing;         /* what a field reads as that the record does not have */
	const char *const *words; /* may have gaps: NULL */
	size_t word_count;
};

struct event_field {
	const char *name, *meaning;
	const struct event_type *type;
};

struct event_kind {
	uint16_t number; /* enum st_kind */
	uint16_t words;  /* of a record with all fields and no tail */
	uint16_t field_count;
	enum event_tail tail;
	const char *name, *meaning;
	const struct event_field *fields;
};

/* All kinds, in the order of format.h. */
extern const struct event_kind event_kinds[];
extern const size_t event_kind_count;

/* NULL when there is no such kind. */
const struct event_kind *event_kind_find(unsigned number);
const struct event_kind *event_kind_find_name(const char *name);

/* A kind's field, or NULL. */
const struct event_field *event_field_find(const struct event_kind *kind, const char *name);

/* Is ST_UNKNOWN written as "unknown" in this type? */
static inline int event_type_optional(const struct event_type *type)
{
	return type->missing == ST_UNKNOWN;
}

/* The word at a value (at a bit number, for flags), or NULL. */
static inline const char *event_word_name(const struct event_type *type, uint64_t value)
{
	return value < type->word_count ? type->words[value] : NULL;
}

/* The value (the bit number) of a word: 0, or -ENOENT. */
int event_word_value(const struct event_type *type, const char *name, size_t length, uint64_t *ret_value);

/* `value` where it is one of WORDS of format.h; else 0, which is "unknown" or "other": damage, or a later version. */
#define EVENT_ONE(name, text)          +1
#define EVENT_KNOWN_OR_0(WORDS, value) ((value) < UINT64_C(0) WORDS(EVENT_ONE) ? (value) : 0)

/* The value of field number `index` (in the order of format.h) of a complete record. */
static inline uint64_t record_field(const struct st_record *record, size_t index)
{
	return ((const uint64_t *)(record + 1))[index];
}

/*
 * The tails of complete records, as the reader returns them. The text is not terminated: print it by
 * "%.*s". Both return a length (bytes, words), 0 for a kind without such a tail, and set *ret_tail always.
 */
size_t record_text(const struct st_record *record, const char **ret_text);
size_t record_words(const struct st_record *record, const uint64_t **ret_words);

/*
 * O_DIRECT in the field `flags` of an open, on x86_64 and on aarch64: each is the other's O_DIRECTORY, which no weight
 * file is opened with. The analyzer may run on another machine than the program did.
 */
#define EVENT_O_DIRECT (UINT64_C(0x4000) | UINT64_C(0x10000))

#endif
