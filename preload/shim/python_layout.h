/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things lie in the structures of CPython 3.11 to 3.14.
 *
 * 3.11 and 3.12: a table, as the internal headers of these versions have it, which no longer change. From 3.13 on the
 * interpreter carries a table of its own at the beginning of _PyRuntime (struct _Py_DebugOffsets, cookie "xdebugpy"),
 * whose form is another one in each minor version.
 */
#ifndef SPARKTRACE_SHIM_PYTHON_LAYOUT_H
#define SPARKTRACE_SHIM_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define PYTHON_NONE UINT32_MAX /* this version has no such thing */

/* 64-bit words of _Py_DebugOffsets that are looked at, the cookie first. */
#define PYTHON_DEBUG_WORDS 96

/* Bytes of a PyThreadState that are looked at, at most. */
#define PYTHON_STATE_MOST 512

/* Offsets in bytes. */
struct python_layout {
	uint32_t interpreters;              /* _PyRuntimeState: the first interpreter */
	uint32_t interpreter_next, threads; /* PyInterpreterState; before threads: its count so far */
	uint32_t thread_next, thread_id, thread_frame; /* PyThreadState */
	uint32_t native_id;                            /* the last of these */
	uint32_t cframe_frame;                         /* thread_frame is a _PyCFrame *, and there: */
	uint32_t frame_previous, frame_code, frame_instruction; /* _PyInterpreterFrame */
	uint32_t frame_owner;                                   /* one byte, the last of these */
	uint32_t own_frames; /* an owner below this means a frame of Python code */
	uint32_t code_file, code_name, code_lines, code_first_line, code_traceable,
		code_bytes;               /* PyCodeObject */
	uint32_t code_version;            /* a number that no other code object ever had */
	uint32_t text_ascii, text_others; /* the characters of a compact PyUnicodeObject */
};

/* The same in all versions. */
enum {
	PYTHON_OBJECT_TYPE = 8,
	PYTHON_OBJECT_SIZE = 16, /* number of elements */
	PYTHON_BYTES = 32,       /* first byte of a bytes object */
	PYTHON_TEXT_LENGTH = 16,
	PYTHON_TEXT_STATE = 32,
	PYTHON_GENERATOR = 1, /* an owner of frames */
};

enum python_support { PYTHON_KNOWN, PYTHON_UNKNOWN_VERSION, PYTHON_FREE_THREADED, PYTHON_STRANGE };

/*
 * `version`: Py_Version (0x030b07f0); `debug`: the first words of _PyRuntime, looked at from 3.13 on.
 * STRANGE: what stands there cannot be right. Sets *ret_layout when KNOWN.
 */
enum python_support python_layout_find(uint64_t version, const uint64_t *debug,
                                       struct python_layout *ret_layout);

#endif
