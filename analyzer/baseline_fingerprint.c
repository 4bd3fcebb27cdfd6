/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/baseline.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <stdio.h>
#include <string.h>

#define ROW(name, label, type, member)                                                      \
	{                                                                                   \
		name, label, FINGERPRINT_##type, offsetof(struct fingerprint, member), NULL \
	}

static const char *const devices[] = {"unified", "discrete", "simulated", "none", "unknown", NULL};

/* By name: it is the order in the file. */
const struct fingerprint_row fingerprint_rows[FINGERPRINT_ROWS] = {
	ROW("allocator", "allocator mode", TEXT, allocator),
	{"device", "kind of device", FINGERPRINT_WORD, offsetof(struct fingerprint, device), devices},
	ROW("heap_threshold", "size from which host blocks are recorded", BYTES, heap_threshold),
	ROW("loader_threads", "number of loader threads", COUNT, threads),
	ROW("page_size", "page size", BYTES, page_size),
	ROW("processes", "number of processes", COUNT, processes),
	ROW("relief", "SPARKTRACE_RELIEF", TEXT, relief),
};

static const void *member(const struct fingerprint_row *row, const struct fingerprint *fingerprint)
{
	return (const char *)fingerprint + row->offset;
}

static bool is_text(const struct fingerprint_row *row)
{
	return row->type == FINGERPRINT_TEXT || row->type == FINGERPRINT_WORD;
}

static const char *text_of(const struct fingerprint_row *row, const struct fingerprint *fingerprint)
{
	const char *text = *(char *const *)member(row, fingerprint);

	return text ? text : "unknown";
}

static uint64_t number_of(const struct fingerprint_row *row, const struct fingerprint *fingerprint)
{
	return *(const uint64_t *)member(row, fingerprint);
}

bool fingerprint_equal(const struct fingerprint_row *row, const struct fingerprint *a,
                       const struct fingerprint *b)
{
	if (is_text(row))
		return !strcmp(text_of(row, a), text_of(row, b));
	return number_of(row, a) == number_of(row, b);
}

bool fingerprint_known(const struct fingerprint_row *row, const struct fingerprint *fingerprint)
{
	if (is_text(row))
		return strcmp(text_of(row, fingerprint), "unknown") != 0;
	return number_of(row, fingerprint) != ST_UNKNOWN;
}

char *fingerprint_text(const struct fingerprint_row *row, const struct fingerprint *fingerprint)
{
	char *text;

	if (is_text(row) || !fingerprint_known(row, fingerprint))
		return strdup(is_text(row) ? text_of(row, fingerprint) : "unknown");
	if (asprintf(&text, "%" PRIu64 "%s", number_of(row, fingerprint),
	             row->type == FINGERPRINT_BYTES ? " bytes" : "") < 0)
		return NULL;
	return text;
}
