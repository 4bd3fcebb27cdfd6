/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 32u   /* where the file says nothing */
#define KEY_MAX   65535 /* the reference reader's for keys; names of tensors are shorter */
#define LENGTHS   8u    /* the reference writer's is 4 */
#define NESTED    8u    /* arrays of arrays */
#define PIECE     1024u /* values of an array that are skipped at a time */

enum state { STATE_PAIRS, STATE_SKIM, STATE_TENSORS };

/* An array whose elements are being passed over. */
struct array {
	uint64_t left;
	uint32_t type;
};

struct gguf {
	struct source source;
	enum state state;
	uint64_t pairs, tensors,
		left;         /* pairs that follow; tensors in all; of these yet to be passed or read */
	uint64_t table, data; /* offset of the first tensor's description; of the data */
	uint64_t alignment;
	struct array arrays[NESTED];
	unsigned depth;
};

/* Values of pairs: bytes of a fixed one. */
enum { TYPE_STRING = 8, TYPE_ARRAY = 9, TYPE_U32 = 4, TYPE_COUNT = 13 };
static const unsigned char value_sizes[TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Types of tensors, by number: elements of a block and its bytes. */
static const struct {
	enum st_dtype dtype;
	uint16_t elements, bytes;
} types[] = {
	[0] = {ST_DTYPE_F32, 1, 4},         [1] = {ST_DTYPE_F16, 1, 2},
	[2] = {ST_DTYPE_Q4_0, 32, 18},      [3] = {ST_DTYPE_Q4_1, 32, 20},
	[6] = {ST_DTYPE_Q5_0, 32, 22},      [7] = {ST_DTYPE_Q5_1, 32, 24},
	[8] = {ST_DTYPE_Q8_0, 32, 34},      [9] = {ST_DTYPE_Q8_1, 32, 40},
	[10] = {ST_DTYPE_Q2_K, 256, 84},    [11] = {ST_DTYPE_Q3_K, 256, 110},
	[12] = {ST_DTYPE_Q4_K, 256, 144},   [13] = {ST_DTYPE_Q5_K, 256, 176},
	[14] = {ST_DTYPE_Q6_K, 256, 210},   [15] = {ST_DTYPE_Q8_K, 256, 292},
	[16] = {ST_DTYPE_IQ2_XXS, 256, 66}, [17] = {ST_DTYPE_IQ2_XS, 256, 74},
	[18] = {ST_DTYPE_IQ3_XXS, 256, 98}, [19] = {ST_DTYPE_IQ1_S, 256, 50},
	[20] = {ST_DTYPE_IQ4_NL, 32, 18},   [21] = {ST_DTYPE_IQ3_S, 256, 110},
	[22] = {ST_DTYPE_IQ2_S, 256, 82},   [23] = {ST_DTYPE_IQ4_XS, 256, 136},
	[24] = {ST_DTYPE_I8, 1, 1},         [25] = {ST_DTYPE_I16, 1, 2},
	[26] = {ST_DTYPE_I32, 1, 4},        [27] = {ST_DTYPE_I64, 1, 8},
	[28] = {ST_DTYPE_F64, 1, 8},        [29] = {ST_DTYPE_IQ1_M, 256, 56},
	[30] = {ST_DTYPE_BF16, 1, 2},       [34] = {ST_DTYPE_TQ1_0, 256, 54},
	[35] = {ST_DTYPE_TQ2_0, 256, 66},   [39] = {ST_DTYPE_MXFP4, 32, 17},
	[40] = {ST_DTYPE_NVFP4, 64, 36},    [41] = {ST_DTYPE_Q1_0, 128, 18},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

/* --- the pairs ------------------------------------------------------------------------------- */

static int skip_string(struct source *source)
{
	uint64_t length;

	return source_number(source, 8, &length) ? -EINVAL : source_skip(source, length);
}

static int enter_array(struct gguf *reader)
{
	struct array array;
	uint64_t type;

	if (source_number(&reader->source, 4, &type) || source_number(&reader->source, 8, &array.left))
		return -EINVAL;
	if (type >= TYPE_COUNT)
		return source_fail(&reader->source, "an array of an unknown type");
	if (reader->depth == NESTED)
		return source_fail(&reader->source, "nested too deep");
	array.type = (uint32_t)type;
	reader->arrays[reader->depth++] = array;
	return 0;
}

/* A piece of the innermost array. Elements of a fixed size are passed in one step. */
static int pass_array(struct gguf *reader)
{
	struct array *array = &reader->arrays[reader->depth - 1];
	uint64_t bytes = value_sizes[array->type];
	unsigned i;

	if (!array->left) {
		reader->depth--;
		return 0;
	}
	if (bytes) {
		if (__builtin_mul_overflow(bytes, array->left, &bytes))
			return source_fail(&reader->source, "an array is longer than the file");
		array->left = 0;
		return source_skip(&reader->source, bytes);
	}
	if (array->type == TYPE_ARRAY) {
		array->left--;
		return enter_array(reader);
	}
	for (i = 0; i < PIECE && array->left; i++, array->left--)
		if (skip_string(&reader->source))
			return -EINVAL;
	return 0;
}

static int read_alignment(struct gguf *reader, uint64_t type)
{
	if (type != TYPE_U32)
		return source_fail(&reader->source, "the alignment is no 32-bit number");
	if (source_number(&reader->source, 4, &reader->alignment))
		return -EINVAL;
	if (!reader->alignment || reader->alignment & (reader->alignment - 1))
		return source_fail(&reader->source, "the alignment is no power of two");
	return 0;
}

static int pass_pair(struct gguf *reader)
{
	struct source *source = &reader->source;
	char key[32];
	uint64_t length, type;

	if (source_number(source, 8, &length))
		return -EINVAL;
	if (length > KEY_MAX)
		return source_fail(source, "a key is too long");
	if (source_text(source, length, key, sizeof(key)) || source_number(source, 4, &type))
		return -EINVAL;
	reader->pairs--;
	if (length < sizeof(key) && !strcmp(key, "general.alignment"))
		return read_alignment(reader, type);
	if (type == TYPE_STRING)
		return skip_string(source);
	if (type == TYPE_ARRAY)
		return enter_array(reader);
	return type < TYPE_COUNT ? source_skip(source, value_sizes[type])
	                         : source_fail(source, "a value of an unknown type");
}

/* --- the tensors ----------------------------------------------------------------------------- */

static int read_lengths(struct source *source, struct file_tensor *tensor)
{
	uint64_t count, length;

	tensor->elements = 1;
	if (source_number(source, 4, &count))
		return -EINVAL;
	if (count > LENGTHS)
		return source_fail(source, "a tensor has too many dimensions");
	while (count--) {
		if (source_number(source, 8, &length))
			return -EINVAL;
		if (__builtin_mul_overflow(tensor->elements, length, &tensor->elements))
			return source_fail(source, "the shape of a tensor overflows");
	}
	return 0;
}

/* Size 0 where the type is not known: where it ends is not known then either. */
static int size_tensor(struct source *source, uint64_t type, struct file_tensor *tensor)
{
	uint64_t blocks;

	tensor->dtype = ST_DTYPE_OTHER;
	tensor->size = 0;
	if (type >= TYPES || !types[type].elements)
		return 0;
	blocks = tensor->elements / types[type].elements;
	tensor->dtype = types[type].dtype;
	if (tensor->elements % types[type].elements)
		return source_fail(source, "a tensor is no whole number of blocks");
	if (__builtin_mul_overflow(blocks, types[type].bytes, &tensor->size))
		return source_fail(source, "the size of a tensor overflows");
	return 0;
}

/* Its offset is still that in the data. */
static int read_tensor(struct gguf *reader, struct file_tensor *tensor)
{
	struct source *source = &reader->source;
	uint64_t length, type;

	if (source_number(source, 8, &length))
		return -EINVAL;
	if (length > KEY_MAX)
		return source_fail(source, "a name is too long");
	if (source_text(source, length, tensor->name, sizeof(tensor->name)) || read_lengths(source, tensor) ||
	    source_number(source, 4, &type) || source_number(source, 8, &tensor->offset))
		return -EINVAL;
	return size_tensor(source, type, tensor);
}

static int place_tensor(const struct gguf *reader, struct source *source, struct file_tensor *tensor)
{
	uint64_t end;

	if (tensor->offset % reader->alignment)
		return source_fail(source, "a tensor is not aligned");
	if (__builtin_add_overflow(tensor->offset, reader->data, &tensor->offset) ||
	    __builtin_add_overflow(tensor->offset, tensor->size, &end) || end > source->end)
		return source_fail(source, "a tensor lies outside the file");
	return TENSOR_READ;
}

/* --- the table ------------------------------------------------------------------------------- */

static void begin_tensors(struct gguf *reader)
{
	reader->data = (reader->source.at + reader->alignment - 1) / reader->alignment * reader->alignment;
	reader->state = STATE_TENSORS;
	reader->left = reader->tensors;
	source_move(&reader->source, reader->table, reader->source.end);
}

static int step(struct gguf *reader, struct file_tensor *tensor)
{
	switch (reader->state) {
	case STATE_PAIRS:
		if (reader->depth)
			return pass_array(reader) ? -EINVAL : TENSOR_STEP;
		if (reader->pairs)
			return pass_pair(reader) ? -EINVAL : TENSOR_STEP;
		reader->table = reader->source.at;
		reader->state = STATE_SKIM;
		return TENSOR_STEP;
	case STATE_SKIM:
		if (reader->left && read_tensor(reader, tensor))
			return -EINVAL;
		if (!reader->left || !--reader->left)
			begin_tensors(reader);
		return TENSOR_STEP;
	case STATE_TENSORS:
		break;
	}
	if (!reader->left--)
		return TENSOR_END;
	return read_tensor(reader, tensor) ? -EINVAL : place_tensor(reader, &reader->source, tensor);
}

int gguf_next(struct gguf *reader, struct file_tensor *ret_tensor)
{
	int rc = reader->source.error ? -EINVAL : step(reader, ret_tensor);

	return reader->source.read_error ? -reader->source.read_error : rc;
}

static int read_head(struct gguf *reader)
{
	char magic[4];
	uint64_t version;

	if (source_take(&reader->source, magic, sizeof(magic)) || memcmp(magic, "GGUF", sizeof(magic)) ||
	    source_number(&reader->source, 4, &version) || version < 2 || version > 3 ||
	    source_number(&reader->source, 8, &reader->tensors) ||
	    source_number(&reader->source, 8, &reader->pairs))
		return reader->source.read_error ? -reader->source.read_error : -EINVAL;
	reader->left = reader->tensors;
	reader->alignment = ALIGNMENT;
	return 0;
}

int gguf_open(int fd, uint64_t file_size, const struct source_cache *cache, struct gguf **ret_reader)
{
	struct gguf *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	source_begin(&reader->source, fd, 0, file_size, cache);
	err = read_head(reader);
	if (err)
		free(reader);
	else
		*ret_reader = reader;
	return err;
}

const struct source *gguf_source(const struct gguf *reader)
{
	return &reader->source;
}

void gguf_free(struct gguf *reader)
{
	free(reader);
}
