/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks with their names, and what is made of them. After cmocka.h. */
#ifndef SPARKTRACE_TEST_BREAKDOWN_SCENE_H
#define SPARKTRACE_TEST_BREAKDOWN_SCENE_H

#include <analyzer/breakdown.h>
#include <analyzer/model.h>
#include <analyzer/names.h>
#include "records.h"

static inline void play(struct names *names, const struct st_record *record)
{
	assert_int_equal(names_record(names, record), 0);
}

static inline void play_text(struct names *names, const struct st_record *record, const char *text)
{
	play(names, record_tail(record, text, strlen(text)));
}

/* Native frames of a stack, innermost first, at `base`; a NULL function: only its module is known. */
static inline void play_native(struct names *names, uint32_t stack, uint64_t base,
                               const char *const *functions, size_t count)
{
	uint64_t addresses[16];

	for (size_t i = 0; i < count; i++) {
		addresses[i] = base + 16 * (i + 1);
		if (functions[i])
			play_text(names, RECORD(symbol, .address = addresses[i], .offset = 4), functions[i]);
	}
	play(names, record_tail(RECORD(stack, .id = stack), addresses, count * sizeof(*addresses)));
	play_text(names, RECORD(module, .start = base, .end = base + 0x1000), "/lib/libload.so.3");
}

/* Python frames of a stack, innermost first: "function file". Codes are numbered from `first`. */
static inline void play_python(struct names *names, uint32_t stack, uint64_t first, uint64_t line,
                               const char *const *codes, size_t count)
{
	uint64_t frames[16];

	for (size_t i = 0; i < count; i++) {
		play_text(names, RECORD(code, .id = first + i, .line = 1), codes[i]);
		frames[i] = (first + i) << 32 | (line + i);
	}
	play(names, record_tail(RECORD(frames, .id = stack), frames, count * sizeof(*frames)));
}

static inline struct breakdown made(const struct model *const *models, size_t count)
{
	struct breakdown breakdown;

	assert_int_equal(breakdown_make(models, count, &breakdown), 0);
	return breakdown;
}

static inline void assert_part(const struct breakdown *breakdown, enum metric metric, enum part_kind kind,
                               const char *name, uint64_t bytes)
{
	const struct part *part = breakdown_find(breakdown, metric, kind, name);

	if (!part)
		fail_msg("no part \"%s\"", name);
	assert_int_equal(part->bytes.lo, bytes);
	assert_int_equal(part->bytes.hi, bytes);
}

#endif
