/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text in a range of a file, taken sign by sign in pieces of fixed size: memory does not grow with the
 * text. Functions that return -EINVAL leave what is wrong in `error` and where in `at`; a read that fails
 * looks like the end of the text and is in `read_error`.
 */
#ifndef SPARKTRACE_RECORDER_JSON_H
#define SPARKTRACE_RECORDER_JSON_H

#include "source.h"

#include <stddef.h>
#include <stdint.h>

struct json {
	int fd;
	uint64_t at, end; /* offsets in the file: next byte, end of the text */
	const char *error;
	int read_error;
	struct source_cache cache;
	uint64_t own;    /* bytes that came into the page cache because of us */
	uint64_t window; /* offset of bytes[0] */
	size_t used;
	unsigned char bytes[32768];
};

/* The descriptor stays the caller's. `cache` may be NULL. */
void json_begin(struct json *json, int fd, uint64_t at, uint64_t end, const struct source_cache *cache);

/* Notes what is wrong, unless something was already; returns -EINVAL. */
int json_fail(struct json *json, const char *error);

/* The next byte that is no white space, not taken; -1: the end. */
int json_next_sign(struct json *json);

/* Takes just that sign. 0 or -EINVAL. */
int json_expect(struct json *json, int sign, const char *error);

/* A string as UTF-8 without NUL, cut at size - 1. 0 or -EINVAL. */
int json_read_string(struct json *json, char *text, size_t size);

/* An unsigned integer. 0 or -EINVAL. */
int json_read_number(struct json *json, uint64_t *ret_value);

/* Passes over any value. 0 or -EINVAL. */
int json_skip_value(struct json *json);

/* Behind an element: 1: a comma, one more; 0: the closing sign; -EINVAL. Both are taken. */
int json_read_more(struct json *json, int closing);

#endif
