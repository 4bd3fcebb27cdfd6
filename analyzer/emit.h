/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One emitter, two back ends: a report says everything once, as typed values, and comes out as
 * text for people or as JSON for scripts, so that the two cannot differ.
 *
 *	text	sections with a heading, sentences (templates with {key} in them), tables;
 *		GiB and MiB, seconds, intervals as intervals, lines wrapped at EMIT_WIDTH
 *	JSON	one object; a sentence is its values, whether the template shows them or not.
 *		The key carries the unit: `x_bytes`, `x_ns`; an interval is `"x": {"low_bytes": N,
 *		"high_bytes": N}`. Unknown is null, an interval open above has high_bytes null.
 *
 * Text from a trace is untrusted: control characters and bytes that are not UTF-8 come out as
 * \xNN in both, so that neither a terminal nor a parser is led astray.
 */
#ifndef SPARKTRACE_EMIT_H
#define SPARKTRACE_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EMIT_WIDTH   100
#define EMIT_DEPTH   16
#define EMIT_COLUMNS 32

enum emit_format { EMIT_TEXT, EMIT_JSON };

enum emit_type {
	EMIT_BYTES,    /* low; UINT64_MAX: unknown */
	EMIT_INTERVAL, /* low, high in bytes; high UINT64_MAX: open above; low UINT64_MAX: unknown */
	EMIT_CHANGE,   /* change, change_high: signed bytes, text with sign; INT64_MIN, INT64_MAX: no bound */
	EMIT_TIME,     /* low in ns; UINT64_MAX: unknown */
	EMIT_COUNT,    /* low; UINT64_MAX: unknown */
	EMIT_RATIO,    /* number; NaN: unknown */
	EMIT_SHARE,    /* number from 0 to 1, text as per cent; NaN: unknown */
	EMIT_FLAG,     /* low is 0 or 1 */
	EMIT_WORD,     /* text; NULL: unknown */
	EMIT_PATH,     /* text, shortened from the left in text */
};

struct emit_field {
	const char *key; /* without its unit; NULL in a table cell: text only */
	enum emit_type type;
	uint64_t low, high;
	int64_t change, change_high;
	double number;
	const char *text;
};

struct emit_column {
	const char *title; /* NULL: the column is in JSON only */
	bool right;        /* aligned to the right */
};

struct emitter {
	FILE *out;
	enum emit_format format;
	int error; /* first error, negative errno; the rest is then dropped */
	unsigned depth;
	bool filled[EMIT_DEPTH]; /* something was written at this depth: the next needs a comma */
	bool array[EMIT_DEPTH];  /* this depth is an array: no keys */
	const struct emit_column *columns;
	size_t column_count;
	char **cells; /* of the open table, row by row, for text */
	size_t cell_count, cell_room;
};

static inline struct emit_field emit_bytes(const char *key, uint64_t bytes)
{
	return (struct emit_field){.key = key, .type = EMIT_BYTES, .low = bytes};
}

static inline struct emit_field emit_interval(const char *key, uint64_t low, uint64_t high)
{
	return (struct emit_field){.key = key, .type = EMIT_INTERVAL, .low = low, .high = high};
}

static inline struct emit_field emit_change(const char *key, int64_t low, int64_t high)
{
	return (struct emit_field){.key = key, .type = EMIT_CHANGE, .change = low, .change_high = high};
}

static inline struct emit_field emit_time(const char *key, uint64_t ns)
{
	return (struct emit_field){.key = key, .type = EMIT_TIME, .low = ns};
}

static inline struct emit_field emit_count(const char *key, uint64_t count)
{
	return (struct emit_field){.key = key, .type = EMIT_COUNT, .low = count};
}

static inline struct emit_field emit_ratio(const char *key, double ratio)
{
	return (struct emit_field){.key = key, .type = EMIT_RATIO, .number = ratio};
}

static inline struct emit_field emit_share(const char *key, double share)
{
	return (struct emit_field){.key = key, .type = EMIT_SHARE, .number = share};
}

static inline struct emit_field emit_flag(const char *key, bool flag)
{
	return (struct emit_field){.key = key, .type = EMIT_FLAG, .low = flag};
}

static inline struct emit_field emit_word(const char *key, const char *text)
{
	return (struct emit_field){.key = key, .type = EMIT_WORD, .text = text};
}

static inline struct emit_field emit_path(const char *key, const char *text)
{
	return (struct emit_field){.key = key, .type = EMIT_PATH, .text = text};
}

/* Starts the document. `out` stays the caller's. */
void emit_begin(struct emitter *e, FILE *out, enum emit_format format);

/* Ends it and frees what the emitter holds. Returns the first error: -EIO, -ENOMEM. */
int emit_end(struct emitter *e);

/*
 * A section: an object under `key` (NULL inside a list), a heading in text unless `title` is NULL.
 * emit_list opens an array, whose elements are sections.
 */
void emit_open(struct emitter *e, const char *key, const char *title);
void emit_list(struct emitter *e, const char *key, const char *title);
void emit_close(struct emitter *e);

/*
 * A sentence: `sentence` with {key} replaced by the value of that key, for text (NULL: none), and all
 * fields as members, for JSON (no fields: text only).
 */
void emit_fields(struct emitter *e, const char *sentence, const struct emit_field *fields, size_t count);
#define emit_say(e, sentence, ...)                                         \
	emit_fields(e, sentence, (const struct emit_field[]){__VA_ARGS__}, \
	            sizeof((const struct emit_field[]){__VA_ARGS__}) / sizeof(struct emit_field))

/* A line for people only, the same with values in it, and values for scripts only. */
void emit_line(struct emitter *e, const char *line);

/* Something to type, for people only: a line of its own, never wrapped. */
void emit_command(struct emitter *e, const char *command);

#define emit_text(e, sentence, ...)                         \
	do {                                                \
		if ((e)->format == EMIT_TEXT)               \
			emit_say(e, sentence, __VA_ARGS__); \
	} while (0)
#define emit_only(e, ...) emit_say(e, NULL, __VA_ARGS__)

/*
 * A table: an array of objects; one field a column. The last column wraps. A row that is not `shown` is
 * for scripts only: long tables are cut in text.
 */
void emit_table(struct emitter *e, const char *key, const struct emit_column *columns, size_t count);
void emit_row(struct emitter *e, bool shown, const struct emit_field *fields);
void emit_table_end(struct emitter *e);

/* The value as text, to be freed; NULL when there is no memory. */
char *emit_value_text(const struct emit_field *field);

#endif
