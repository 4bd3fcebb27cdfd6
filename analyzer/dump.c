/* SPDX-License-Identifier: Apache-2.0 */
#include "dump.h"
#include "event.h"
#include "units.h"

#include <inttypes.h>
#include <string.h>

#define RECORD_WORDS (sizeof(struct st_record) / 8)

struct dump {
	FILE *out;
	bool units; /* sizes and times in words where that is exact */
};

/* --- JSON ---------------------------------------------------------------------------------------- */

/* Length of the UTF-8 sequence at `text`, 0 when it is none (too long a form and surrogates included). */
static size_t utf8_length(const unsigned char *text, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *text < 0x80 ? 1 : *text >= 0xF0 ? 4 : *text >= 0xE0 ? 3 : 2;
	uint32_t code = *text & (0x7Fu >> length);

	if (length == 1)
		return 1;
	if (*text < 0xC0 || *text > 0xF7 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xC0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3Fu);
	}
	return code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0 : length;
}

static bool is_utf8(const char *text, size_t length)
{
	while (length) {
		size_t step = utf8_length((const unsigned char *)text, length);

		if (!step)
			return false;
		text += step;
		length -= step;
	}
	return true;
}

static void put_hex(FILE *out, const void *data, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";

	for (const unsigned char *at = data; bytes--; at++) {
		putc_unlocked(digits[*at >> 4], out);
		putc_unlocked(digits[*at & 15], out);
	}
}

static void put_string(FILE *out, const char *text, size_t length)
{
	putc_unlocked('"', out);
	for (; length--; text++) {
		if (*text == '"' || *text == '\\')
			putc_unlocked('\\', out);
		if ((unsigned char)*text < 0x20 || *text == 0x7F)
			fprintf(out, "\\u%04x", (unsigned)*text);
		else
			putc_unlocked(*text, out);
	}
	putc_unlocked('"', out);
}

/* `,"key":"text"`, or `,"key_hex":"..."` for bytes that no JSON string can hold. */
static void put_text(FILE *out, const char *key, const char *text, size_t length)
{
	if (is_utf8(text, length)) {
		fprintf(out, ",\"%s\":", key);
		put_string(out, text, length);
		return;
	}
	fprintf(out, ",\"%s_hex\":\"", key);
	put_hex(out, text, length);
	putc_unlocked('"', out);
}

static void put_words(FILE *out, const char *key, const uint64_t *words, size_t count)
{
	fprintf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s\"0x%" PRIx64 "\"", i ? "," : "", words[i]);
	putc_unlocked(']', out);
}

/* --- values -------------------------------------------------------------------------------------- */

static void put_number(const struct dump *dump, uint64_t value)
{
	fprintf(dump->out, value > INT64_MAX ? "\"0x%" PRIx64 "\"" : "%" PRIu64, value);
}

static void put_unit(const struct dump *dump, uint64_t value, char *(*print)(uint64_t, char *))
{
	char text[UNITS_TEXT];

	if (!dump->units || value > INT64_MAX)
		put_number(dump, value);
	else if (print(value, text)[strspn(text, "0123456789")])
		fprintf(dump->out, "\"%s\"", text);
	else
		fputs(text, dump->out);
}

static void put_word(const struct dump *dump, const struct event_type *type, uint64_t value)
{
	const char *word = event_word_name(type, value);

	if (word)
		fprintf(dump->out, "\"%s\"", word);
	else
		put_number(dump, value);
}

static void put_flags(const struct dump *dump, const struct event_type *type, uint64_t value)
{
	const char *between = "";

	fputc('"', dump->out);
	for (unsigned bit = 0; bit < type->word_count; bit++)
		if (value >> bit & 1 && type->words[bit]) {
			fprintf(dump->out, "%s%s", between, type->words[bit]);
			between = "|";
			value &= ~(UINT64_C(1) << bit);
		}
	if (value)
		fprintf(dump->out, "%s0x%" PRIx64, between, value);
	else if (!*between)
		fputs("none", dump->out);
	fputc('"', dump->out);
}

static void put_value(const struct dump *dump, const struct event_type *type, uint64_t value)
{
	if (event_type_optional(type) && value == ST_UNKNOWN) {
		fputs("null", dump->out);
		return;
	}
	switch (type->form) {
	case EVENT_FORM_HEX:
		fprintf(dump->out, "\"0x%" PRIx64 "\"", value);
		break;
	case EVENT_FORM_SIZE:
		put_unit(dump, value, size_print);
		break;
	case EVENT_FORM_TIME:
		put_unit(dump, value, time_print);
		break;
	case EVENT_FORM_UNSIGNED:
	case EVENT_FORM_FILE:
	case EVENT_FORM_STACK:
		put_number(dump, value);
		break;
	case EVENT_FORM_SIGNED:
		fprintf(dump->out, "%" PRId64, (int64_t)value);
		break;
	case EVENT_FORM_WORD:
		put_word(dump, type, value);
		break;
	case EVENT_FORM_FLAGS:
		put_flags(dump, type, value);
		break;
	}
}

/* --- records ------------------------------------------------------------------------------------- */

/* Would pack make just this record from its fields and tail? */
static bool speaks_for_itself(const struct event_kind *kind, const struct st_record *record)
{
	const char *text;
	size_t length, room;

	if (!kind || record->words < kind->words)
		return false;
	if (kind->tail != EVENT_TAIL_TEXT)
		return true;
	length = record_text(record, &text);
	room = (size_t)(record->words - kind->words) * 8;
	if (room - length >= 8)
		return false;
	for (; length < room; length++)
		if (text[length])
			return false;
	return true;
}

static void put_tail(const struct dump *dump, const struct event_kind *kind, const struct st_record *record)
{
	const uint64_t *tail = (const uint64_t *)record + kind->words;
	size_t words = (size_t)(record->words - kind->words);
	const char *text;

	if (kind->tail == EVENT_TAIL_TEXT) {
		size_t length = record_text(record, &text);

		put_text(dump->out, "text", text, length);
	} else if (kind->tail == EVENT_TAIL_WORDS) {
		put_words(dump->out, "words", tail, words);
	} else if (words) {
		put_words(dump->out, "more", tail, words);
	}
}

static void put_common(const struct dump *dump, const struct st_record *record)
{
	if ((record->seq & ~ST_SEQ_MASK) == ST_SEQ_MAGIC)
		fprintf(dump->out, ",\"seq\":%" PRIu64, record->seq & ST_SEQ_MASK);
	else if (record->seq)
		fprintf(dump->out, ",\"seq_raw\":\"0x%" PRIx64 "\"", record->seq);
	fputs(",\"time\":", dump->out);
	put_unit(dump, record->time, time_print);
	fprintf(dump->out, ",\"thread\":%" PRIu32, record->thread);
}

static void dump_record(const struct dump *dump, const struct st_record *record)
{
	const struct event_kind *kind = event_kind_find(record->kind);

	if (!speaks_for_itself(kind, record)) {
		fprintf(dump->out, "{\"event\":\"kind %u\"", record->kind);
		put_common(dump, record);
		fputs(",\"raw\":\"", dump->out);
		put_hex(dump->out, record + 1, (record->words - RECORD_WORDS) * 8);
		fputs("\"}\n", dump->out);
		return;
	}
	fprintf(dump->out, "{\"event\":\"%s\"", kind->name);
	put_common(dump, record);
	for (size_t i = 0; i < kind->field_count; i++) {
		fprintf(dump->out, ",\"%s\":", kind->fields[i].name);
		put_value(dump, kind->fields[i].type, record_field(record, i));
	}
	put_tail(dump, kind, record);
	fputs("}\n", dump->out);
}

static void dump_head(const struct dump *dump, const struct st_file_head *head)
{
	fprintf(dump->out,
	        "{\"event\":\"head\",\"minor\":%u,\"pid\":%" PRIu32 ",\"start_time\":", head->minor,
	        head->pid);
	put_number(dump, head->start_time);
	put_text(dump->out, "boot_id", head->boot_id, strlen(head->boot_id));
	put_text(dump->out, "ring", head->ring, strlen(head->ring));
	fputs("}\n", dump->out);
}

int dump_trace(FILE *out, struct reader *reader, bool units)
{
	const struct dump dump = {.out = out, .units = units};
	const struct st_record *record;
	int error;

	dump_head(&dump, &reader_summary(reader)->head);
	while ((error = reader_next(reader, &record)) > 0)
		dump_record(&dump, reader_raw(reader));
	return error;
}
