/* SPDX-License-Identifier: Apache-2.0 */
/* Protects secrets on command lines, and what only looks like one from being starred out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/scrub.h"

#include <string.h>

static void check(const char *arguments, size_t bytes, const char *expected)
{
	char line[512];

	scrub_arguments(arguments, bytes, line, sizeof(line));
	assert_string_equal(line, expected);
}

#define CHECK(arguments, expected) check(arguments, sizeof(arguments), expected)

static void test_secrets(void **state)
{
	(void)state;
	CHECK("a\0--hf-token\0abc\0x", "a --hf-token *** x");
	CHECK("a\0--token=abc\0x", "a --token=*** x");
	CHECK("a\0--api_key\0k\0--lr\0001", "a --api_key *** --lr 1");
	CHECK("env\0HF_TOKEN=abc\0PASSWORD=x y", "env HF_TOKEN=*** 'PASSWORD=***'");
	CHECK("a\0https://me:pw@host/x?token=abc&n=1", "a https://***@host/x?token=***&n=1");
	CHECK("a\0hf_abcdefghijklmnopqrst", "a ***");
	CHECK("a\0-H\0Authorization: Bearer eyJabcdefghijklmnopq.rst", "a -H 'Authorization: Bearer ***'");
	CHECK("a\0-H\0Authorization: Bearer x1", "a -H 'Authorization: Bearer ***'");
	CHECK("a\0-c\0login(token=\"abc def\", n=1)", "a -c 'login(token=***, n=1)'");
	CHECK("a\0--url=https://u@h:1", "a --url=https://***@h:1");
}

static void test_no_secrets(void **state)
{
	(void)state;
	CHECK("python\0train.py\0--max-tokens=512", "python train.py --max-tokens=512");
	CHECK("a\0--tokenizer\0gpt2\0--num-key-value-heads\0008",
	      "a --tokenizer gpt2 --num-key-value-heads 8");
	CHECK("a\0http://host:80/path@1\0hf_hub", "a http://host:80/path@1 hf_hub");
	CHECK("a\0--token\0--flag\0v", "a --token --flag v"); /* a switch, no value */
	CHECK("a\0\0b c", "a '' 'b c'");
}

static void test_cut(void **state)
{
	char line[8];

	(void)state;
	scrub_arguments("abcdefghijkl\0mn", 16, line, sizeof(line));
	assert_string_equal(line, "abcdefg");
	scrub_arguments("no end", 6, line, sizeof(line));
	assert_string_equal(line, "'no end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_no_secrets),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
