/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the reading of Python's texts and location tables: what they say, and that garbage costs neither a fault nor
 * a write behind the buffer. Lines are compared with what the installed Python says of its own code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/skip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/shim/python_line.h"
#include "preload/shim/python_text.h"

static const struct python_layout layout = {.text_ascii = 40, .text_others = 56};

/* An object as 3.12 lays it out, at the end of a page behind which nothing is. */
static char *page_end(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	return pages + 4096;
}

static uintptr_t make_text(uint32_t width, int ascii, const void *characters, uint64_t length)
{
	size_t head = ascii ? layout.text_ascii : layout.text_others,
	       size = (head + length * width + 7) / 8 * 8;
	char *object = page_end() - size;
	uint32_t state = width << 2 | 1u << 5 | (ascii ? 1u << 6 : 0) | 1;

	memcpy(object + PYTHON_TEXT_LENGTH, &length, sizeof(length));
	memcpy(object + PYTHON_TEXT_STATE, &state, sizeof(state));
	memcpy(object + head, characters, length * width);
	return (uintptr_t)object;
}

static const char *text_of(uintptr_t object, char blank, size_t room)
{
	static char buffer[256];
	struct peek seen = {0};
	struct text text = text_in(buffer, room);

	assert_true(room < sizeof(buffer));
	memset(buffer, 'X', sizeof(buffer));
	buffer[0] = 0;
	assert_true(python_text_add(&seen, &layout, object, blank, &text));
	assert_int_equal(buffer[room], 'X');
	assert_int_equal(text_length(&text), strlen(buffer));
	return buffer;
}

static void texts_come_out_as_utf8(void **state)
{
	static const uint8_t latin[] = {0xE9, 't', 0xE9};
	static const uint16_t wide[] = {0x4E2D, ' ', 0xDCFF, 0xD800, 'x'}; /* an escaped byte, half a pair */
	static const uint32_t widest[] = {0x1F600, 0, 0x110000, 'x'};

	(void)state;
	assert_string_equal(text_of(make_text(1, 1, "a b", 3), '_', 99), "a_b");
	assert_string_equal(text_of(make_text(1, 1, "a b", 3), ' ', 99), "a b");
	assert_string_equal(text_of(make_text(1, 0, latin, 3), '_', 99), "\u00e9t\u00e9");
	assert_string_equal(text_of(make_text(2, 0, wide, 5), ' ', 99), "\u4e2d \xff?x");
	assert_string_equal(text_of(make_text(4, 0, widest, 4), '_', 99), "\U0001F600??x");
	/* Cut where there is no more room, never within a character. */
	assert_string_equal(text_of(make_text(1, 1, "abcdef", 6), '_', 4), "abc");
	assert_string_equal(text_of(make_text(4, 0, widest, 4), '_', 4), "");
}

static void garbage_is_no_text(void **state)
{
	uintptr_t object = make_text(1, 1, "name", 4);
	uint64_t length = 4000;
	char buffer[8];
	struct peek seen = {0};
	struct text text = text_in(buffer, sizeof(buffer));

	(void)state;
	memcpy((char *)object + PYTHON_TEXT_LENGTH, &length, sizeof(length)); /* beyond the page */
	assert_false(python_text_add(&seen, &layout, object, '_', &text));
	assert_int_equal(python_text_hash(&seen, &layout, object, 1), 0);
	length = UINT64_MAX;
	memcpy((char *)object + PYTHON_TEXT_LENGTH, &length, sizeof(length));
	assert_false(python_text_add(&seen, &layout, object, '_', &text));
	assert_false(python_text_add(&seen, &layout, 0, '_', &text));
	assert_false(python_text_add(&seen, &layout, 16, '_', &text));
	assert_false(python_text_add(&seen, &layout, UINTPTR_MAX - 20, '_', &text));
	assert_int_equal(python_line(&seen, 8, 1, 0), 0);
	assert_int_equal(python_line(&seen, UINTPTR_MAX - 8, 1, 0), 0);
}

static void equal_texts_have_equal_hashes(void **state)
{
	struct peek seen = {0};
	uint64_t one = python_text_hash(&seen, &layout, make_text(1, 1, "/a/file_1.py", 12), 5);

	(void)state;
	assert_true(one == python_text_hash(&seen, &layout, make_text(1, 1, "/a/file_1.py", 12), 5));
	assert_true(one != python_text_hash(&seen, &layout, make_text(1, 1, "/a/file_2.py", 12), 5));
	assert_true(one != python_text_hash(&seen, &layout, make_text(1, 1, "/b/file_1.py", 12), 5));
	assert_true(one != python_text_hash(&seen, &layout, make_text(1, 1, "/a/file_1.p", 11), 5));
}

/* --- lines --------------------------------------------------------------------------------------- */

static uintptr_t make_bytes(const unsigned char *bytes, uint64_t size)
{
	char *object = page_end() - (PYTHON_BYTES + size + 7) / 8 * 8;

	memcpy(object + PYTHON_OBJECT_SIZE, &size, sizeof(size));
	memcpy(object + PYTHON_BYTES, bytes, size);
	return (uintptr_t)object;
}

/* For all functions of some modules: first line, table in hexadecimal, the line of each unit (0: none). */
static const char script[] =
	"import sys, types, json, ast, traceback, dataclasses, inspect\n"
	"if sys.version_info < (3, 11): sys.exit()\n"
	"def tell(c):\n"
	"  if len(c.co_linetable) < 3000:\n"
	"    print(c.co_firstlineno, c.co_linetable.hex(), *(p[0] or 0 for p in c.co_positions()))\n"
	"  [tell(k) for k in c.co_consts if isinstance(k, types.CodeType)]\n"
	"for m in json.decoder, ast, traceback, dataclasses, inspect:\n"
	"  tell(compile(open(m.__file__).read(), m.__file__, 'exec'))\n";

static unsigned line_compare(char *line)
{
	unsigned char bytes[3000];
	char *at = NULL, *hex, *word = strtok_r(line, " \n", &at);
	uint32_t first = (uint32_t)strtoul(word, NULL, 10), unit = 0;
	struct peek seen = {0};
	size_t size = 0;
	uintptr_t table;

	hex = strtok_r(NULL, " \n", &at);
	for (; hex[size * 2]; size++)
		sscanf(hex + size * 2, "%2hhx", &bytes[size]);
	table = make_bytes(bytes, size);
	while ((word = strtok_r(NULL, " \n", &at)))
		assert_int_equal(python_line(&seen, table, first, unit++), strtoul(word, NULL, 10));
	assert_int_equal(python_line(&seen, table, first, unit), 0);
	munmap((void *)(table / 4096 * 4096), 8192);
	return unit;
}

static void lines_are_those_of_python(void **state)
{
	char name[] = "/tmp/test_python_text.XXXXXX", command[128], *line = NULL;
	int fd = mkstemp(name);
	unsigned units = 0;
	size_t room = 0;
	FILE *pipe;

	(void)state;
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	close(fd);
	snprintf(command, sizeof(command), "python3 %s 2>/dev/null", name);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (getline(&line, &room, pipe) > 0)
		units += line_compare(line);
	free(line);
	pclose(pipe);
	unlink(name);
	if (!units)
		skip_because("no python3 of 3.11 or later");
	assert_true(units > 10000);
}

/* Every table of up to three bytes, and one without an end. */
static void no_table_leads_astray(void **state)
{
	unsigned char bytes[40];
	struct peek seen = {0};
	uintptr_t table;

	(void)state;
	for (unsigned n = 0; n < 1u << 16; n++) {
		bytes[0] = (unsigned char)(n >> 8);
		bytes[1] = (unsigned char)n;
		bytes[2] = (unsigned char)(n * 7);
		table = make_bytes(bytes, 3);
		python_line(&seen, table, 1, n % 30);
		munmap((void *)(table / 4096 * 4096), 8192);
		memset(&seen, 0, sizeof(seen));
	}
	memset(bytes, 0x7F, sizeof(bytes));
	bytes[0] = 0xF0;
	assert_int_equal(python_line(&seen, make_bytes(bytes, sizeof(bytes)), 1, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_out_as_utf8),        cmocka_unit_test(garbage_is_no_text),
		cmocka_unit_test(equal_texts_have_equal_hashes), cmocka_unit_test(lines_are_those_of_python),
		cmocka_unit_test(no_table_leads_astray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
