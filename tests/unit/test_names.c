/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the names in stacks: a trace must explain itself on another machine, and never name the wrong library. */
#include <analyzer/names.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "records.h"

static void play(struct names *names, const struct st_record *record)
{
	assert_int_equal(names_record(names, record), 0);
}

static void play_module(struct names *names, uint64_t start, uint64_t end, const char *path)
{
	play(names,
	     record_tail(RECORD(module, .start = start, .end = end, .offset = 0x1000), path, strlen(path)));
}

static void test_names(void **state)
{
	const uint64_t stack[] = {0x5010, 0x6000, 0x9999};
	struct names *names;
	struct frame frame;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	play(names, record_tail(RECORD(stack, .id = 3, .flags = 1u << ST_STACK_CUT), stack, sizeof(stack)));
	play(names, record_tail(RECORD(stack, .id = UINT64_MAX), stack, sizeof(stack)));
	play_module(names, 0x5000, 0x6000, "/lib/libfirst.so");
	play_module(names, 0x6000, 0x7000, "/lib/libsecond.so");
	play(names, record_tail(RECORD(symbol, .address = 0x5010, .offset = 0x10), "load", 4));
	play(names, record_tail(RECORD(thread, .tid = 77), "loader", 6));
	assert_int_equal(names_depth(names, 3), 3);
	assert_int_equal(names_depth(names, 2), 0);
	assert_int_equal(names_depth(names, 4000000), 0);
	assert_true(names_stack_is_cut(names, 3));
	frame = names_frame(names, 3, 0);
	assert_string_equal(frame.function, "load");
	assert_int_equal(frame.offset, 0x10);
	assert_string_equal(frame.module, "/lib/libfirst.so");
	frame = names_frame(names, 3,
	                    1); /* returns behind the last byte of the first: the call was in there */
	assert_string_equal(frame.module, "/lib/libfirst.so");
	assert_null(frame.function);
	assert_int_equal(frame.offset, 0x2000);
	assert_null(names_frame(names, 3, 2).module);
	assert_string_equal(names_thread(names, 77), "loader");
	assert_null(names_thread(names, 78));
	/* Another library came to lie where the first one was. */
	play_module(names, 0x4000, 0x5800, "/lib/libthird.so");
	assert_string_equal(names_frame(names, 3, 0).module, "/lib/libthird.so");
	assert_string_equal(names_frame(names, 3, 1).module, "/lib/libfirst.so");
	names_free(names);
}

static void play_text(struct names *names, const struct st_record *record, const char *text)
{
	play(names, record_tail(record, text, strlen(text)));
}

static void test_python(void **state)
{
	const uint64_t frames[] = {UINT64_C(7) << 32 | 321, UINT64_C(8) << 32, UINT64_C(99) << 32 | 5};
	const uint64_t others[] = {UINT64_C(7) << 32 | 1};
	struct python_frame frame;
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	play_text(names, RECORD(code, .id = 7, .line = 300), "Loader.load_file /x y/torch.py");
	play_text(names, RECORD(code, .id = 7, .line = 1), "other /other.py"); /* the first one holds */
	play_text(names, RECORD(code, .id = 8, .line = 1), "nothing-else");
	play_text(names, RECORD(code, .id = 0, .line = 1), "none /none.py");
	play_text(names, RECORD(code, .id = UINT64_MAX, .line = 1), "none /none.py");
	play(names,
	     record_tail(RECORD(frames, .id = 3, .flags = 1u << ST_STACK_CUT), frames, sizeof(frames)));
	play(names, record_tail(RECORD(frames, .id = 3), others, sizeof(others)));
	play(names, record_tail(RECORD(frames, .id = UINT64_MAX), others, sizeof(others)));
	play(names, record_tail(RECORD(frames, .id = 4), NULL, 0));
	assert_int_equal(names_python_depth(names, 3), 3);
	assert_int_equal(names_python_depth(names, 4), 0);
	assert_int_equal(names_python_depth(names, UINT32_MAX), 0);
	assert_true(names_python_is_cut(names, 3));
	frame = names_python_frame(names, 3, 0);
	assert_string_equal(frame.function, "Loader.load_file");
	assert_string_equal(frame.file, "/x y/torch.py");
	assert_int_equal(frame.line, 321);
	assert_int_equal(frame.first_line, 300);
	frame = names_python_frame(names, 3, 1);
	assert_string_equal(frame.function, "nothing-else");
	assert_null(frame.file);
	assert_int_equal(frame.line, 0);
	assert_null(names_python_frame(names, 3, 2).function); /* its definition was lost */
	names_free(names);
}

static const char *owner(const struct names *names, const char *path)
{
	const struct package *package = names_package(names, path);

	return package ? package->version : "none";
}

static void test_packages(void **state)
{
	static const char *const wrong[] = {"",   "name",     "name 1", "name 1 relative/folder",
	                                    "  ", "name  /x", "/a"};
	char *endless = malloc(60000);
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		play_text(names, RECORD(package, ), wrong[i]);
	play_text(names, RECORD(package, ), "torch 2.15.0 /s p/torch");
	play_text(names, RECORD(package, ), "torch 9 /s p/torch"); /* the first one holds */
	play_text(names, RECORD(package, ), "inner 3 /s p/torch/deep/inner");
	play_text(names, RECORD(package, ), "single 4 /s p/six.py");
	assert_string_equal(owner(names, "/s p/torch/lib/libtorch.so"), "2.15.0");
	assert_string_equal(owner(names, "/s p/torch"), "2.15.0");
	assert_string_equal(owner(names, "/s p/torch/deep/inner/x.py"), "3");
	assert_string_equal(owner(names, "/s p/torch/deep/x.py"), "2.15.0");
	assert_string_equal(owner(names, "/s p/torchvision/x.py"), "none");
	assert_string_equal(owner(names, "/s p/six.py"), "4");
	assert_string_equal(owner(names, "/s p/six.pyx"), "none");
	assert_string_equal(owner(names, "/s p"), "none");
	assert_string_equal(owner(names, ""), "none");
	assert_string_equal(owner(names, NULL), "none");
	memset(endless, '/', 60000);
	endless[59999] = 0;
	assert_string_equal(owner(names, endless), "none");
	free(endless);
	names_free(names);
}

/* A frame has its file's package, also when the package was noted after somebody had asked. */
static void test_package_of_frame(void **state)
{
	const uint64_t stack[] = {0x5010}, frames[] = {UINT64_C(7) << 32 | 12};
	struct names *names;

	(void)state;
	assert_int_equal(names_create(&names), 0);
	play(names, record_tail(RECORD(stack, .id = 3), stack, sizeof(stack)));
	play(names, record_tail(RECORD(frames, .id = 3), frames, sizeof(frames)));
	play_module(names, 0x5000, 0x6000, "/s p/torch/lib/libtorch.so");
	play_text(names, RECORD(code, .id = 7), "load /s p/torch/serialization.py");
	assert_null(names_frame(names, 3, 0).package);
	assert_null(names_python_frame(names, 3, 0).package);
	play_text(names, RECORD(package, ), "torch 2.15.0 /s p/torch");
	assert_string_equal(names_frame(names, 3, 0).package->name, "torch");
	assert_string_equal(names_python_frame(names, 3, 0).package->version, "2.15.0");
	names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_python),
	                                   cmocka_unit_test(test_package_of_frame),
	                                   cmocka_unit_test(test_packages)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
