/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/when.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

#include <sparktrace/format.h>

#define SECOND 1000000000.0

const char *const when_words[WHEN_WORD_COUNT] = {
#define W(name, word) word,
	WHEN_WORDS(W)
#undef W
};

static int parse_word(const char *text, struct when *ret_when)
{
	for (int i = 0; i < WHEN_WORD_COUNT; i++)
		if (!strcmp(when_words[i], text)) {
			*ret_when = (struct when){WHEN_WORD, (uint64_t)i};
			return 0;
		}
	return -EINVAL;
}

/* HH:MM:SS with a fraction, or without seconds. */
static int parse_clock(const char *text, struct when *ret_when)
{
	unsigned hours, minutes;
	double seconds = 0;
	int used = 0, whole = 0;

	if (sscanf(text, "%2u:%2u%n", &hours, &minutes, &used) != 2 || !used)
		return -EINVAL;
	if (text[used] == ':' && sscanf(text + used, ":%lf%n", &seconds, &whole) != 1)
		return -EINVAL;
	if (text[used + whole] || hours > 23 || minutes > 59 || !(seconds >= 0 && seconds < 61))
		return -EINVAL;
	*ret_when = (struct when){WHEN_CLOCK, (uint64_t)(hours * 60 + minutes) * 60 * 1000000000 +
	                                              (uint64_t)llround(seconds * SECOND)};
	return 0;
}

int when_parse(const char *text, struct when *ret_when)
{
	size_t length = strlen(text);
	uint64_t ns;

	if (!parse_word(text, ret_when) || !parse_clock(text, ret_when))
		return 0;
	if (!length || (text[length - 1] >= '0' && text[length - 1] <= '9') || time_parse(text, &ns) ||
	    ns == ST_UNKNOWN)
		return -EINVAL;
	*ret_when = (struct when){WHEN_SINCE, ns};
	return 0;
}
