/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a range of a file, read in pieces of fixed size: memory does not grow with the range. A function that
 * returns -EINVAL leaves what is wrong in `error` and where in `at`; a read that failed is in `read_error`.
 */
#ifndef SPARKTRACE_RECORDER_SOURCE_H
#define SPARKTRACE_RECORDER_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* Tells how many bytes reading a range would bring into the page cache, 0 where that cannot be had. */
struct source_cache {
	uint64_t (*missing)(const void *context, uint64_t offset, uint64_t size);
	const void *context;
};

struct source {
	int fd;
	uint64_t at, end; /* offsets in the file: next byte, end of the range */
	const char *error;
	int read_error;
	struct source_cache cache;
	uint64_t own; /* bytes that came into the page cache because of us */
	uint64_t window;
	size_t used;
	unsigned char bytes[16384];
};

/* The descriptor stays the caller's. `cache` may be NULL. */
void source_begin(struct source *source, int fd, uint64_t at, uint64_t end, const struct source_cache *cache);

/* Goes on elsewhere in the same file. */
void source_move(struct source *source, uint64_t at, uint64_t end);

/* Notes what is wrong, unless something was already; returns -EINVAL. */
int source_fail(struct source *source, const char *error);

/* All of `size` bytes, or -EINVAL. */
int source_take(struct source *source, void *bytes, size_t size);

/* A little-endian number of 1 to 8 bytes, or -EINVAL. */
int source_number(struct source *source, size_t bytes, uint64_t *ret_value);

int source_skip(struct source *source, uint64_t bytes);

/* `length` bytes as text without NUL, cut at size - 1. 0 or -EINVAL. */
int source_text(struct source *source, uint64_t length, char *text, size_t size);

static inline uint64_t source_missing(const struct source_cache *cache, uint64_t offset, uint64_t size)
{
	return cache->missing ? cache->missing(cache->context, offset, size) : 0;
}

/* The number of 1 to 8 bytes at `bytes`. */
static inline uint64_t source_number_at(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;

	while (count--)
		value = value << 8 | bytes[count];
	return value;
}

#endif
