/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "emit_back.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PATH_WIDTH 48
#define WORD_WIDTH 400 /* a command line can be pages long */

/* Length of the valid UTF-8 sequence at `s`, 0 when there is none (overlong, surrogate, cut). */
size_t emit_utf8_length(const unsigned char *s)
{
	size_t length = s[0] < 0x80   ? 1
	                : s[0] < 0xc2 ? 0
	                : s[0] < 0xe0 ? 2
	                : s[0] < 0xf0 ? 3
	                : s[0] < 0xf5 ? 4
	                              : 0;

	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

/* Control characters, C1 ones (U+0080 to U+009F) included: a terminal would obey them. */
static bool is_control(const unsigned char *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

void emit_clean(FILE *out, const char *text, const char *backslash)
{
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t length = emit_utf8_length(s);

		if (!length || is_control(s)) {
			fprintf(out, "%sx%02x", backslash, *s++);
			continue;
		}
		fwrite(s, 1, length, out);
		s += length;
	}
}

/* Binary unit in which `bytes` is read most easily; the number of the unit is the power of 1024. */
static unsigned unit_of(uint64_t bytes)
{
	/* From 1023.95 on, one decimal would say 1024.0: the next unit. */
	unsigned unit = 0;

	while (unit < 3 && bytes >= (UINT64_C(1) << (10 * (unit + 1))) - (UINT64_C(1) << (10 * unit)) / 20)
		unit++;
	return unit;
}

static const char *const unit_names[] = {"bytes", "KiB", "MiB", "GiB"};
static const int unit_digits[] = {0, 0, 1, 2};

static void print_number(FILE *out, uint64_t bytes, unsigned unit)
{
	fprintf(out, "%.*f", unit_digits[unit], (double)bytes / (double)(UINT64_C(1) << (10 * unit)));
}

static void print_bytes(FILE *out, uint64_t bytes)
{
	print_number(out, bytes, unit_of(bytes));
	fprintf(out, " %s", unit_names[unit_of(bytes)]);
}

static bool reads_alike(uint64_t low, uint64_t high, unsigned unit)
{
	double scale = (double)(UINT64_C(1) << (10 * unit));
	double step = pow(10, unit_digits[unit]);

	return lround((double)low / scale * step) == lround((double)high / scale * step);
}

/* An interval too small to be seen in two figures is a figure and what may be added to it. */
static void print_interval(FILE *out, uint64_t low, uint64_t high)
{
	unsigned unit = unit_of(high);

	if (high == UINT64_MAX)
		fputs("at least ", out);
	else if (!low && high)
		fputs("up to ", out);
	if (high == UINT64_MAX || low >= high) {
		print_bytes(out, low);
	} else if (!low) {
		print_bytes(out, high);
	} else if (reads_alike(low, high, unit)) {
		print_bytes(out, low);
		fputs(" (+", out);
		print_bytes(out, high - low);
		fputc(')', out);
	} else {
		print_number(out, low, unit);
		fputs(" to ", out);
		print_bytes(out, high);
	}
}

static void print_signed(FILE *out, int64_t change)
{
	fputc(change < 0 ? '-' : '+', out);
	print_bytes(out, change < 0 ? -(uint64_t)change : (uint64_t)change);
}

static void print_change(FILE *out, int64_t low, int64_t high)
{
	if (low == INT64_MIN || high == INT64_MAX)
		fputs(low == INT64_MIN ? "at most " : "at least ", out);
	print_signed(out, low == INT64_MIN ? high : low);
	if (low == high || low == INT64_MIN || high == INT64_MAX)
		return;
	fputs(" to ", out);
	print_signed(out, high);
}

static void print_time(FILE *out, uint64_t ns)
{
	uint64_t seconds = ns / UINT64_C(1000000000);

	if (seconds < 600)
		fprintf(out, "%.3f s", (double)ns / 1e9);
	else if (seconds < 36000)
		fprintf(out, "%" PRIu64 " min %02" PRIu64 " s", seconds / 60, seconds % 60);
	else
		fprintf(out, "%" PRIu64 " h %02" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
}

/* The end of a path says more than its start. */
static void print_path(FILE *out, const char *path)
{
	size_t length = strlen(path);
	const char *tail = path;

	if (length > PATH_WIDTH) {
		tail = strchr(path + length - PATH_WIDTH + 4, '/');
		tail = tail ? tail : path + length - PATH_WIDTH + 4;
		/* Never begin inside a UTF-8 sequence. */
		while ((*tail & 0xc0) == 0x80)
			tail++;
		fputs("...", out);
	}
	emit_clean(out, tail, "\\");
}

static void print_word(FILE *out, const char *text)
{
	size_t length = strlen(text);
	char *cut;

	if (length <= WORD_WIDTH) {
		emit_clean(out, text, "\\");
		return;
	}
	length = WORD_WIDTH;
	while ((text[length] & 0xc0) == 0x80)
		length--;
	cut = strndup(text, length);
	emit_clean(out, cut ? cut : "", "\\");
	fputs("...", out);
	free(cut);
}

bool emit_value_known(const struct emit_field *field)
{
	switch (field->type) {
	case EMIT_BYTES:
	case EMIT_INTERVAL:
	case EMIT_TIME:
	case EMIT_COUNT:
		return field->low != UINT64_MAX;
	case EMIT_RATIO:
	case EMIT_SHARE:
		return isfinite(field->number);
	case EMIT_WORD:
	case EMIT_PATH:
		return field->text != NULL;
	case EMIT_CHANGE:
		return field->change != INT64_MIN || field->change_high != INT64_MAX;
	case EMIT_FLAG:
		break;
	}
	return true;
}

static void print_known(FILE *out, const struct emit_field *field)
{
	switch (field->type) {
	case EMIT_BYTES:
		print_bytes(out, field->low);
		break;
	case EMIT_INTERVAL:
		print_interval(out, field->low, field->high);
		break;
	case EMIT_CHANGE:
		print_change(out, field->change, field->change_high);
		break;
	case EMIT_TIME:
		print_time(out, field->low);
		break;
	case EMIT_COUNT:
		fprintf(out, "%" PRIu64, field->low);
		break;
	case EMIT_RATIO:
		fprintf(out, "%.2f", field->number);
		break;
	case EMIT_SHARE:
		fprintf(out, "%.*f %%", field->number < 0.095 && field->number > 0 ? 1 : 0,
		        field->number * 100);
		break;
	case EMIT_FLAG:
		fputs(field->low ? "yes" : "no", out);
		break;
	case EMIT_WORD:
		print_word(out, field->text);
		break;
	case EMIT_PATH:
		print_path(out, field->text);
		break;
	}
}

void emit_value_print(FILE *out, const struct emit_field *field)
{
	if (emit_value_known(field))
		print_known(out, field);
	else
		fputs("unknown", out);
}

char *emit_value_text(const struct emit_field *field)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	emit_value_print(out, field);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
