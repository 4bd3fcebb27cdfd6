/* SPDX-License-Identifier: Apache-2.0 */
/* A moment of a run as people name it on the command line: "12.5s", "14:03:07", "load-peak". */
#ifndef SPARKTRACE_WHEN_H
#define SPARKTRACE_WHEN_H

#include <stdint.h>

enum when_kind {
	WHEN_NONE,
	WHEN_SINCE, /* ns since the program's start */
	WHEN_CLOCK, /* ns since midnight, in the time zone of the machine that recorded */
	WHEN_WORD   /* enum when_word */
};

/* clang-format off */
/* W(NAME, word) */
#define WHEN_WORDS(W) \
	W(START, "start") W(FIRST_WEIGHT, "first-weight") W(LOAD_PEAK, "load-peak") W(LAST_WEIGHT, "last-weight") \
	W(SETTLED, "settled") W(STEPS_PEAK, "steps-peak") W(PEAK, "peak") W(RESIDENT_PEAK, "resident-peak") \
	W(FAILURE, "failure") W(END, "end")

enum when_word {
#define W(name, word) WHEN_##name,
	WHEN_WORDS(W)
#undef W
	WHEN_WORD_COUNT
};
/* clang-format on */

struct when {
	enum when_kind kind;
	uint64_t value;
};

extern const char *const when_words[WHEN_WORD_COUNT];

/* 0 or -EINVAL. A number alone is no time: it needs its unit. */
int when_parse(const char *text, struct when *ret_when);

#endif
