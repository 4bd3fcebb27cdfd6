/* SPDX-License-Identifier: Apache-2.0 */
/* What name and first bytes make of a file (file.h: file_format). */
#include "weights.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "banned.h"

/* Without a magic, a file of a fitting name counts from this size on: models do, tables and firmware do not. */
#define MIN_SIZE (UINT64_C(16) << 20)

/* The largest header that safetensors itself accepts. */
#define SAFETENSORS_HEADER 100000000u

static uint64_t number(const unsigned char *bytes)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

static bool is_safetensors(const unsigned char *bytes, uint64_t size)
{
	uint64_t header = number(bytes);

	return header > 1 && header <= SAFETENSORS_HEADER && header <= size - 8 && bytes[8] == '{';
}

static bool is_gguf(const unsigned char *bytes, uint64_t size)
{
	(void)size;
	return memcmp(bytes, "GGUF", 4) == 0;
}

/* torch.save: a zip archive, or, before 1.6, a pickle of protocol 2 and up. */
static bool is_torch(const unsigned char *bytes, uint64_t size)
{
	(void)size;
	return memcmp(bytes, "PK\3\4", 4) == 0 || (bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5);
}

static const struct suffix {
	const char *name;
	enum st_file_format format;
	bool (*magic)(const unsigned char *bytes, uint64_t size); /* NULL: told by size alone */
} suffixes[] = {
	{".safetensors", ST_FILE_SAFETENSORS, is_safetensors},
	{".gguf", ST_FILE_GGUF, is_gguf},
	{".bin", ST_FILE_TORCH, is_torch},
	{".pt", ST_FILE_TORCH, is_torch},
	{".pth", ST_FILE_TORCH, is_torch},
	{".ckpt", ST_FILE_TORCH, is_torch},
	{".ggml", ST_FILE_WEIGHTS, NULL},
	{".onnx", ST_FILE_WEIGHTS, NULL},
	{".distcp", ST_FILE_WEIGHTS, NULL},
	{".tensors", ST_FILE_WEIGHTS, NULL},
	{".msgpack", ST_FILE_WEIGHTS, NULL},
};

static const struct suffix *suffix_of(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t tail = strlen(suffixes[i].name);

		if (length > tail && strcasecmp(path + length - tail, suffixes[i].name) == 0)
			return &suffixes[i];
	}
	return NULL;
}

bool file_may_hold_weights(const char *path)
{
	return suffix_of(path) != NULL;
}

enum st_file_format file_format(const char *path, uint64_t size, const unsigned char *bytes, size_t count)
{
	const struct suffix *suffix = suffix_of(path);

	if (!suffix)
		return ST_FILE_OTHER;
	if (suffix->magic && count >= FILE_MAGIC_BYTES && suffix->magic(bytes, size))
		return suffix->format;
	return size >= MIN_SIZE ? ST_FILE_WEIGHTS : ST_FILE_OTHER;
}
