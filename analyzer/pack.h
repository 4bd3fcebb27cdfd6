/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a trace of JSON lines, those of `dump` or a scenario written by hand.
 *
 * A line is one record, as dump.h describes; empty lines and lines that begin with # are passed over. A
 * scenario gives only the fields that a fact needs. The others are what format.h says of a missing field; the
 * time is that of the line before. It may write
 *
 *	"size":"1.5GiB" "time":"12.5s"		sizes and times in words
 *	"path":"w.safetensors"			in place of "file": defines the file at first use, with
 *						"file_size" and "format" (else told by its suffix)
 *	"stack":["innermost", "outer"]		in place of an identifier: the functions' names
 *
 * Without a `head` line, the head, a `process` record at the start and the trailer are made up.
 */
#ifndef SPARKTRACE_PACK_H
#define SPARKTRACE_PACK_H

#include "event.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define PACK_ERROR_MAX    512
#define PACK_RECORD_WORDS UINT16_MAX
#define PACK_PID          1000 /* of a scenario's program, where it does not say */

struct trace;

struct pack {
	int fd;              /* of the output, until the trace takes it */
	struct trace *trace; /* made with the first record */
	struct st_file_head head;
	bool complete; /* a `head` line came: it is a dump, nothing is made up */
	bool has_process, has_trailer;

	uint64_t line; /* being read, from 1 */
	uint64_t time; /* of the last record: what a line without time gets */
	uint64_t last_seq, lost;
	uint64_t blocks, records; /* so far; the first is also the next block's number */

	/* Interned: path -> [id, size, format], function -> address, list of functions -> id. */
	json_t *files, *symbols, *stacks;
	uint64_t last_file, last_stack, last_symbol; /* identifiers given so far */

	uint64_t *record; /* PACK_RECORD_WORDS, the one being made */
	char error[PACK_ERROR_MAX];
};

/*
 * Reads lines from `in` to their end and writes a trace to the descriptor `fd`, which is closed in any case.
 * 0, or a negative errno with a sentence in `error` (line, field, what is wrong): -EINVAL for wrong input.
 */
int pack_stream(FILE *in, int fd, char error[PACK_ERROR_MAX]);

/* Notes what is wrong, with line and field (NULL: the line as a whole). Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int pack_fail(struct pack *pack, const char *field, const char *format,
                                                    ...);

/* Writes one record, after whatever has to stand before it in a trace. 0, or negative errno. */
int pack_append(struct pack *pack, const struct st_record *record);

/* One line's object (pack_record.c). 0, or negative errno. */
int pack_line(struct pack *pack, json_t *line);

/* What a field is that a line does not have. */
uint64_t pack_absent(const struct event_kind *kind, const struct event_field *field);

/* A field's value as its type says (pack_value.c); `field` names it in messages. */
int pack_value(struct pack *pack, const char *field, const struct event_type *type, json_t *value,
               uint64_t *ret_value);
/* A whole number that is at most `most`. */
int pack_number(struct pack *pack, const char *field, json_t *value, uint64_t most, uint64_t *ret_value);
/* Bytes in hexadecimal, at most `room`. */
int pack_hex(struct pack *pack, const char *field, json_t *value, size_t room, void *ret_data,
             size_t *ret_bytes);

/*
 * The identifier of a file that a line names by "path" (with "file_size" and "format"), or of a stack given
 * as list of functions, innermost first; writes the records that define them at first use (pack_intern.c).
 */
int pack_file(struct pack *pack, json_t *line, uint64_t *ret_id);
int pack_stack(struct pack *pack, json_t *functions, uint64_t *ret_id);
/* Completes a `file` record that a line gave, and remembers it for "path". */
int pack_file_given(struct pack *pack, json_t *line, struct st_ev_file *file);
/* The same for a `stack` record. */
void pack_stack_given(struct pack *pack, json_t *line, struct st_ev_stack *stack);

/* A record's head at the time of this line. */
struct st_record pack_head(const struct pack *pack, unsigned kind, size_t words);

#endif
