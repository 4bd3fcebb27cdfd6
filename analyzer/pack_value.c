/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"
#include "units.h"

#include <errno.h>
#include <string.h>

typedef int parser(const char *text, uint64_t *ret_value);

/* A number, or a string that `parse` takes. */
static int number_or_text(struct pack *pack, const char *field, json_t *value, parser *parse,
                          const char *what, uint64_t *ret_value)
{
	int error;

	if (json_is_integer(value)) {
		if (json_integer_value(value) < 0)
			return pack_fail(pack, field, "%lld is negative",
			                 (long long)json_integer_value(value));
		*ret_value = (uint64_t)json_integer_value(value);
		return 0;
	}
	if (!json_is_string(value))
		return pack_fail(pack, field, "%s is wanted", what);
	error = parse(json_string_value(value), ret_value);
	if (error == -ERANGE)
		return pack_fail(pack, field, "\"%.60s\" is too large", json_string_value(value));
	if (error)
		return pack_fail(pack, field, "\"%.60s\" is not %s", json_string_value(value), what);
	return 0;
}

int pack_number(struct pack *pack, const char *field, json_t *value, uint64_t most, uint64_t *ret_value)
{
	uint64_t number = 0;
	int error = number_or_text(pack, field, value, count_parse, "a whole number", &number);

	if (error)
		return error;
	if (number > most)
		return pack_fail(pack, field, "%llu is too large", (unsigned long long)number);
	*ret_value = number;
	return 0;
}

static int signed_value(struct pack *pack, const char *field, json_t *value, uint64_t *ret_value)
{
	if (!json_is_integer(value))
		return pack_fail(pack, field, "a whole number is wanted");
	*ret_value = (uint64_t)json_integer_value(value);
	return 0;
}

static int word_value(struct pack *pack, const char *field, const struct event_type *type, json_t *value,
                      uint64_t *ret_value)
{
	const char *text = json_string_value(value);

	if (text && !event_word_value(type, text, strlen(text), ret_value))
		return 0;
	if (text && strncmp(text, "0x", 2))
		return pack_fail(pack, field, "\"%.60s\" is none of its words", text);
	return number_or_text(pack, field, value, count_parse, "a word or a number", ret_value);
}

/* One of the parts between bars: a word or a number. */
static int one_flag(const struct event_type *type, const char *text, size_t length, uint64_t *ret_value)
{
	char number[24];
	uint64_t bit;

	if (length == 4 && !memcmp(text, "none", 4)) {
		*ret_value = 0;
		return 0;
	}
	if (!event_word_value(type, text, length, &bit)) {
		*ret_value = UINT64_C(1) << bit;
		return 0;
	}
	if (length >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, length);
	number[length] = '\0';
	return count_parse(number, ret_value);
}

static int flags_value(struct pack *pack, const char *field, const struct event_type *type, json_t *value,
                       uint64_t *ret_value)
{
	const char *text = json_string_value(value);
	uint64_t flags = 0, flag;
	size_t length;

	if (!text)
		return number_or_text(pack, field, value, count_parse, "a string like \"read|write\"",
		                      ret_value);
	for (;; text += length + 1) {
		length = strcspn(text, "|");
		if (one_flag(type, text, length, &flag))
			return pack_fail(pack, field, "\"%.*s\" is none of its words",
			                 length < 60 ? (int)length : 60, text);
		flags |= flag;
		if (!text[length])
			break;
	}
	*ret_value = flags;
	return 0;
}

int pack_value(struct pack *pack, const char *field, const struct event_type *type, json_t *value,
               uint64_t *ret_value)
{
	if (json_is_null(value)) {
		if (!event_type_optional(type))
			return pack_fail(pack, field, "null: this value cannot be unknown");
		*ret_value = ST_UNKNOWN;
		return 0;
	}
	switch (type->form) {
	case EVENT_FORM_SIZE:
		return number_or_text(pack, field, value, size_parse, "a size", ret_value);
	case EVENT_FORM_TIME:
		return number_or_text(pack, field, value, time_parse, "a time", ret_value);
	case EVENT_FORM_STACK:
		if (json_is_array(value))
			return pack_stack(pack, value, ret_value);
		return pack_number(pack, field, value, UINT64_MAX, ret_value);
	case EVENT_FORM_HEX:
	case EVENT_FORM_FILE:
	case EVENT_FORM_UNSIGNED:
		return pack_number(pack, field, value, UINT64_MAX, ret_value);
	case EVENT_FORM_SIGNED:
		return signed_value(pack, field, value, ret_value);
	case EVENT_FORM_WORD:
		return word_value(pack, field, type, value, ret_value);
	case EVENT_FORM_FLAGS:
		return flags_value(pack, field, type, value, ret_value);
	}
	return -EINVAL;
}

int pack_hex(struct pack *pack, const char *field, json_t *value, size_t room, void *ret_data,
             size_t *ret_bytes)
{
	static const char digits[] = "0123456789abcdef";
	const char *text = json_string_value(value);
	unsigned char *data = ret_data;
	size_t length = text ? json_string_length(value) : 1;

	if (length % 2 || strspn(text, digits) != length)
		return pack_fail(pack, field, "bytes in lower-case hexadecimal are wanted");
	if (length / 2 > room)
		return pack_fail(pack, field, "%zu bytes are more than a record can hold", length / 2);
	for (size_t i = 0; i < length / 2; i++)
		data[i] = (unsigned char)((strchr(digits, text[2 * i]) - digits) << 4 |
		                          (strchr(digits, text[2 * i + 1]) - digits));
	*ret_bytes = length / 2;
	return 0;
}
