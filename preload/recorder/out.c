/* SPDX-License-Identifier: Apache-2.0 */
#include "out.h"
#include "clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RECORD_MAX (OUT_TAIL_MAX + 1024)

static int put_bytes(struct out *out, struct st_record *record, size_t bytes, const void *tail,
                     size_t tail_bytes)
{
	static _Alignas(8) unsigned char buffer[RECORD_MAX];
	size_t padded;

	if (tail_bytes > OUT_TAIL_MAX)
		tail_bytes = OUT_TAIL_MAX;
	padded = (tail_bytes + 7) / 8 * 8;
	record->words = (uint16_t)((bytes + padded) / 8);
	if (!record->time)
		record->time = clock_now();
	memcpy(buffer, record, bytes);
	memset(buffer + bytes + padded - (padded ? 8 : 0), 0, padded ? 8 : 0);
	if (tail_bytes)
		memcpy(buffer + bytes, tail, tail_bytes);
	return trace_append(out->trace, (const struct st_record *)(const void *)buffer);
}

static int put_text(struct out *out, struct st_record *record, size_t bytes, const char *text)
{
	return put_bytes(out, record, bytes, text, strlen(text));
}

/* The records that were lost are said first, or this one is lost too. */
static int say_dropped(struct out *out)
{
	struct st_record record = {.kind = ST_KIND_coverage};
	char text[120];

	if (!out->dropped)
		return 0;
	snprintf(text, sizeof(text),
	         "%llu records of the recorder found no room: the trace could not be written",
	         (unsigned long long)out->dropped);
	if (put_text(out, &record, sizeof(record), text))
		return -1;
	out->dropped = 0;
	return 0;
}

void out_put(struct out *out, struct st_record *record, size_t bytes, const void *tail, size_t tail_bytes)
{
	if (say_dropped(out) || put_bytes(out, record, bytes, tail, tail_bytes))
		out->dropped++;
	else
		out->records++;
}

void out_info(struct out *out, const char *name, const char *format, ...)
{
	char text[8192];
	int used = snprintf(text, sizeof(text), "%s=", name);
	va_list list;

	va_start(list, format);
	vsnprintf(text + used, sizeof(text) - (size_t)used, format, list);
	va_end(list);
	out_put(out, &(struct st_record){.kind = ST_KIND_info}, sizeof(struct st_ev_info), text,
	        strlen(text));
}

void out_coverage(struct out *out, const char *format, ...)
{
	char text[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	out_put(out, &(struct st_record){.kind = ST_KIND_coverage}, sizeof(struct st_ev_coverage), text,
	        strlen(text));
}
