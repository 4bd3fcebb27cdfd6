/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 64

void json_begin(struct json *json, int fd, uint64_t at, uint64_t end, const struct source_cache *cache)
{
	memset(json, 0, offsetof(struct json, bytes));
	json->fd = fd;
	json->at = at;
	json->end = end;
	if (cache)
		json->cache = *cache;
}

/* --- bytes ----------------------------------------------------------------------------------- */

int json_fail(struct json *json, const char *error)
{
	if (!json->error)
		json->error = error;
	return -EINVAL;
}

/* The byte at json->at, or -1: the end. */
static int peek(struct json *json)
{
	uint64_t left = json->end - json->at;
	size_t size = left < sizeof(json->bytes) ? (size_t)left : sizeof(json->bytes);
	ssize_t n;

	if (!left || json->read_error)
		return -1;
	if (json->at < json->window || json->at - json->window >= json->used) {
		json->own += source_missing(&json->cache, json->at, size);
		n = pread(json->fd, json->bytes, size, (off_t)json->at);
		if (n <= 0) {
			json->read_error = n ? errno : EIO;
			return -1;
		}
		json->window = json->at;
		json->used = (size_t)n;
	}
	return json->bytes[json->at - json->window];
}

static int next_byte(struct json *json)
{
	int byte = peek(json);

	json->at += byte >= 0;
	return byte;
}

int json_next_sign(struct json *json)
{
	int byte;

	while ((byte = peek(json)) == ' ' || byte == '\t' || byte == '\n' || byte == '\r')
		json->at++;
	return byte;
}

int json_expect(struct json *json, int sign, const char *error)
{
	if (json_next_sign(json) != sign)
		return json_fail(json, error);
	json->at++;
	return 0;
}

/* --- values ---------------------------------------------------------------------------------- */

static void put_utf8(char *text, size_t size, size_t *used, unsigned code)
{
	unsigned char bytes[3];
	size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;

	bytes[0] = (unsigned char)(count == 1 ? code : count == 2 ? 0xc0 | code >> 6 : 0xe0 | code >> 12);
	bytes[1] = (unsigned char)(count == 2 ? 0x80 | (code & 0x3f) : 0x80 | (code >> 6 & 0x3f));
	bytes[2] = (unsigned char)(0x80 | (code & 0x3f));
	if (*used + count < size) {
		memcpy(text + *used, bytes, count);
		*used += count;
	}
}

static int read_hex4(struct json *json, unsigned *ret_code)
{
	unsigned code = 0;
	int i;

	for (i = 0; i < 4; i++) {
		int byte = next_byte(json);
		static const char digits[] = "0123456789abcdefABCDEF";
		const char *digit = byte > 0 ? strchr(digits, byte) : NULL;

		if (!digit)
			return json_fail(json, "bad \\u escape");
		code = code * 16 + (unsigned)(digit - digits < 16 ? digit - digits : digit - digits - 6);
	}
	*ret_code = code && (code < 0xd800 || code > 0xdfff) ? code : '?'; /* no NUL, no half of a pair */
	return 0;
}

static int read_escape(struct json *json, char *text, size_t size, size_t *used)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int byte = next_byte(json);
	const char *known = byte > 0 ? strchr(from, byte) : NULL;
	unsigned code;

	if (byte == 'u') {
		if (read_hex4(json, &code))
			return -EINVAL;
	} else if (known) {
		code = (unsigned char)to[known - from];
	} else {
		return json_fail(json, "bad escape");
	}
	put_utf8(text, size, used, code);
	return 0;
}

int json_read_string(struct json *json, char *text, size_t size)
{
	size_t used = 0;
	int byte;

	if (json_expect(json, '"', "a string was expected"))
		return -EINVAL;
	while ((byte = next_byte(json)) != '"') {
		if (byte < ' ')
			return json_fail(json, byte < 0 ? "the text ends in a string"
			                                : "control character in a string");
		if (byte == '\\') {
			if (read_escape(json, text, size, &used))
				return -EINVAL;
		} else if (used + 1 < size) {
			text[used++] = (char)byte;
		}
	}
	text[used] = '\0';
	return 0;
}

int json_read_number(struct json *json, uint64_t *ret_value)
{
	uint64_t value = 0;
	int byte = json_next_sign(json);

	if (byte < '0' || byte > '9')
		return json_fail(json, "an unsigned integer was expected");
	for (; (byte = peek(json)) >= '0' && byte <= '9'; json->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(byte - '0'), &value))
			return json_fail(json, "number too large");
	*ret_value = value;
	return 0;
}

/* Brackets are counted, strings are read as strings. */
int json_skip_value(struct json *json)
{
	char text[8];
	int depth = 0, byte;

	do {
		byte = json_next_sign(json);
		if (byte == '"') {
			if (json_read_string(json, text, sizeof(text)))
				return -EINVAL;
			continue;
		}
		if (byte < 0)
			return json_fail(json, "the text ends in a value");
		if (!depth && (byte == ',' || byte == '}' || byte == ']'))
			return 0;
		depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
		if (depth > DEPTH_MAX)
			return json_fail(json, "nested too deep");
		json->at++;
	} while (depth || ((byte = json_next_sign(json)) != ',' && byte != '}' && byte != ']' && byte >= 0));
	return 0;
}

int json_read_more(struct json *json, int closing)
{
	int byte = json_next_sign(json);

	if (byte != ',' && byte != closing)
		return json_fail(json, "a comma or a closing bracket was expected");
	json->at++;
	return byte == ',';
}
