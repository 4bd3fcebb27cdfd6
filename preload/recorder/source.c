/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void source_begin(struct source *source, int fd, uint64_t at, uint64_t end, const struct source_cache *cache)
{
	memset(source, 0, offsetof(struct source, bytes));
	source->fd = fd;
	source->at = at;
	source->end = end;
	if (cache)
		source->cache = *cache;
}

void source_move(struct source *source, uint64_t at, uint64_t end)
{
	source->at = at;
	source->end = end;
}

int source_fail(struct source *source, const char *error)
{
	if (!source->error)
		source->error = error;
	return -EINVAL;
}

/* Bytes there are at source->at, in *ret_bytes; 0: the end, or a read that failed. */
static size_t look(struct source *source, const unsigned char **ret_bytes)
{
	uint64_t left = source->end > source->at ? source->end - source->at : 0;
	size_t size = left < sizeof(source->bytes) ? (size_t)left : sizeof(source->bytes), there;
	ssize_t n;

	if (!left || source->read_error)
		return 0;
	if (source->at < source->window || source->at - source->window >= source->used) {
		source->own += source_missing(&source->cache, source->at, size);
		n = pread(source->fd, source->bytes, size, (off_t)source->at);
		if (n <= 0) {
			source->read_error = n ? errno : EIO;
			return 0;
		}
		source->window = source->at;
		source->used = (size_t)n;
	}
	there = source->used - (size_t)(source->at - source->window);
	*ret_bytes = source->bytes + (source->at - source->window);
	return there < left ? there : (size_t)left;
}

int source_take(struct source *source, void *bytes, size_t size)
{
	unsigned char *to = bytes;
	const unsigned char *from;
	size_t there;

	while (size) {
		there = look(source, &from);
		if (!there)
			return source_fail(source, "the file ends too early");
		there = there < size ? there : size;
		memcpy(to, from, there);
		to += there;
		size -= there;
		source->at += there;
	}
	return 0;
}

int source_number(struct source *source, size_t bytes, uint64_t *ret_value)
{
	unsigned char raw[8];

	if (source_take(source, raw, bytes))
		return -EINVAL;
	*ret_value = source_number_at(raw, bytes);
	return 0;
}

int source_skip(struct source *source, uint64_t bytes)
{
	if (source->at > source->end || bytes > source->end - source->at)
		return source_fail(source, "the file ends too early");
	source->at += bytes;
	return 0;
}

int source_text(struct source *source, uint64_t length, char *text, size_t size)
{
	size_t kept = length < size ? (size_t)length : size - 1, i;

	if (source->at > source->end || length > source->end - source->at)
		return source_fail(source, "a text is longer than the file");
	if (source_take(source, text, kept))
		return -EINVAL;
	text[kept] = '\0';
	for (i = 0; i < kept; i++)
		if (!text[i])
			text[i] = '?';
	return source_skip(source, length - kept);
}
