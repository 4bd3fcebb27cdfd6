/* SPDX-License-Identifier: Apache-2.0 */
#include "python_text.h"

#include "hash.h"

#include "banned.h"

/* struct state of PyASCIIObject, the same since 3.3: interned 2 bits, kind 3, compact, ascii. */
#define STATE_WIDTH(state) ((state) >> 2 & 7) /* bytes a character: 1, 2, 4 */
#define STATE_COMPACT      (1u << 5)
#define STATE_ASCII        (1u << 6)

#define ESCAPED_FIRST 0xDC80u /* os.fsdecode: a byte that is no UTF-8 */
#define ESCAPED_LAST  0xDCFFu

struct characters {
	uintptr_t start;
	size_t length;
	uint32_t width;
};

static bool characters_find(struct peek *seen, const struct python_layout *layout, uintptr_t object,
                            struct characters *ret_characters)
{
	uint64_t length;
	uint32_t state, width;

	if (!peek(seen, object + PYTHON_TEXT_LENGTH, &length, sizeof(length)) ||
	    !peek(seen, object + PYTHON_TEXT_STATE, &state, sizeof(state)))
		return false;
	width = STATE_WIDTH(state);
	if (!(state & STATE_COMPACT) || !length || length > PYTHON_TEXT_MOST ||
	    (width != 1 && width != 2 && width != 4))
		return false;
	ret_characters->start = object + (state & STATE_ASCII ? layout->text_ascii : layout->text_others);
	ret_characters->length = length;
	ret_characters->width = width;
	return peek_range(seen, ret_characters->start, length * width);
}

/* Readable, as characters_find() has seen. */
static uint32_t character_at(const struct characters *characters, size_t i)
{
	const void *start = (const void *)characters->start;

	switch (characters->width) {
	case 1:
		return ((const uint8_t *)start)[i];
	case 2:
		return ((const uint16_t *)start)[i];
	default:
		return ((const uint32_t *)start)[i];
	}
}

/* Whole or not at all: half a character would be none. */
static void add_utf8(struct text *to, uint32_t c)
{
	char bytes[4];
	size_t count = 0;

	if (c < 0x800) {
		bytes[count++] = (char)(0xC0 | c >> 6);
	} else if (c < 0x10000) {
		bytes[count++] = (char)(0xE0 | c >> 12);
		bytes[count++] = (char)(0x80 | (c >> 6 & 0x3F));
	} else {
		bytes[count++] = (char)(0xF0 | c >> 18);
		bytes[count++] = (char)(0x80 | (c >> 12 & 0x3F));
		bytes[count++] = (char)(0x80 | (c >> 6 & 0x3F));
	}
	bytes[count++] = (char)(0x80 | (c & 0x3F));
	if ((size_t)(to->end - to->at) >= count)
		text_bytes(to, bytes, count);
	else
		to->end = to->at; /* nor what comes behind */
}

static void add_character(struct text *to, uint32_t c, char blank)
{
	if (c >= ESCAPED_FIRST && c <= ESCAPED_LAST)
		text_byte(to, (char)(c - ESCAPED_FIRST + 0x80));
	else if (!c || (c >= 0xD800 && c < 0xE000) || c > 0x10FFFF)
		text_byte(to, '?');
	else if (c < 0x80)
		text_byte(to, c == ' ' ? blank : (char)c);
	else
		add_utf8(to, c);
}

bool python_text_add(struct peek *seen, const struct python_layout *layout, uintptr_t object, char blank,
                     struct text *to)
{
	struct characters characters;

	if (!characters_find(seen, layout, object, &characters))
		return false;
	for (size_t i = 0; i < characters.length && to->at < to->end; i++)
		add_character(to, character_at(&characters, i), blank);
	return true;
}

uint64_t python_text_hash(struct peek *seen, const struct python_layout *layout, uintptr_t object,
                          uint64_t hash)
{
	struct characters characters;
	const unsigned char *bytes;
	uint64_t word = 0;
	size_t size, i;

	if (!characters_find(seen, layout, object, &characters))
		return 0;
	bytes = (const unsigned char *)characters.start;
	size = characters.length * characters.width;
	hash ^= size;
	for (i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, bytes + i, 8);
		hash = hash_mix(hash, word);
	}
	word = 0;
	memcpy(&word, bytes + i, size - i);
	return hash_mix(hash, word) | 1;
}
