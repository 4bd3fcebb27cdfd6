/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects where things are looked for in CPython's structures: the table of 3.11 against the headers of the Python that
 * is installed; that of 3.12 against where a real 3.12.12 was seen to keep the identifiers of its threads; and what 3.13
 * and 3.14 say of themselves, as it stood in the files of real interpreters (3.13.9 and 3.14.0 for x86_64, out of the
 * wheels of panda3d 1.10.16).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "preload/shim/python_layout.h"
#include "tests/unit/skip.h"

#if __has_include(<internal/pycore_frame.h>)
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif

static const uint64_t debug_3_13[PYTHON_DEBUG_WORDS] = {
	0,    0x30d09f0, 0,    283376, 608, 632, 194976, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16,
	7752, 0,         7768, 7760,   304, 0,   8,      16,   72,   152,  160,  232,  32,   80,   8,
	0,    56,        72,   70,     208, 112, 120,    128,  136,  68,   52,   96,   104,  200,  16,
	8,    416,       24,   88,     168, 32,  24,     16,   40,   24,   16,   48,   32,   40,   24,
	16,   32,        16,   24,     40,  16,  32,     64,   32,   16,   40,   240,  200};
static const uint64_t debug_3_14[PYTHON_DEBUG_WORDS] = {
	0,    0x30e00f0, 0,    316536, 784,  808,  225808, 7280, 7272, 7344, 7360, 7408, 7664, 7648,
	7656, 16,        7760, 0,      7776, 7768, 7968,   0,    824,  0,    8,    16,   72,   152,
	160,  232,       32,   88,     8,    0,    56,     80,   74,   64,   0,    216,  112,  120,
	128,  136,       68,   52,     96,   104,  208,    0,    16,   8,    416,  24,   88,   168,
	40,   32,        16,   40,     24,   16,   200,    24,   40,   32,   48,   32,   40,   24,
	16,   32,        16,   24,     40,   16,   32,     64,   32,   16,   40,   240,  192};

static enum python_support find_told(const uint64_t *words, struct python_layout *ret_layout)
{
	uint64_t debug[PYTHON_DEBUG_WORDS];

	memcpy(debug, words, sizeof(debug));
	memcpy(debug, "xdebugpy", 8);
	return python_layout_find(words[1], debug, ret_layout);
}

static void the_table_is_that_of_the_headers(void **state)
{
	(void)state;
#if defined(PY_VERSION_HEX) && PY_VERSION_HEX >> 16 == 0x030b
	struct python_layout found;

	assert_int_equal(python_layout_find(PY_VERSION_HEX, NULL, &found), PYTHON_KNOWN);
	assert_int_equal(found.interpreters, offsetof(_PyRuntimeState, interpreters.head));
	assert_int_equal(found.interpreter_next, offsetof(PyInterpreterState, next));
	assert_int_equal(found.threads, offsetof(PyInterpreterState, threads.head));
	assert_int_equal(found.threads - 8, offsetof(PyInterpreterState, threads.next_unique_id));
	assert_int_equal(found.thread_next, offsetof(PyThreadState, next));
	assert_int_equal(found.thread_id, offsetof(PyThreadState, thread_id));
	assert_int_equal(found.native_id, offsetof(PyThreadState, native_thread_id));
	assert_int_equal(found.thread_frame, offsetof(PyThreadState, cframe));
	assert_int_equal(found.cframe_frame, offsetof(_PyCFrame, current_frame));
	assert_int_equal(found.frame_previous, offsetof(_PyInterpreterFrame, previous));
	assert_int_equal(found.frame_code, offsetof(_PyInterpreterFrame, f_code));
	assert_int_equal(found.frame_instruction, offsetof(_PyInterpreterFrame, prev_instr));
	assert_int_equal(found.frame_owner, offsetof(_PyInterpreterFrame, owner));
	assert_int_equal(PYTHON_GENERATOR, FRAME_OWNED_BY_GENERATOR);
	assert_int_equal(found.code_file, offsetof(PyCodeObject, co_filename));
	assert_int_equal(found.code_name, offsetof(PyCodeObject, co_qualname));
	assert_int_equal(found.code_lines, offsetof(PyCodeObject, co_linetable));
	assert_int_equal(found.code_first_line, offsetof(PyCodeObject, co_firstlineno));
	assert_int_equal(found.code_traceable, offsetof(PyCodeObject, _co_firsttraceable));
	assert_int_equal(found.code_bytes, offsetof(PyCodeObject, co_code_adaptive));
	assert_int_equal(found.text_ascii, sizeof(PyASCIIObject));
	assert_int_equal(found.text_others, sizeof(PyCompactUnicodeObject));
	assert_int_equal(PYTHON_OBJECT_TYPE, offsetof(PyObject, ob_type));
	assert_int_equal(PYTHON_OBJECT_SIZE, offsetof(PyVarObject, ob_size));
	assert_int_equal(PYTHON_BYTES, offsetof(PyBytesObject, ob_sval));
	assert_int_equal(PYTHON_TEXT_LENGTH, offsetof(PyASCIIObject, length));
	assert_int_equal(PYTHON_TEXT_STATE, offsetof(PyASCIIObject, state));
#else
	skip_because("no internal headers of Python 3.11 (libpython3.11-dev)");
#endif
}

/* Found by searching the interpreter's memory for pthread_self() and the kernel's thread id, not in headers. */
static void the_table_of_3_12_is_what_was_seen(void **state)
{
	struct python_layout found;

	(void)state;
	assert_int_equal(python_layout_find(0x030c0cf0, NULL, &found), PYTHON_KNOWN);
	assert_int_equal(found.interpreters, 40);
	assert_int_equal(found.threads, 72);
	assert_int_equal(found.thread_id, 136);
	assert_int_equal(found.native_id, 144);
	assert_int_equal(found.text_ascii, 40);
	assert_int_equal(found.text_others, 56);
}

static void newer_ones_say_it_themselves(void **state)
{
	struct python_layout old, found;

	(void)state;
	assert_int_equal(find_told(debug_3_13, &old), PYTHON_KNOWN);
	assert_int_equal(old.interpreters, 632);
	assert_int_equal(old.threads, 7344);
	assert_int_equal(old.thread_frame, 72);
	assert_int_equal(old.native_id, 160);
	assert_int_equal(old.cframe_frame, PYTHON_NONE);
	assert_int_equal(old.frame_instruction, 56);
	assert_int_equal(old.frame_owner, 70);
	assert_int_equal(old.code_lines, 136);
	assert_int_equal(old.code_version, 92);
	assert_int_equal(old.code_bytes, 200);
	assert_int_equal(old.code_traceable, 184);
	assert_int_equal(old.text_ascii, 40);
	assert_int_equal(old.text_others, 56);
	assert_int_equal(find_told(debug_3_14, &found), PYTHON_KNOWN);
	assert_int_equal(found.interpreters, 808);
	assert_int_equal(found.frame_owner, 74);
	assert_int_equal(found.code_file, 112);
	assert_int_equal(found.code_name, 128);
	assert_int_equal(found.code_lines, 136);
	assert_int_equal(found.code_first_line, 68);
	assert_int_equal(found.code_bytes, 208);
	assert_int_equal(found.text_ascii, 40);
}

static void what_is_not_known_is_refused(void **state)
{
	uint64_t debug[PYTHON_DEBUG_WORDS];
	struct python_layout found;

	(void)state;
	memcpy(debug, debug_3_14, sizeof(debug));
	assert_int_equal(python_layout_find(0, debug, &found), PYTHON_UNKNOWN_VERSION);
	assert_int_equal(python_layout_find(0x030f00f0, debug, &found), PYTHON_UNKNOWN_VERSION);
	assert_int_equal(python_layout_find(debug[1], debug, &found),
	                 PYTHON_STRANGE); /* without the cookie */
	memcpy(debug, "xdebugpy", 8);
	assert_int_equal(python_layout_find(0x030d00f0, debug, &found), PYTHON_STRANGE);
	debug[48] = UINT64_C(1) << 40;
	assert_int_equal(python_layout_find(debug[1], debug, &found), PYTHON_STRANGE);
	debug[48] = debug_3_14[48];
	debug[28] = 600; /* a thread's state is read into less than that */
	assert_int_equal(python_layout_find(debug[1], debug, &found), PYTHON_STRANGE);
	debug[28] = debug_3_14[28];
	debug[36] = 8; /* frames that end before their fields */
	assert_int_equal(python_layout_find(debug[1], debug, &found), PYTHON_STRANGE);
	debug[36] = debug_3_14[36];
	assert_int_equal(python_layout_find(debug[1], debug, &found), PYTHON_KNOWN);
	debug[48] = 8; /* code before its own fields */
	assert_int_equal(python_layout_find(debug[1], debug, &found), PYTHON_STRANGE);
	debug[2] = 1;
	assert_int_equal(python_layout_find(debug[1], debug, &found), PYTHON_FREE_THREADED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_that_of_the_headers),
		cmocka_unit_test(the_table_of_3_12_is_what_was_seen),
		cmocka_unit_test(newer_ones_say_it_themselves),
		cmocka_unit_test(what_is_not_known_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
