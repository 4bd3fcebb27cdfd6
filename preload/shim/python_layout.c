/* SPDX-License-Identifier: Apache-2.0 */
#include "python_layout.h"

#include <stddef.h>
#include <string.h>

#include "banned.h"

#define MINOR(version) ((version) >> 16 & 0xFFFF) /* 0x030b: 3.11 */

#define COOKIE        "xdebugpy"
#define OFFSET_MOST   (1u << 20) /* no structure is larger */
#define WORD_VERSION  1
#define WORD_THREADED 2

/* Behind the last field of a code object that the interpreter's own table names. */
#define VERSION_BEFORE_NAMES   4  /* uint32_t co_version; PyObject *co_localsplusnames */
#define TRACEABLE_BEFORE_BYTES 16 /* int _co_firsttraceable; void *co_extra; char co_code_adaptive[] */

/* Include/internal/pycore_*.h and cpython/code.h of the version. */
static const struct fixed {
	uint32_t minor;
	struct python_layout layout;
} fixed[] = {
	{0x030b,
         {
		 .interpreters = 40,
		 .interpreter_next = 0,
		 .threads = 16,
		 .thread_next = 8,
		 .thread_id = 152,
		 .native_id = 160,
		 .thread_frame = 56,
		 .cframe_frame = 8,
		 .frame_previous = 48,
		 .frame_code = 32,
		 .frame_instruction = 56,
		 .frame_owner = 69,
		 .own_frames = 3,
		 .code_file = 112,
		 .code_name = 128,
		 .code_lines = 136,
		 .code_first_line = 72,
		 .code_traceable = 168,
		 .code_bytes = 184,
		 .code_version = PYTHON_NONE,
		 .text_ascii = 48,
		 .text_others = 72,
	 }},
	{0x030c,
         {
		 .interpreters = 40,
		 .interpreter_next = 0,
		 .threads = 72,
		 .thread_next = 8,
		 .thread_id = 136,
		 .native_id = 144,
		 .thread_frame = 56,
		 .cframe_frame = 0,
		 .frame_previous = 8,
		 .frame_code = 0,
		 .frame_instruction = 56,
		 .frame_owner = 70,
		 .own_frames = 3,
		 .code_file = 112,
		 .code_name = 128,
		 .code_lines = 136,
		 .code_first_line = 68,
		 .code_traceable = 176,
		 .code_bytes = 192,
		 .code_version = 92,
		 .text_ascii = 40,
		 .text_others = 56,
	 }},
};

#define AT(field) offsetof(struct python_layout, field)

/* Which word of _Py_DebugOffsets is which field; the cookie is word 0. */
static const struct told {
	uint32_t minor;
	struct {
		uint16_t word, field;
	} row[19];
} told[] = {
	{0x030d,
         {{5, AT(interpreters)},
          {8, AT(interpreter_next)},
          {9, AT(threads)},
          {21, AT(thread_next)},
          {23, AT(thread_frame)},
          {24, AT(thread_id)},
          {25, AT(native_id)},
          {29, AT(frame_previous)},
          {30, AT(frame_code)},
          {31, AT(frame_instruction)},
          {33, AT(frame_owner)},
          {35, AT(code_file)},
          {37, AT(code_name)},
          {38, AT(code_lines)},
          {39, AT(code_first_line)},
          {41, AT(code_version)},
          {43, AT(code_bytes)},
          {43, AT(code_traceable)},
          {70, AT(text_ascii)}}},
	{0x030e,
         {{5, AT(interpreters)},
          {8, AT(interpreter_next)},
          {9, AT(threads)},
          {24, AT(thread_next)},
          {26, AT(thread_frame)},
          {27, AT(thread_id)},
          {28, AT(native_id)},
          {32, AT(frame_previous)},
          {33, AT(frame_code)},
          {34, AT(frame_instruction)},
          {36, AT(frame_owner)},
          {40, AT(code_file)},
          {42, AT(code_name)},
          {43, AT(code_lines)},
          {44, AT(code_first_line)},
          {46, AT(code_version)},
          {48, AT(code_bytes)},
          {48, AT(code_traceable)},
          {80, AT(text_ascii)}}},
};

/* What the readers rely on: the last field of a structure is the last, and a thread's state has room where it is read. */
static bool in_order(const struct python_layout *layout)
{
	const uint32_t word = sizeof(uint64_t);

	return layout->threads >= word && layout->native_id <= PYTHON_STATE_MOST - word &&
	       layout->thread_next <= layout->native_id && layout->thread_id <= layout->native_id &&
	       layout->thread_frame <= layout->native_id &&
	       layout->frame_previous <= layout->frame_owner - word &&
	       layout->frame_code <= layout->frame_owner - word && layout->frame_owner >= word &&
	       layout->frame_instruction <= layout->frame_owner - word &&
	       layout->code_file <= layout->code_bytes - word &&
	       layout->code_name <= layout->code_bytes - word &&
	       layout->code_lines <= layout->code_bytes - word &&
	       layout->code_first_line <= layout->code_bytes - word &&
	       layout->code_version <= layout->code_bytes - word;
}

/* What is derived: the fields beside those that the interpreter names. */
static bool derive(struct python_layout *layout)
{
	if (layout->code_version < VERSION_BEFORE_NAMES || layout->code_bytes < TRACEABLE_BEFORE_BYTES)
		return false;
	layout->code_version -= VERSION_BEFORE_NAMES;
	layout->code_traceable -= TRACEABLE_BEFORE_BYTES;
	layout->text_others = layout->text_ascii + 16; /* utf8_length, utf8 */
	layout->cframe_frame = PYTHON_NONE;
	layout->own_frames = 3; /* 3.13: the C stack; 3.14: the interpreter, the C stack */
	return true;
}

static enum python_support layout_told(const struct told *from, const uint64_t *debug,
                                       struct python_layout *ret_layout)
{
	struct python_layout layout = {0};

	if (memcmp(debug, COOKIE, sizeof(*debug)) != 0 || MINOR(debug[WORD_VERSION]) != from->minor)
		return PYTHON_STRANGE;
	if (debug[WORD_THREADED])
		return PYTHON_FREE_THREADED;
	for (size_t i = 0; i < sizeof(from->row) / sizeof(from->row[0]); i++) {
		uint64_t offset = debug[from->row[i].word];

		if (offset >= OFFSET_MOST)
			return PYTHON_STRANGE;
		*(uint32_t *)((char *)&layout + from->row[i].field) = (uint32_t)offset;
	}
	if (!derive(&layout) || !in_order(&layout))
		return PYTHON_STRANGE;
	*ret_layout = layout;
	return PYTHON_KNOWN;
}

enum python_support python_layout_find(uint64_t version, const uint64_t *debug,
                                       struct python_layout *ret_layout)
{
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].minor == MINOR(version)) {
			*ret_layout = fixed[i].layout;
			return PYTHON_KNOWN;
		}
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (told[i].minor == MINOR(version))
			return layout_told(&told[i], debug, ret_layout);
	return PYTHON_UNKNOWN_VERSION;
}
