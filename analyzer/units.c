/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* Largest first: the printer takes the first that fits exactly. Only those before "" are printed. */
static const struct unit size_units[] = {
	{"TiB", UINT64_C(1) << 40},
	{"GiB", UINT64_C(1) << 30},
	{"MiB", UINT64_C(1) << 20},
	{"KiB", UINT64_C(1) << 10},
	{"", 1},
	{"B", 1},
	{"T", UINT64_C(1) << 40},
	{"G", UINT64_C(1) << 30},
	{"M", UINT64_C(1) << 20},
	{"K", UINT64_C(1) << 10},
	{"TB", UINT64_C(1000000000000)},
	{"GB", 1000000000},
	{"MB", 1000000},
	{"kB", 1000},
	{"KB", 1000},
	{NULL, 0},
};

static const struct unit time_units[] = {
	{"s", 1000000000},
	{"ms", 1000000},
	{"us", 1000},
	{"", 1},
	{"ns", 1},
	{"min", UINT64_C(60000000000)},
	{"h", UINT64_C(3600000000000)},
	{NULL, 0},
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* Enough for every exact fraction of a TiB that anybody writes; further digits only round. */
#define FRACTION_DIGITS 18

/* A decimal number as whole part and fraction over a power of ten. */
struct decimal {
	uint64_t whole, part, scale;
};

static int parse_whole(const char **text, uint64_t *ret_whole)
{
	const char *at = *text;
	uint64_t whole = 0;

	if (!isdigit((unsigned char)*at))
		return -EINVAL;
	for (; isdigit((unsigned char)*at); at++)
		if (__builtin_mul_overflow(whole, 10u, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
			return -ERANGE;
	*text = at;
	*ret_whole = whole;
	return 0;
}

static int parse_decimal(const char **text, struct decimal *ret_decimal)
{
	struct decimal d = {.scale = 1};
	const char *at = *text;
	int error = parse_whole(&at, &d.whole);

	if (error)
		return error;
	if (*at == '.') {
		if (!isdigit((unsigned char)*++at))
			return -EINVAL;
		for (int digits = 0; isdigit((unsigned char)*at); at++, digits++)
			if (digits < FRACTION_DIGITS) {
				d.part = d.part * 10 + (uint64_t)(*at - '0');
				d.scale *= 10;
			}
	}
	*text = at;
	*ret_decimal = d;
	return 0;
}

static int scale_decimal(const struct decimal *d, uint64_t factor, uint64_t *ret_value)
{
	unsigned __int128 part = (unsigned __int128)d->part * factor;
	uint64_t value;

	if (__builtin_mul_overflow(d->whole, factor, &value) ||
	    __builtin_add_overflow(value, (uint64_t)((part + d->scale / 2) / d->scale), &value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static int parse_hex(const char *text, uint64_t *ret_value)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		const char *digit = strchr(digits, tolower((unsigned char)*text));

		if (!digit)
			return -EINVAL;
		if (value >> 60)
			return -ERANGE;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	*ret_value = value;
	return 0;
}

static int parse(const char *text, const struct unit *units, uint64_t *ret_value)
{
	struct decimal d;
	int error;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return parse_hex(text + 2, ret_value);
	error = parse_decimal(&text, &d);
	if (error)
		return error;
	if (*text == ' ')
		text++;
	for (; units->name; units++)
		if (!strcmp(units->name, text))
			break;
	/* A fraction without a unit would be a part of a byte or of a nanosecond. */
	if (!units->name || (!*units->name && d.scale > 1))
		return -EINVAL;
	return scale_decimal(&d, units->factor, ret_value);
}

int size_parse(const char *text, uint64_t *ret_bytes)
{
	return parse(text, size_units, ret_bytes);
}

int time_parse(const char *text, uint64_t *ret_ns)
{
	return parse(text, time_units, ret_ns);
}

int count_parse(const char *text, uint64_t *ret_count)
{
	return parse(text, no_units, ret_count);
}

/* Thousandths of the unit, when the value is a whole number of them, and not so many that nobody reads it. */
static int divide(uint64_t value, uint64_t factor, uint64_t *ret_whole, unsigned *ret_thousandths)
{
	unsigned __int128 rest = (unsigned __int128)(value % factor) * 1000;

	if (value < factor || rest % factor || (rest && value / factor >= 10000))
		return -ERANGE;
	*ret_whole = value / factor;
	*ret_thousandths = (unsigned)(rest / factor);
	return 0;
}

static char *print(uint64_t value, const struct unit *unit, char *text)
{
	uint64_t whole = value;
	unsigned part = 0;
	int length;

	while (*unit->name && divide(value, unit->factor, &whole, &part))
		unit++;
	if (!*unit->name)
		whole = value;
	length = snprintf(text, UNITS_TEXT, "%" PRIu64, whole);
	if (part) {
		length += snprintf(text + length, UNITS_TEXT - (size_t)length, ".%03u", part);
		while (text[length - 1] == '0')
			length--;
	}
	snprintf(text + length, UNITS_TEXT - (size_t)length, "%s", unit->name);
	return text;
}

char *size_print(uint64_t bytes, char text[UNITS_TEXT])
{
	return print(bytes, size_units, text);
}

char *time_print(uint64_t ns, char text[UNITS_TEXT])
{
	return print(ns, time_units, text);
}
