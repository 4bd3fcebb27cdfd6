/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects: what people read (units, intervals, wrapping, tables) and what scripts read (keys with units,
 * null for unknown, valid JSON whatever bytes a path is made of), and that both carry the same values.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/emit.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

typedef void emit_body(struct emitter *e);

static char *emit_document(emit_body *body, enum emit_format format)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct emitter e;

	assert_non_null(out);
	emit_begin(&e, out, format);
	body(&e);
	assert_int_equal(emit_end(&e), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static json_t *emit_parsed(emit_body *body)
{
	char *text = emit_document(body, EMIT_JSON);
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);

	if (!root)
		print_error("%s\n%s\n", error.text, text);
	assert_non_null(root);
	free(text);
	return root;
}

static void assert_value(struct emit_field field, const char *expected)
{
	char *text = emit_value_text(&field);

	assert_string_equal(text, expected);
	free(text);
}

static void test_units(void **state)
{
	(void)state;
	assert_value(emit_bytes("x", 0), "0 bytes");
	assert_value(emit_bytes("x", 1023), "1023 bytes");
	assert_value(emit_bytes("x", 4096), "4 KiB");
	assert_value(emit_bytes("x", 64 * MIB), "64.0 MiB");
	assert_value(emit_bytes("x", 1024 * MIB - 1), "1.00 GiB");
	assert_value(emit_bytes("x", GIB + GIB / 4), "1.25 GiB");
	assert_value(emit_bytes("x", 2048 * GIB), "2048.00 GiB");
	assert_value(emit_bytes("x", UINT64_MAX), "unknown");
	assert_value(emit_change("x", -(int64_t)(3 * MIB), -(int64_t)(3 * MIB)), "-3.0 MiB");
	assert_value(emit_change("x", 0, 0), "+0 bytes");
	assert_value(emit_change("x", -(int64_t)MIB, GIB), "-1.0 MiB to +1.00 GiB");
	assert_value(emit_change("x", INT64_MIN, INT64_MAX), "unknown");
	assert_value(emit_time("x", 1234567890), "1.235 s");
	assert_value(emit_time("x", 3723 * UINT64_C(1000000000)), "62 min 03 s");
	assert_value(emit_ratio("x", 2), "2.00");
	assert_value(emit_ratio("x", NAN), "unknown");
	assert_value(emit_share("x", 0.5), "50 %");
	assert_value(emit_share("x", 0.012), "1.2 %");
	assert_value(emit_word("x", NULL), "unknown");
}

/* An interval is never printed as a figure, however narrow. */
static void test_intervals(void **state)
{
	(void)state;
	assert_value(emit_interval("x", GIB, GIB), "1.00 GiB");
	assert_value(emit_interval("x", GIB, GIB + 4096), "1.00 GiB (+4 KiB)");
	assert_value(emit_interval("x", GIB, 2 * GIB), "1.00 to 2.00 GiB");
	assert_value(emit_interval("x", 0, 512 * MIB), "up to 512.0 MiB");
	assert_value(emit_interval("x", GIB, UINT64_MAX), "at least 1.00 GiB");
	assert_value(emit_interval("x", UINT64_MAX, UINT64_MAX), "unknown");
}

static void untrusted_body(struct emitter *e)
{
	emit_say(e, "{path}", emit_word("path", "a\"b\\c\xff\x1b[2Jd\n\xc2\x9b\xc3\xa9\xed\xa0\x80"));
}

static void test_untrusted_text(void **state)
{
	char *text = emit_document(untrusted_body, EMIT_TEXT);
	json_t *root = emit_parsed(untrusted_body);
	const char *clean = "a\"b\\c\\xff\\x1b[2Jd\\x0a\\xc2\\x9b\xc3\xa9\\xed\\xa0\\x80";

	(void)state;
	assert_non_null(strstr(text, clean));
	assert_string_equal(json_string_value(json_object_get(root, "path")), clean);
	free(text);
	json_decref(root);
}

static void keys_body(struct emitter *e)
{
	emit_open(e, "peak", "When");
	emit_say(e, "{size} at {time}, {count} of {unknown}, {interval}", emit_bytes("size", GIB),
	         emit_time("time", 5), emit_count("count", 7), emit_bytes("unknown", UINT64_MAX),
	         emit_interval("interval", 1, UINT64_MAX), emit_change("change", -4, 4),
	         emit_flag("flag", true), emit_ratio("ratio", 1.0625), emit_ratio("nothing", NAN));
	emit_close(e);
	emit_list(e, "files", NULL);
	emit_open(e, NULL, NULL);
	emit_only(e, emit_word("name", "x"));
	emit_close(e);
	emit_close(e);
	emit_open(e, "empty", NULL);
	emit_close(e);
}

static void test_json_keys(void **state)
{
	json_t *root = emit_parsed(keys_body), *peak = json_object_get(root, "peak");
	json_t *interval = json_object_get(peak, "interval");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(peak, "size_bytes")), GIB);
	assert_int_equal(json_integer_value(json_object_get(peak, "time_ns")), 5);
	assert_int_equal(json_integer_value(json_object_get(peak, "count")), 7);
	assert_true(json_is_null(json_object_get(peak, "unknown_bytes")));
	assert_int_equal(json_integer_value(json_object_get(interval, "low_bytes")), 1);
	assert_true(json_is_null(json_object_get(interval, "high_bytes")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(peak, "change"), "low_bytes")),
	                 -4);
	assert_true(json_is_true(json_object_get(peak, "flag")));
	assert_true(json_real_value(json_object_get(peak, "ratio")) == 1.0625);
	assert_true(json_is_null(json_object_get(peak, "nothing")));
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(root, "files"), 0), "name")),
		"x");
	json_decref(root);
}

static void test_text_sentence(void **state)
{
	char *text = emit_document(keys_body, EMIT_TEXT);

	(void)state;
	assert_string_equal(text, "When\n  1.00 GiB at 0.000 s, 7 of unknown, at least 1 bytes\n");
	free(text);
}

static void table_body(struct emitter *e)
{
	static const struct emit_column columns[] = {
		{"rung", false}, {"relief", true}, {NULL, false}, {"why", false}};

	emit_table(e, "rungs", columns, 4);
	emit_row(e, true,
	         (struct emit_field[]){emit_word("id", "1"), emit_bytes("relief", 70 * GIB),
	                               emit_flag("hidden", false), emit_word("why", "flush")});
	emit_row(e, true,
	         (struct emit_field[]){emit_word("id", "1b"), emit_bytes("relief", UINT64_MAX),
	                               emit_flag("hidden", true), emit_word("why", NULL)});
	emit_row(e, false,
	         (struct emit_field[]){emit_word("id", "2"), emit_bytes("relief", 1),
	                               emit_flag("hidden", true), emit_word("why", "only in JSON")});
	emit_table_end(e);
}

static void test_table(void **state)
{
	char *text = emit_document(table_body, EMIT_TEXT);
	json_t *root = emit_parsed(table_body), *rows = json_object_get(root, "rungs");

	(void)state;
	assert_string_equal(text, "  rung     relief  why\n"
	                          "  1     70.00 GiB  flush\n"
	                          "  1b      unknown\n");
	assert_int_equal(json_array_size(rows), 3);
	assert_true(json_is_true(json_object_get(json_array_get(rows, 1), "hidden")));
	assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "relief_bytes")));
	free(text);
	json_decref(root);
}

static void long_body(struct emitter *e)
{
	static const char *const word = "one two three four five six seven eight nine ten eleven twelve "
					"thirteen fourteen fifteen sixteen seventeen eighteen";

	static char endless[8000];

	memset(endless, 'x', sizeof(endless) - 1);
	for (size_t i = 50; i < sizeof(endless) - 1; i += 50)
		endless[i] = ' ';
	emit_say(e, "{a} {a} {b}", emit_word("a", word), emit_word("b", endless));
	emit_say(e, "{p}",
	         emit_path("p", "/a/very/long/way/down/to/the/folder/where/somebody/keeps/the/shards/"
	                        "model-00001-of-00002.safetensors"));
}

static void test_wrapping(void **state)
{
	char *text = emit_document(long_body, EMIT_TEXT);

	(void)state;
	assert_true(strlen(text) < 1200);
	assert_non_null(strstr(text, "..."));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(strlen(line) <= EMIT_WIDTH);
		assert_memory_equal(line, "  ", 2);
		if (strstr(line, "00001"))
			assert_memory_equal(line + 2, ".../", 4);
	}
	free(text);
}

static void test_write_error_is_reported(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct emitter e;

	(void)state;
	assert_non_null(full);
	emit_begin(&e, full, EMIT_JSON);
	keys_body(&e);
	assert_int_equal(emit_end(&e), -EIO);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),          cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_untrusted_text), cmocka_unit_test(test_json_keys),
		cmocka_unit_test(test_text_sentence),  cmocka_unit_test(test_table),
		cmocka_unit_test(test_wrapping),       cmocka_unit_test(test_write_error_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
