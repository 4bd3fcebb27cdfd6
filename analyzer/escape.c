/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/emit_back.h>
#include <analyzer/escape.h>
#include <ctype.h>
#include <string.h>

struct sign {
	char sign;
	const char *written;
};

static const struct sign none[] = {{0, NULL}};
static const struct sign xml_signs[] = {
	{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {0, NULL},
};
/* Entities, not backslashes: they are never read as structure, neither in a cell nor around code. */
static const struct sign markdown_signs[] = {
	{'&', "&amp;"},  {'<', "&lt;"},  {'>', "&gt;"},   {'|', "&#124;"}, {'`', "&#96;"},
	{'*', "&#42;"},  {'_', "&#95;"}, {'[', "&#91;"},  {']', "&#93;"},  {'#', "&#35;"},
	{'~', "&#126;"}, {'!', "&#33;"}, {'@', "&#64;"},  {'$', "&#36;"},  {'^', "&#94;"},
	{'"', "&quot;"}, {':', "&#58;"}, {'\\', "&#92;"}, {0, NULL},
};
static const struct sign message_signs[] = {{'%', "%25"}, {0, NULL}};
static const struct sign property_signs[] = {{'%', "%25"}, {':', "%3A"}, {',', "%2C"}, {0, NULL}};
static const struct sign json_signs[] = {{'"', "\\\""}, {'\\', "\\\\"}, {0, NULL}};

static const struct {
	const struct sign *signs;
	const char *backslash; /* of an \xNN */
} formats[] = {
	[ESCAPE_LOG] = {none, "\\"},
	[ESCAPE_XML] = {xml_signs, "\\"},
	[ESCAPE_MARKDOWN] = {markdown_signs, "&#92;"},
	[ESCAPE_MESSAGE] = {message_signs, "\\"},
	[ESCAPE_PROPERTY] = {property_signs, "\\"},
	[ESCAPE_JSON] = {json_signs, "\\\\"},
};

static const char *written_as(enum escape how, char sign)
{
	const struct sign *row = formats[how].signs;

	while (row->sign && row->sign != sign)
		row++;
	return row->written;
}

/*
 * Signs that Markdown reads only in some places stay readable in others: the underscore of a name that is a word, the
 * colon before a blank or the end.
 */
static bool is_harmless(enum escape how, const char *text, size_t at)
{
	if (how != ESCAPE_MARKDOWN)
		return false;
	if (text[at] == '_')
		return at && isalnum((unsigned char)text[at - 1]) && isalnum((unsigned char)text[at + 1]);
	return text[at] == ':' && (!text[at + 1] || text[at + 1] == ' ');
}

/* U+FFFE and U+FFFF are UTF-8, and no characters of XML. */
static bool is_no_character(const char *s)
{
	return !strncmp(s, "\xef\xbf\xbe", 3) || !strncmp(s, "\xef\xbf\xbf", 3);
}

void escape_text(FILE *out, enum escape how, const char *text)
{
	for (size_t at = 0; text[at];) {
		size_t length = emit_utf8_length((const unsigned char *)text + at);
		const char *written = is_harmless(how, text, at) ? NULL : written_as(how, text[at]);
		char one[5] = {0};

		if (at >= ESCAPE_MAX) {
			fputs("...", out);
			return;
		}
		if (!length || is_no_character(text + at))
			length = 1;
		memcpy(one, text + at, length);
		at += length;
		if (written)
			fputs(written, out);
		else
			emit_clean(out, one, formats[how].backslash);
	}
}
