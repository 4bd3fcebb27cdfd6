/* SPDX-License-Identifier: Apache-2.0 */
#include "safetensors.h"
#include "json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER_MAX UINT64_C(100000000) /* the reference reader's */

struct safetensors {
	struct json json;
	uint64_t data;    /* bytes behind the header */
	uint64_t covered; /* of these by the tensors so far */
	bool begun;
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

/* --- a tensor -------------------------------------------------------------------------------- */

struct entry {
	uint64_t begin, end;
	unsigned bits; /* 0: unknown */
	bool has_dtype, has_shape, has_offsets;
};

static int read_dtype(struct safetensors *reader, struct entry *entry, struct file_tensor *tensor)
{
	char name[32];
	size_t i;

	if (json_read_string(&reader->json, name, sizeof(name)))
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

static int read_shape(struct safetensors *reader, struct entry *entry, struct file_tensor *tensor)
{
	uint64_t elements = 1, length;
	int more;

	entry->has_shape = true;
	if (json_expect(&reader->json, '[', "shape is no list"))
		return -EINVAL;
	more = json_next_sign(&reader->json) != ']';
	if (!more)
		reader->json.at++;
	while (more > 0) {
		if (json_read_number(&reader->json, &length))
			return -EINVAL;
		if (__builtin_mul_overflow(elements, length, &elements))
			return json_fail(&reader->json, "shape overflows");
		more = json_read_more(&reader->json, ']');
	}
	tensor->elements = elements;
	return more;
}

static int read_offsets(struct safetensors *reader, struct entry *entry)
{
	entry->has_offsets = true;
	if (json_expect(&reader->json, '[', "data_offsets is no list") ||
	    json_read_number(&reader->json, &entry->begin) ||
	    json_expect(&reader->json, ',', "data_offsets has no second number") ||
	    json_read_number(&reader->json, &entry->end))
		return -EINVAL;
	return json_expect(&reader->json, ']', "data_offsets has more than two numbers");
}

static int check_entry(struct safetensors *reader, const struct entry *entry, struct file_tensor *tensor)
{
	uint64_t bits;

	if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
		return json_fail(&reader->json, "dtype, shape or data_offsets is missing");
	if (entry->begin > entry->end || entry->end > reader->data)
		return json_fail(&reader->json, "data_offsets lie outside the file");
	tensor->offset = reader->json.end + entry->begin;
	tensor->size = entry->end - entry->begin;
	if (entry->bits && (__builtin_mul_overflow(tensor->elements, entry->bits, &bits) || bits % 8 ||
	                    bits / 8 != tensor->size))
		return json_fail(&reader->json, "size and shape differ");
	if (__builtin_add_overflow(reader->covered, tensor->size, &reader->covered) ||
	    reader->covered > reader->data)
		return json_fail(&reader->json, "tensors overlap");
	return 0;
}

static int read_entry(struct safetensors *reader, struct file_tensor *tensor)
{
	struct entry entry = {0};
	char key[32];
	int err, more = 1;

	if (json_expect(&reader->json, '{', "a tensor is no object"))
		return -EINVAL;
	while (more > 0) {
		if (json_read_string(&reader->json, key, sizeof(key)) ||
		    json_expect(&reader->json, ':', "a colon was expected"))
			return -EINVAL;
		err = !strcmp(key, "dtype")          ? read_dtype(reader, &entry, tensor)
		      : !strcmp(key, "shape")        ? read_shape(reader, &entry, tensor)
		      : !strcmp(key, "data_offsets") ? read_offsets(reader, &entry)
		                                     : json_skip_value(&reader->json);
		if (err)
			return err;
		more = json_read_more(&reader->json, '}');
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

int safetensors_open(int fd, uint64_t file_size, const struct source_cache *cache,
                     struct safetensors **ret_reader)
{
	uint64_t own = cache && file_size >= 8 ? source_missing(cache, 0, 8) : 0;
	uint64_t header = safetensors_header(fd, file_size);
	struct safetensors *reader;

	if (!header)
		return -EINVAL;
	reader = malloc(sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	json_begin(&reader->json, fd, 8, header, cache);
	reader->json.own = own;
	reader->data = file_size - header;
	reader->covered = 0;
	reader->begun = false;
	*ret_reader = reader;
	return 0;
}

/* Takes the sign in front of the next name: 1: there is one, 0: the end. */
static int begin_entry(struct safetensors *reader)
{
	if (reader->begun)
		return json_read_more(&reader->json, '}');
	reader->begun = true;
	if (json_expect(&reader->json, '{', "the header is no object"))
		return -EINVAL;
	if (json_next_sign(&reader->json) != '}')
		return 1;
	reader->json.at++;
	return 0;
}

static int end_header(struct safetensors *reader)
{
	if (json_next_sign(&reader->json) >= 0)
		return json_fail(&reader->json, "something follows the header's object");
	if (reader->covered != reader->data)
		return json_fail(&reader->json, "the tensors do not cover the data");
	return 0;
}

static int read_next(struct safetensors *reader, struct file_tensor *tensor)
{
	int rc;

	for (;;) {
		rc = begin_entry(reader);
		if (rc <= 0)
			return rc ? rc : end_header(reader);
		if (json_read_string(&reader->json, tensor->name, sizeof(tensor->name)) ||
		    json_expect(&reader->json, ':', "a colon was expected"))
			return -EINVAL;
		if (strcmp(tensor->name, "__metadata__")) {
			rc = read_entry(reader, tensor);
			return rc ? rc : 1;
		}
		if (json_skip_value(&reader->json))
			return -EINVAL;
	}
}

int safetensors_next(struct safetensors *reader, struct file_tensor *ret_tensor)
{
	int rc = reader->json.error ? -EINVAL : read_next(reader, ret_tensor);

	return reader->json.read_error ? -reader->json.read_error : rc;
}

const char *safetensors_error(const struct safetensors *reader, uint64_t *ret_offset)
{
	*ret_offset = reader->json.at;
	return reader->json.error ? reader->json.error : "";
}

uint64_t safetensors_own(const struct safetensors *reader)
{
	return reader->json.own;
}

void safetensors_free(struct safetensors *reader)
{
	free(reader);
}
