/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "emit_back.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 2
#define GAP    2

/* Columns that `length` bytes of UTF-8 take. */
static size_t width_of(const char *text, size_t length)
{
	size_t width = 0;

	for (size_t i = 0; i < length; i++)
		width += (text[i] & 0xc0) != 0x80;
	return width;
}

static void print_blanks(FILE *out, size_t count)
{
	while (count--)
		fputc(' ', out);
}

/*
 * Prints `text` from column `at` on, breaking at blanks before EMIT_WIDTH; further lines begin at
 * column `hang`. A word longer than a line stays whole: it is a path, and people copy paths.
 */
static void print_wrapped(FILE *out, const char *text, size_t at, size_t hang)
{
	bool fresh = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		size_t width = width_of(text, length);

		if (!fresh && at + 1 + width > EMIT_WIDTH) {
			fputc('\n', out);
			print_blanks(out, hang);
			at = hang;
		} else if (!fresh) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, length, out);
		at += width;
		fresh = false;
		text += length;
		text += *text == ' ';
	}
	fputc('\n', out);
}

void emit_text_heading(struct emitter *e, const char *title)
{
	if (e->filled[0])
		fputc('\n', e->out);
	e->filled[0] = true;
	fputs(title, e->out);
	fputc('\n', e->out);
}

static const struct emit_field *find_field(const char *name, size_t length, const struct emit_field *fields,
                                           size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fields[i].key && !strncmp(fields[i].key, name, length) && !fields[i].key[length])
			return &fields[i];
	return NULL;
}

/* A {name} without its field stays as it is, where a test or a reader sees it. */
static void print_sentence(FILE *out, const char *sentence, const struct emit_field *fields, size_t count)
{
	while (*sentence) {
		const char *end = *sentence == '{' ? strchr(sentence, '}') : NULL;
		const struct emit_field *field = NULL;

		if (end)
			field = find_field(sentence + 1, (size_t)(end - sentence - 1), fields, count);
		if (field) {
			emit_value_print(out, field);
			sentence = end + 1;
		} else {
			fputc(*sentence++, out);
		}
	}
}

void emit_text_sentence(struct emitter *e, const char *sentence, const struct emit_field *fields,
                        size_t count)
{
	char *line = NULL;
	size_t size = 0, lead = strspn(sentence, " ");
	FILE *out = open_memstream(&line, &size);

	if (out)
		print_sentence(out, sentence + lead, fields, count);
	if (!out || fclose(out)) {
		e->error = e->error ? e->error : -ENOMEM;
	} else {
		print_blanks(e->out, INDENT + lead);
		print_wrapped(e->out, line, INDENT + lead, INDENT + lead + INDENT);
		e->filled[0] = true;
	}
	free(line);
}

void emit_text_command(struct emitter *e, const char *command)
{
	print_blanks(e->out, 2 * INDENT);
	emit_clean(e->out, command, "\\");
	fputc('\n', e->out);
}

static bool reserve_cells(struct emitter *e, size_t more)
{
	size_t room = e->cell_room ? e->cell_room : 64;
	char **cells;

	if (e->cell_count + more <= e->cell_room)
		return true;
	while (room < e->cell_count + more)
		room *= 2;
	cells = realloc(e->cells, room * sizeof(*cells));
	if (!cells)
		return false;
	e->cells = cells;
	e->cell_room = room;
	return true;
}

/* A word or share that is not known leaves an empty cell; a number says so. */
static char *cell_text(const struct emit_field *field)
{
	if ((field->type == EMIT_WORD || field->type == EMIT_SHARE) && !emit_value_known(field))
		return strdup("");
	return emit_value_text(field);
}

void emit_text_row(struct emitter *e, const struct emit_field *fields)
{
	if (!reserve_cells(e, e->column_count)) {
		e->error = e->error ? e->error : -ENOMEM;
		return;
	}
	for (size_t i = 0; i < e->column_count; i++) {
		char *text = e->columns[i].title ? cell_text(&fields[i]) : NULL;

		if (!text && e->columns[i].title)
			e->error = e->error ? e->error : -ENOMEM;
		e->cells[e->cell_count++] = text;
	}
}

static size_t column_width(const struct emitter *e, size_t column)
{
	size_t width = strlen(e->columns[column].title);

	for (size_t i = column; i < e->cell_count; i += e->column_count) {
		size_t w = e->cells[i] ? width_of(e->cells[i], strlen(e->cells[i])) : 0;

		width = w > width ? w : width;
	}
	return width;
}

static size_t last_column(const struct emitter *e)
{
	size_t last = 0;

	for (size_t i = 0; i < e->column_count; i++)
		if (e->columns[i].title)
			last = i;
	return last;
}

/* One line; `cells` NULL: the titles. Blanks are only printed once something follows them. */
static void print_cells(const struct emitter *e, char *const *cells, const size_t *widths)
{
	size_t at = INDENT, owed = INDENT, last = last_column(e);

	for (size_t i = 0; i <= last; i++) {
		const char *text = cells ? cells[i] : e->columns[i].title;
		size_t width;

		if (!e->columns[i].title)
			continue;
		text = text ? text : "";
		width = width_of(text, strlen(text));
		if (e->columns[i].right)
			owed += widths[i] - width;
		if (i == last) {
			if (*text)
				print_blanks(e->out, owed);
			if (e->columns[i].right)
				fprintf(e->out, "%s\n", text);
			else
				print_wrapped(e->out, text, at, at);
			return;
		}
		if (*text) {
			print_blanks(e->out, owed);
			owed = 0;
			fputs(text, e->out);
		}
		owed += (e->columns[i].right ? 0 : widths[i] - width) + GAP;
		at += widths[i] + GAP;
	}
}

static bool has_titles(const struct emitter *e)
{
	for (size_t i = 0; i < e->column_count; i++)
		if (e->columns[i].title && *e->columns[i].title)
			return true;
	return false;
}

void emit_text_table(struct emitter *e)
{
	size_t widths[EMIT_COLUMNS] = {0};

	for (size_t i = 0; i < e->column_count; i++)
		widths[i] = e->columns[i].title ? column_width(e, i) : 0;
	if (e->cell_count && has_titles(e))
		print_cells(e, NULL, widths);
	for (size_t i = 0; i < e->cell_count; i += e->column_count)
		print_cells(e, e->cells + i, widths);
	e->filled[0] = e->filled[0] || e->cell_count;
	for (size_t i = 0; i < e->cell_count; i++)
		free(e->cells[i]);
	e->cell_count = 0;
}
