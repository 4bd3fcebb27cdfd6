/* SPDX-License-Identifier: Apache-2.0 */
/* Protects what a stack is called in every run, and that its detail has the line of the program that asked. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "breakdown_scene.h"
#include "skip.h"

/* The only part of a run that has one stack: its name. */
static const char *stack_name(struct names *names, uint32_t stack, char *ret_name, size_t size)
{
	struct load_part part = {LOAD_PEAK_HOST, LOAD_PART_STACK, stack, {MIB, MIB}};
	struct model model = {.names = names, .load_parts = &part, .load_part_count = 1};
	struct breakdown breakdown = made((const struct model *[]){&model}, 1);

	assert_int_equal(breakdown.count, 1);
	assert_int_equal(breakdown.parts[0].metric, METRIC_HOST);
	assert_int_equal(breakdown.parts[0].kind, PART_STACK);
	snprintf(ret_name, size, "%s", breakdown.parts[0].name);
	breakdown_release(&breakdown);
	return ret_name;
}

#define NAME_OF(names, stack) stack_name(names, stack, (char[2000]){0}, 2000)

static void test_native_stacks(void **state)
{
	static const char *const plain[] = {"fill", "load_all", "main"};
	static const char *const unnamed[] = {NULL, NULL, "main"};
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	play_native(names, 3, 0x10000, plain, 3);
	play_native(names, 900, 0x7f0000000000, plain, 3);
	play_native(names, 6, 0x30000, unnamed, 3);
	assert_string_equal(NAME_OF(names, 3), "fill < load_all < main");
	assert_string_equal(NAME_OF(names, 900), "fill < load_all < main");
	/* How many frames of a module without names there are is nobody's business. */
	assert_string_equal(NAME_OF(names, 6), "libload.so.3 < main");
	assert_string_equal(NAME_OF(names, 0), "(unknown stack)");
	assert_string_equal(NAME_OF(names, 77), "(unknown stack)");
	names_free(names);
}

/* No arguments, no hash, no copy of the compiler's. */
static void test_mangled_stacks(void **state)
{
	static const char *const cpp[] = {"_ZN2at6native5cloneIfEEvRKNS_6TensorE",
	                                  "_ZN10tokenizers4load17h0123456789abcdefE", "worker.constprop.0"};
	struct names *names;

	(void)state;
	if (!dlopen("libstdc++.so.6", RTLD_LAZY))
		skip_because("no libstdc++ to demangle with");
	assert_int_equal(names_create(&names), 0);
	play_native(names, 5, 0x20000, cpp, 3);
	assert_null(strstr(NAME_OF(names, 5), "Tensor"));
	assert_null(strstr(NAME_OF(names, 5), "0123456789abcdef"));
	assert_null(strstr(NAME_OF(names, 5), "float"));
	assert_non_null(strstr(NAME_OF(names, 5), "< worker"));
	assert_null(strstr(NAME_OF(names, 5), "constprop"));
	names_free(names);
}

static void test_python_stacks(void **state)
{
	static const char *const native[] = {"mmap64", "THPStorage_new"};
	static const char *const codes[] = {"Loader.load_file /x/site-packages/safetensors/torch.py",
	                                    "Thread.run /usr/lib/python3.11/threading.py",
	                                    "_run <frozen runpy>", "main.<locals>.go /home/me/train.py",
	                                    "<module> <string>"};
	static const char *const moved[] = {"Loader.load_file /elsewhere/site-packages/safetensors/torch.py",
	                                    "main.<locals>.go train.py", "<module> <string>"};
	const char *wanted = "Loader.load_file < main.<locals>.go < <module>";
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	play_native(names, 1, 0x10000, native, 2);
	play_python(names, 1, 10, 100, codes, 5);
	play_native(names, 2, 0x90000, native, 1);
	play_python(names, 2, 50, 3000, moved, 3);
	/* Whatever line, number and place: the same functions. */
	assert_string_equal(NAME_OF(names, 1), wanted);
	assert_string_equal(NAME_OF(names, 2), wanted);
	names_free(names);
}

/* What a stack's detail is for is the line of the program that asked: it stays, whatever lies between. */
static void test_details_of_python_stacks(void **state)
{
	static const char *const native[] = {"cudaMalloc", "alloc_block"};
	static const char *const codes[] = {"warmup /x/site-packages/transformers/modeling.py",
	                                    "load /x/site-packages/transformers/modeling.py",
	                                    "read /usr/lib/python3.11/pathlib.py",
	                                    "a /x/site-packages/transformers/auto.py",
	                                    "b /x/site-packages/transformers/auto.py",
	                                    "main /home/me/train.py",
	                                    "<module> /home/me/train.py",
	                                    "_run_code <frozen runpy>"};
	struct load_part part = {LOAD_PEAK_HOST, LOAD_PART_STACK, 1, {MIB, MIB}};
	struct model model = {.load_parts = &part, .load_part_count = 1};
	struct breakdown breakdown;
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	model.names = names;
	play_native(names, 1, 0x10000, native, 2);
	play_python(names, 1, 10, 100, codes, 8);
	play_python(names, 2, 30, 100, codes + 5, 2);
	breakdown = made((const struct model *[]){&model}, 1);
	assert_string_equal(breakdown.parts[0].detail,
	                    "warmup (modeling.py:100) < load (modeling.py:101) < ... < "
	                    "<module> (train.py:106)");
	breakdown_release(&breakdown);
	part.which = 2;
	breakdown = made((const struct model *[]){&model}, 1);
	assert_string_equal(breakdown.parts[0].detail, "main (train.py:100) < <module> (train.py:101)");
	breakdown_release(&breakdown);
	names_free(names);
}

/* The program's own outermost line, though a library called it. */
static void test_details_of_a_called_program(void **state)
{
	static const char *const codes[] = {"load /x/site-packages/lib/io.py", "fixture /home/me/test_x.py",
	                                    "run /x/site-packages/lib/run.py"};
	struct load_part part = {LOAD_PEAK_HOST, LOAD_PART_STACK, 1, {MIB, MIB}};
	struct model model = {.load_parts = &part, .load_part_count = 1};
	struct breakdown breakdown;
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	model.names = names;
	play_text(names, RECORD(package), "lib 1.0 /x/site-packages/lib");
	play_python(names, 1, 10, 100, codes, 3);
	breakdown = made((const struct model *[]){&model}, 1);
	assert_string_equal(breakdown.parts[0].detail,
	                    "load (lib 1.0, io.py:100) < fixture (test_x.py:101) < ...");
	breakdown_release(&breakdown);
	names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_native_stacks),
		cmocka_unit_test(test_mangled_stacks),
		cmocka_unit_test(test_python_stacks),
		cmocka_unit_test(test_details_of_python_stacks),
		cmocka_unit_test(test_details_of_a_called_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
