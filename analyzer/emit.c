/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "emit_back.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void emit_begin(struct emitter *e, FILE *out, enum emit_format format)
{
	*e = (struct emitter){.out = out, .format = format};
	if (format == EMIT_JSON)
		emit_json_open(e, NULL, false);
}

int emit_end(struct emitter *e)
{
	if (e->format == EMIT_JSON) {
		emit_json_close(e);
		fputc('\n', e->out);
	}
	free(e->cells);
	e->cells = NULL;
	if (fflush(e->out) || ferror(e->out))
		return -EIO;
	return e->error;
}

void emit_open(struct emitter *e, const char *key, const char *title)
{
	if (e->format == EMIT_JSON)
		emit_json_open(e, key, false);
	else if (title)
		emit_text_heading(e, title);
}

void emit_list(struct emitter *e, const char *key, const char *title)
{
	if (e->format == EMIT_JSON)
		emit_json_open(e, key, true);
	else if (title)
		emit_text_heading(e, title);
}

void emit_close(struct emitter *e)
{
	if (e->format == EMIT_JSON)
		emit_json_close(e);
}

void emit_fields(struct emitter *e, const char *sentence, const struct emit_field *fields, size_t count)
{
	if (e->format == EMIT_JSON)
		emit_json_fields(e, fields, count);
	else if (sentence)
		emit_text_sentence(e, sentence, fields, count);
}

void emit_line(struct emitter *e, const char *line)
{
	if (e->format == EMIT_TEXT)
		emit_text_sentence(e, line, NULL, 0);
}

void emit_command(struct emitter *e, const char *command)
{
	if (e->format == EMIT_TEXT)
		emit_text_command(e, command);
}

void emit_table(struct emitter *e, const char *key, const struct emit_column *columns, size_t count)
{
	assert(count <= EMIT_COLUMNS);
	e->columns = columns;
	e->column_count = count;
	if (e->format == EMIT_JSON)
		emit_json_open(e, key, true);
}

void emit_row(struct emitter *e, bool shown, const struct emit_field *fields)
{
	if (e->format == EMIT_JSON)
		emit_json_row(e, fields, e->column_count);
	else if (shown)
		emit_text_row(e, fields);
}

void emit_table_end(struct emitter *e)
{
	if (e->format == EMIT_JSON)
		emit_json_close(e);
	else
		emit_text_table(e);
	e->columns = NULL;
	e->column_count = 0;
}
