/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/version.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* What may follow the release, oldest first; SUFFIX_NONE stands for the release itself. */
enum suffix { SUFFIX_DEV, SUFFIX_ALPHA, SUFFIX_BETA, SUFFIX_RC, SUFFIX_NONE, SUFFIX_POST };

static const struct {
	const char *text;
	enum suffix suffix;
} suffixes[] = {
	{"dev", SUFFIX_DEV}, {"alpha", SUFFIX_ALPHA}, {"a", SUFFIX_ALPHA},  {"beta", SUFFIX_BETA},
	{"b", SUFFIX_BETA},  {"preview", SUFFIX_RC},  {"pre", SUFFIX_RC},   {"rc", SUFFIX_RC},
	{"c", SUFFIX_RC},    {"post", SUFFIX_POST},   {"rev", SUFFIX_POST}, {"r", SUFFIX_POST},
};

/* Of digits that no version has the value stops at the largest number. */
static uint64_t take_number(const char **at)
{
	uint64_t number = 0;

	for (; isdigit((unsigned char)**at); ++*at)
		number = number > UINT64_MAX / 10 - 1 ? UINT64_MAX : number * 10 + (uint64_t)(**at - '0');
	return number;
}

static bool is_separator(char c)
{
	return c == '.' || c == '-' || c == '_';
}

/* An epoch, as in 1!2.0. */
static uint64_t take_epoch(const char **at)
{
	const char *next = *at;
	uint64_t epoch;

	if (*next == 'v' || *next == 'V')
		next = ++*at;
	epoch = take_number(&next);
	if (*next != '!')
		return 0;
	*at = next + 1;
	return epoch;
}

/* The next number of the release, 0 behind its end: 1.0 is 1.0.0. */
static uint64_t take_release(const char **at)
{
	const char *next = *at + (**at == '.');

	if (!isdigit((unsigned char)*next))
		return 0;
	*at = next;
	return take_number(at);
}

static bool release_goes_on(const char *at)
{
	return isdigit((unsigned char)at[at[0] == '.']);
}

/* The next of rc1, post2, dev3 and the like: SUFFIX_NONE at the end, and before anything unheard of. */
static enum suffix take_suffix(const char **at, uint64_t *ret_number)
{
	const char *next = *at + is_separator(**at);

	*ret_number = 0;
	for (unsigned i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t length = strlen(suffixes[i].text);

		if (strncasecmp(next, suffixes[i].text, length) != 0)
			continue;
		next += length;
		next += is_separator(*next) && isdigit((unsigned char)next[1]);
		*ret_number = take_number(&next);
		*at = next;
		return suffixes[i].suffix;
	}
	return SUFFIX_NONE;
}

static int numbers_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int version_compare(const char *a, const char *b)
{
	int order = numbers_compare(take_epoch(&a), take_epoch(&b));

	while (!order && (release_goes_on(a) || release_goes_on(b)))
		order = numbers_compare(take_release(&a), take_release(&b));
	while (!order) {
		uint64_t x, y;
		enum suffix left = take_suffix(&a, &x), right = take_suffix(&b, &y);

		order = numbers_compare(left, right);
		order = order ? order : numbers_compare(x, y);
		if (left == SUFFIX_NONE && right == SUFFIX_NONE)
			break;
	}
	return order;
}
