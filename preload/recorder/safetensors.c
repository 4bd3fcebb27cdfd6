/* SPDX-License-Identifier: Apache-2.0 */
#include "safetensors.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_MAX UINT64_C(100000000) /* the reference reader's */
#define DEPTH_MAX  64

struct safetensors {
	int fd;
	uint64_t data, file_size; /* the data lie between */
	uint64_t at;              /* next byte of the header */
	uint64_t covered;         /* bytes of the tensors so far */
	bool begun;
	const char *error;
	int read_error;
	uint64_t window; /* offset of bytes[0] */
	size_t used;
	unsigned char bytes[32768];
};

static const struct {
	const char *name;
	enum st_dtype dtype;
	unsigned bits;
} dtypes[] = {
	{"F64", ST_DTYPE_F64, 64},          {"F32", ST_DTYPE_F32, 32},
	{"F16", ST_DTYPE_F16, 16},          {"BF16", ST_DTYPE_BF16, 16},
	{"I64", ST_DTYPE_I64, 64},          {"I32", ST_DTYPE_I32, 32},
	{"I16", ST_DTYPE_I16, 16},          {"I8", ST_DTYPE_I8, 8},
	{"U64", ST_DTYPE_U64, 64},          {"U32", ST_DTYPE_U32, 32},
	{"U16", ST_DTYPE_U16, 16},          {"U8", ST_DTYPE_U8, 8},
	{"BOOL", ST_DTYPE_BOOL, 8},         {"F8_E4M3", ST_DTYPE_F8_E4M3, 8},
	{"F8_E5M2", ST_DTYPE_F8_E5M2, 8},   {"F4", ST_DTYPE_F4, 4},
	{"F6_E2M3", ST_DTYPE_OTHER, 6},     {"F6_E3M2", ST_DTYPE_OTHER, 6},
	{"F8_E8M0", ST_DTYPE_OTHER, 8},     {"C64", ST_DTYPE_OTHER, 64},
	{"F8_E4M3FNUZ", ST_DTYPE_OTHER, 8}, {"F8_E5M2FNUZ", ST_DTYPE_OTHER, 8},
};

/* --- bytes ----------------------------------------------------------------------------------- */

static int fail(struct safetensors *reader, const char *error)
{
	if (!reader->error)
		reader->error = error;
	return -EINVAL;
}

/* The byte at reader->at, or -1: the end of the header. */
static int peek(struct safetensors *reader)
{
	uint64_t left = reader->data - reader->at;
	ssize_t n;

	if (!left || reader->read_error)
		return -1;
	if (reader->at < reader->window || reader->at - reader->window >= reader->used) {
		n = pread(reader->fd, reader->bytes,
		          left < sizeof(reader->bytes) ? (size_t)left : sizeof(reader->bytes),
		          (off_t)reader->at);
		if (n <= 0) {
			reader->read_error = n ? errno : EIO;
			return -1;
		}
		reader->window = reader->at;
		reader->used = (size_t)n;
	}
	return reader->bytes[reader->at - reader->window];
}

static int next_byte(struct safetensors *reader)
{
	int byte = peek(reader);

	reader->at += byte >= 0;
	return byte;
}

/* The next byte that is no white space, not taken. */
static int next_sign(struct safetensors *reader)
{
	int byte;

	while ((byte = peek(reader)) == ' ' || byte == '\t' || byte == '\n' || byte == '\r')
		reader->at++;
	return byte;
}

static int expect(struct safetensors *reader, int sign, const char *error)
{
	if (next_sign(reader) != sign)
		return fail(reader, error);
	reader->at++;
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

static int read_hex4(struct safetensors *reader, unsigned *ret_code)
{
	unsigned code = 0;
	int i;

	for (i = 0; i < 4; i++) {
		int byte = next_byte(reader);
		static const char digits[] = "0123456789abcdefABCDEF";
		const char *digit = byte > 0 ? strchr(digits, byte) : NULL;

		if (!digit)
			return fail(reader, "bad \\u escape");
		code = code * 16 + (unsigned)(digit - digits < 16 ? digit - digits : digit - digits - 6);
	}
	*ret_code = code && (code < 0xd800 || code > 0xdfff) ? code : '?'; /* no NUL, no half of a pair */
	return 0;
}

static int read_escape(struct safetensors *reader, char *text, size_t size, size_t *used)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int byte = next_byte(reader);
	const char *known = byte > 0 ? strchr(from, byte) : NULL;
	unsigned code;

	if (byte == 'u') {
		if (read_hex4(reader, &code))
			return -EINVAL;
	} else if (known) {
		code = (unsigned char)to[known - from];
	} else {
		return fail(reader, "bad escape");
	}
	put_utf8(text, size, used, code);
	return 0;
}

/* A string, cut at size - 1. */
static int read_string(struct safetensors *reader, char *text, size_t size)
{
	size_t used = 0;
	int byte;

	if (expect(reader, '"', "a string was expected"))
		return -EINVAL;
	while ((byte = next_byte(reader)) != '"') {
		if (byte < ' ')
			return fail(reader, byte < 0 ? "the header ends in a string"
			                             : "control character in a string");
		if (byte == '\\') {
			if (read_escape(reader, text, size, &used))
				return -EINVAL;
		} else if (used + 1 < size) {
			text[used++] = (char)byte;
		}
	}
	text[used] = '\0';
	return 0;
}

static int read_number(struct safetensors *reader, uint64_t *ret_value)
{
	uint64_t value = 0;
	int byte = next_sign(reader);

	if (byte < '0' || byte > '9')
		return fail(reader, "an unsigned integer was expected");
	for (; (byte = peek(reader)) >= '0' && byte <= '9'; reader->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(byte - '0'), &value))
			return fail(reader, "number too large");
	*ret_value = value;
	return 0;
}

/* Any value, to be passed over: brackets are counted, strings are read as strings. */
static int skip_value(struct safetensors *reader)
{
	char text[8];
	int depth = 0, byte;

	do {
		byte = next_sign(reader);
		if (byte == '"') {
			if (read_string(reader, text, sizeof(text)))
				return -EINVAL;
			continue;
		}
		if (byte < 0)
			return fail(reader, "the header ends in a value");
		if (!depth && (byte == ',' || byte == '}' || byte == ']'))
			return 0;
		depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
		if (depth > DEPTH_MAX)
			return fail(reader, "nested too deep");
		reader->at++;
	} while (depth || ((byte = next_sign(reader)) != ',' && byte != '}' && byte != ']' && byte >= 0));
	return 0;
}

/* After an element: 1: a comma, one more; 0: the closing sign. Both are taken. */
static int read_more(struct safetensors *reader, int closing)
{
	int byte = next_sign(reader);

	if (byte != ',' && byte != closing)
		return fail(reader, "a comma or a closing bracket was expected");
	reader->at++;
	return byte == ',';
}

/* --- a tensor -------------------------------------------------------------------------------- */

struct entry {
	uint64_t begin, end;
	unsigned bits; /* 0: unknown */
	bool has_dtype, has_shape, has_offsets;
};

static int read_dtype(struct safetensors *reader, struct entry *entry, struct safetensors_tensor *tensor)
{
	char name[32];
	size_t i;

	if (read_string(reader, name, sizeof(name)))
		return -EINVAL;
	tensor->dtype = ST_DTYPE_OTHER;
	entry->has_dtype = true;
	for (i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
		if (!strcmp(dtypes[i].name, name)) {
			tensor->dtype = dtypes[i].dtype;
			entry->bits = dtypes[i].bits;
		}
	return 0;
}

static int read_shape(struct safetensors *reader, struct entry *entry, struct safetensors_tensor *tensor)
{
	uint64_t elements = 1, length;
	int more;

	entry->has_shape = true;
	if (expect(reader, '[', "shape is no list"))
		return -EINVAL;
	more = next_sign(reader) != ']';
	if (!more)
		reader->at++;
	while (more > 0) {
		if (read_number(reader, &length))
			return -EINVAL;
		if (__builtin_mul_overflow(elements, length, &elements))
			return fail(reader, "shape overflows");
		more = read_more(reader, ']');
	}
	tensor->elements = elements;
	return more;
}

static int read_offsets(struct safetensors *reader, struct entry *entry)
{
	entry->has_offsets = true;
	if (expect(reader, '[', "data_offsets is no list") || read_number(reader, &entry->begin) ||
	    expect(reader, ',', "data_offsets has no second number") || read_number(reader, &entry->end))
		return -EINVAL;
	return expect(reader, ']', "data_offsets has more than two numbers");
}

static int check_entry(struct safetensors *reader, const struct entry *entry,
                       struct safetensors_tensor *tensor)
{
	uint64_t bits;

	if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
		return fail(reader, "dtype, shape or data_offsets is missing");
	if (entry->begin > entry->end || entry->end > reader->file_size - reader->data)
		return fail(reader, "data_offsets lie outside the file");
	tensor->offset = reader->data + entry->begin;
	tensor->size = entry->end - entry->begin;
	if (entry->bits && (__builtin_mul_overflow(tensor->elements, entry->bits, &bits) || bits % 8 ||
	                    bits / 8 != tensor->size))
		return fail(reader, "size and shape differ");
	if (__builtin_add_overflow(reader->covered, tensor->size, &reader->covered) ||
	    reader->covered > reader->file_size - reader->data)
		return fail(reader, "tensors overlap");
	return 0;
}

static int read_entry(struct safetensors *reader, struct safetensors_tensor *tensor)
{
	struct entry entry = {0};
	char key[32];
	int err, more = 1;

	if (expect(reader, '{', "a tensor is no object"))
		return -EINVAL;
	while (more > 0) {
		if (read_string(reader, key, sizeof(key)) || expect(reader, ':', "a colon was expected"))
			return -EINVAL;
		err = !strcmp(key, "dtype")          ? read_dtype(reader, &entry, tensor)
		      : !strcmp(key, "shape")        ? read_shape(reader, &entry, tensor)
		      : !strcmp(key, "data_offsets") ? read_offsets(reader, &entry)
		                                     : skip_value(reader);
		if (err)
			return err;
		more = read_more(reader, '}');
	}
	return more ? more : check_entry(reader, &entry, tensor);
}

/* --- the header ------------------------------------------------------------------------------ */

uint64_t safetensors_header(int fd, uint64_t file_size)
{
	unsigned char bytes[8];
	uint64_t length = 0;
	int i;

	if (pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return 0;
	for (i = 7; i >= 0; i--)
		length = length << 8 | bytes[i];
	return length < 2 || length > HEADER_MAX || length > file_size - 8 ? 0 : 8 + length;
}

int safetensors_open(int fd, uint64_t file_size, struct safetensors **ret_reader)
{
	uint64_t header = safetensors_header(fd, file_size);
	struct safetensors *reader;

	if (!header)
		return -EINVAL;
	reader = malloc(sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	memset(reader, 0, offsetof(struct safetensors, bytes));
	reader->fd = fd;
	reader->at = 8;
	reader->data = header;
	reader->file_size = file_size;
	*ret_reader = reader;
	return 0;
}

/* Takes the sign in front of the next name: 1: there is one, 0: the end. */
static int begin_entry(struct safetensors *reader)
{
	if (reader->begun)
		return read_more(reader, '}');
	reader->begun = true;
	if (expect(reader, '{', "the header is no object"))
		return -EINVAL;
	if (next_sign(reader) != '}')
		return 1;
	reader->at++;
	return 0;
}

static int end_header(struct safetensors *reader)
{
	if (next_sign(reader) >= 0)
		return fail(reader, "something follows the header's object");
	if (reader->covered != reader->file_size - reader->data)
		return fail(reader, "the tensors do not cover the data");
	return 0;
}

static int read_next(struct safetensors *reader, struct safetensors_tensor *tensor)
{
	int rc;

	for (;;) {
		rc = begin_entry(reader);
		if (rc <= 0)
			return rc ? rc : end_header(reader);
		if (read_string(reader, tensor->name, sizeof(tensor->name)) ||
		    expect(reader, ':', "a colon was expected"))
			return -EINVAL;
		if (strcmp(tensor->name, "__metadata__")) {
			rc = read_entry(reader, tensor);
			return rc ? rc : 1;
		}
		if (skip_value(reader))
			return -EINVAL;
	}
}

int safetensors_next(struct safetensors *reader, struct safetensors_tensor *ret_tensor)
{
	int rc = reader->error ? -EINVAL : read_next(reader, ret_tensor);

	return reader->read_error ? -reader->read_error : rc;
}

const char *safetensors_error(const struct safetensors *reader, uint64_t *ret_offset)
{
	*ret_offset = reader->at;
	return reader->error ? reader->error : "";
}

void safetensors_free(struct safetensors *reader)
{
	free(reader);
}
