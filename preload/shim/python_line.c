/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects/locations.md: an entry begins with a byte that has bit 7 set, the form in bits 3 to 6 and the number of
 * units less one in bits 0 to 2. Only the lines matter here; columns are skipped, they are bytes without bit 7.
 */
#include "python_line.h"

#include "python_layout.h"

#include "banned.h"

#define TABLE_MOST (1u << 20) /* bytes */

enum form {
	FORM_SHORT_LAST = 9, /* 0 to 9: on the line of the entry before */
	FORM_SAME = 10,      /* and 11, 12: that many minus 10 lines further */
	FORM_PLAIN = 13,     /* a signed number follows */
	FORM_LONG = 14,      /* the same, and more */
	FORM_NONE = 15,      /* no line */
};

struct table {
	const unsigned char *at, *end;
};

/* Six bits a byte, the lowest first, bit 6: more follow; the lowest bit of all is the sign. */
static int64_t read_signed(struct table *table)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (table->at < table->end && shift < 32) {
		unsigned char byte = *table->at++;

		value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* How many lines an entry is further than the one before; moves behind it. */
static int64_t read_lines(struct table *table, unsigned form)
{
	int64_t lines = form == FORM_PLAIN || form == FORM_LONG ? read_signed(table) : 0;

	while (table->at < table->end && !(*table->at & 128))
		table->at++;
	return form >= FORM_SAME && form < FORM_PLAIN ? form - FORM_SAME : lines;
}

uint32_t python_line(struct peek *seen, uintptr_t object, uint32_t first_line, uint32_t unit)
{
	int64_t line = first_line;
	uint64_t size, reached = 0;
	struct table table;

	if (!peek(seen, object + PYTHON_OBJECT_SIZE, &size, sizeof(size)) || size > TABLE_MOST ||
	    !peek_range(seen, object + PYTHON_BYTES, size))
		return 0;
	table.at = (const unsigned char *)object + PYTHON_BYTES;
	table.end = table.at + size;
	while (table.at < table.end) {
		unsigned char head = *table.at++;
		unsigned form = head >> 3 & 15;

		line += read_lines(&table, form);
		reached += (head & 7) + 1u;
		if (unit < reached)
			return form == FORM_NONE || line < 0 || line > INT32_MAX ? 0 : (uint32_t)line;
	}
	return 0;
}
