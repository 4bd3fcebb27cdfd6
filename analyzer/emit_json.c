/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "emit_back.h"

#include <assert.h>
#include <inttypes.h>

/* What stands behind a key, by type: the unit is part of the name. */
static const char *const suffixes[] = {
	[EMIT_BYTES] = "_bytes", [EMIT_INTERVAL] = "", [EMIT_CHANGE] = "", [EMIT_TIME] = "_ns",
	[EMIT_COUNT] = "",       [EMIT_RATIO] = "",    [EMIT_SHARE] = "",  [EMIT_FLAG] = "",
	[EMIT_WORD] = "",        [EMIT_PATH] = "",
};

static void print_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const char *s = text; *s;) {
		char one[5] = {0};
		size_t length = emit_utf8_length((const unsigned char *)s);

		length = length ? length : 1;
		for (size_t i = 0; i < length; i++)
			one[i] = s[i];
		s += length;
		if (one[0] == '"' || one[0] == '\\')
			fputc('\\', out);
		emit_clean(out, one, "\\\\");
	}
	fputc('"', out);
}

static void print_integer(FILE *out, uint64_t value)
{
	if (value == UINT64_MAX)
		fputs("null", out);
	else
		fprintf(out, "%" PRIu64, value);
}

static void print_signed(FILE *out, int64_t value, int64_t open)
{
	if (value == open)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, value);
}

static void print_value(FILE *out, const struct emit_field *field)
{
	if (!emit_value_known(field)) {
		fputs("null", out);
		return;
	}
	switch (field->type) {
	case EMIT_BYTES:
	case EMIT_TIME:
	case EMIT_COUNT:
		print_integer(out, field->low);
		break;
	case EMIT_INTERVAL:
		fputs("{\"low_bytes\": ", out);
		print_integer(out, field->low);
		fputs(", \"high_bytes\": ", out);
		print_integer(out, field->high);
		fputc('}', out);
		break;
	case EMIT_CHANGE:
		fputs("{\"low_bytes\": ", out);
		print_signed(out, field->change, INT64_MIN);
		fputs(", \"high_bytes\": ", out);
		print_signed(out, field->change_high, INT64_MAX);
		fputc('}', out);
		break;
	case EMIT_RATIO:
	case EMIT_SHARE:
		fprintf(out, "%.9g", field->number);
		break;
	case EMIT_FLAG:
		fputs(field->low ? "true" : "false", out);
		break;
	case EMIT_WORD:
	case EMIT_PATH:
		print_string(out, field->text);
		break;
	}
}

static void print_member(FILE *out, const struct emit_field *field)
{
	fprintf(out, "\"%s%s\": ", field->key, suffixes[field->type]);
	print_value(out, field);
}

/* A new line for the next member or element of the innermost section. */
static void begin_member(struct emitter *e)
{
	fputs(e->filled[e->depth] ? ",\n" : "\n", e->out);
	e->filled[e->depth] = true;
	for (unsigned i = 0; i < e->depth; i++)
		fputc('\t', e->out);
}

void emit_json_open(struct emitter *e, const char *key, bool array)
{
	if (e->depth) {
		begin_member(e);
		if (!e->array[e->depth])
			fprintf(e->out, "\"%s\": ", key);
	}
	assert(e->depth + 1 < EMIT_DEPTH);
	fputc(array ? '[' : '{', e->out);
	e->depth++;
	e->filled[e->depth] = false;
	e->array[e->depth] = array;
}

void emit_json_close(struct emitter *e)
{
	bool array = e->array[e->depth], filled = e->filled[e->depth];

	e->depth--;
	if (filled) {
		fputc('\n', e->out);
		for (unsigned i = 0; i < e->depth; i++)
			fputc('\t', e->out);
	}
	fputc(array ? ']' : '}', e->out);
}

void emit_json_fields(struct emitter *e, const struct emit_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!fields[i].key)
			continue;
		begin_member(e);
		print_member(e->out, &fields[i]);
	}
}

void emit_json_row(struct emitter *e, const struct emit_field *fields, size_t count)
{
	const char *comma = "";

	begin_member(e);
	fputc('{', e->out);
	for (size_t i = 0; i < count; i++) {
		if (!fields[i].key)
			continue;
		fputs(comma, e->out);
		print_member(e->out, &fields[i]);
		comma = ", ";
	}
	fputc('}', e->out);
}
