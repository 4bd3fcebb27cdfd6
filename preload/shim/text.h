/* SPDX-License-Identifier: Apache-2.0 */
/* Texts put together in a buffer of the caller: no stdio, no locale. Always ends in NUL; what is too long is cut. */
#ifndef SPARKTRACE_SHIM_TEXT_H
#define SPARKTRACE_SHIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *start, *at, *end; /* `end` is the last byte: it stays NUL */
	bool cut;
};

static inline struct text text_in(char *buffer, size_t size)
{
	buffer[0] = '\0';
	return (struct text){buffer, buffer, buffer + size - 1, false};
}

static inline void text_byte(struct text *text, char c)
{
	if (text->at == text->end) {
		text->cut = true;
		return;
	}
	*text->at++ = c;
	*text->at = '\0';
}

static inline void text_bytes(struct text *text, const char *from, size_t count)
{
	while (count--)
		text_byte(text, *from++);
}

static inline void text_add(struct text *text, const char *from)
{
	while (*from)
		text_byte(text, *from++);
}

static inline void text_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (count)
		text_byte(text, digits[--count]);
}

/* Takes back what was added behind `length`: a part that did not fit shall not stand there by half. */
static inline void text_back(struct text *text, size_t length)
{
	text->at = text->start + length;
	*text->at = '\0';
	text->cut = false;
}

static inline size_t text_length(const struct text *text)
{
	return (size_t)(text->at - text->start);
}

#endif
