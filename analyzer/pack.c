/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include "preload/recorder/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (4u << 20) /* well above the longest record in hexadecimal */

#define BLOCK_BYTES (1u << 20) /* of records, in a block that is made up */

/* Monotonic time 0 of a scenario: 2026-01-01 00:00 UTC, so that packing twice gives the same bytes. */
#define SCENARIO_START UINT64_C(1767225600000000000)

int pack_fail(struct pack *pack, const char *field, const char *format, ...)
{
	int length = snprintf(pack->error, sizeof(pack->error), "line %" PRIu64 "%s%.60s%s: ", pack->line,
	                      field ? ", field \"" : "", field ? field : "", field ? "\"" : "");
	va_list args;

	va_start(args, format);
	vsnprintf(pack->error + length, sizeof(pack->error) - (size_t)length, format, args);
	va_end(args);
	return -EINVAL;
}

struct st_record pack_head(const struct pack *pack, unsigned kind, size_t words)
{
	return (struct st_record){.time = pack->time, .kind = (uint16_t)kind, .words = (uint16_t)words};
}

/* --- the trace ----------------------------------------------------------------------------------- */

static int begin_trace(struct pack *pack)
{
	const struct trace_options options = {.block_size = ST_BLOCK_MAX}; /* blocks end where we say */
	int error = trace_create_fd(pack->fd, &pack->head, &options, &pack->trace);

	if (!error)
		pack->fd = -1;
	return error;
}

static int append_counted(struct pack *pack, const struct st_record *record)
{
	int error = trace_append(pack->trace, record);

	if (error == -EINVAL)
		return pack_fail(pack, NULL, "too short for a record of its kind");
	if (error)
		return error;
	pack->records++;
	if (record->kind == ST_KIND_block)
		pack->blocks = ((const struct st_ev_block *)record)->number + 1;
	return 0;
}

/* Blocks that a dump gives are not split as long as they are none too large. */
static int make_block(struct pack *pack, size_t bytes)
{
	const struct st_ev_block block = {
		.r = pack_head(pack, ST_KIND_block, sizeof(block) / 8),
		.number = pack->blocks,
		.minor = ST_FORMAT_MINOR,
		.monotonic = pack->time,
		.boottime = pack->time,
		.realtime = SCENARIO_START + pack->time,
	};

	if (pack->blocks &&
	    trace_pending(pack->trace) + bytes <= (pack->complete ? ST_BLOCK_MAX : BLOCK_BYTES))
		return 0;
	return append_counted(pack, &block.r);
}

static int make_process(struct pack *pack)
{
	const struct event_kind *kind = event_kind_find(ST_KIND_process);
	struct st_ev_process process = {.r = pack_head(pack, ST_KIND_process, sizeof(process) / 8)};
	uint64_t *fields = (uint64_t *)(&process.r + 1);

	for (size_t i = 0; i < kind->field_count; i++)
		fields[i] = pack_absent(kind, &kind->fields[i]);
	pack->has_process = true;
	return append_counted(pack, &process.r);
}

/* What a record needs before it. */
static int make_ready(struct pack *pack, const struct st_record *record)
{
	bool is_process = record->kind == ST_KIND_process;
	int error = pack->trace ? 0 : begin_trace(pack);

	if (error || record->kind == ST_KIND_block)
		return error;
	error = make_block(pack, (size_t)record->words * 8);
	if (error || pack->complete)
		return error;
	if (is_process && pack->has_process)
		return pack_fail(pack, "event", "the process record comes first, and once");
	return is_process || pack->has_process ? 0 : make_process(pack);
}

int pack_append(struct pack *pack, const struct st_record *record)
{
	int error = make_ready(pack, record);

	if (!error)
		error = append_counted(pack, record);
	if (error)
		return error;
	pack->has_process |= record->kind == ST_KIND_process;
	pack->has_trailer |= record->kind == ST_KIND_trailer;
	if (record->kind == ST_KIND_lost && record->words >= sizeof(struct st_ev_lost) / 8)
		pack->lost += ((const struct st_ev_lost *)record)->count;
	return 0;
}

/* An input without any record still makes a trace: a head, and what is made up. */
static int end_trace(struct pack *pack)
{
	struct st_ev_trailer trailer = {
		.r = pack_head(pack, ST_KIND_trailer, sizeof(trailer) / 8),
		.lost = pack->lost,
	};
	int error = 0;

	if (pack->complete && !pack->trace)
		error = begin_trace(pack);
	else if (!pack->complete && !pack->has_trailer)
		error = make_ready(pack, &trailer.r);
	trailer.blocks = pack->blocks;
	trailer.records = pack->records + 1;
	if (!error && !pack->complete && !pack->has_trailer)
		error = append_counted(pack, &trailer.r);
	return error ? error : trace_flush(pack->trace);
}

/* --- lines --------------------------------------------------------------------------------------- */

/* One line without its newline into `text`. 1, 0 at the end, negative errno. */
static int read_line(struct pack *pack, FILE *in, char *text, size_t *ret_length)
{
	size_t length = 0;
	int c = getc(in);

	if (c == EOF)
		return ferror(in) ? -EIO : 0;
	pack->line++;
	for (; c != EOF && c != '\n'; c = getc(in)) {
		if (length == LINE_MAX_BYTES)
			return pack_fail(pack, NULL, "longer than any record");
		text[length++] = (char)c;
	}
	*ret_length = length;
	return 1;
}

static bool is_comment(const char *text, size_t length)
{
	while (length && (*text == ' ' || *text == '\t' || *text == '\r')) {
		text++;
		length--;
	}
	return !length || *text == '#';
}

static int take_line(struct pack *pack, const char *text, size_t length)
{
	json_error_t json_error;
	json_t *line;
	int error;

	if (is_comment(text, length))
		return 0;
	line = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
	if (!line)
		return pack_fail(pack, NULL, "%s (column %d)", json_error.text, json_error.column);
	error = pack_line(pack, line);
	json_decref(line);
	return error;
}

static int pack_lines(struct pack *pack, FILE *in)
{
	char *text = malloc(LINE_MAX_BYTES);
	size_t length = 0;
	int got = text ? 0 : -ENOMEM, error = 0;

	while (!error && text && (got = read_line(pack, in, text, &length)) > 0)
		error = take_line(pack, text, length);
	free(text);
	if (!error)
		error = got;
	return error ? error : end_trace(pack);
}

static int pack_init(struct pack *pack, int fd)
{
	*pack = (struct pack){
		.fd = fd,
		.head = {.major = ST_FORMAT_MAJOR, .minor = ST_FORMAT_MINOR, .pid = PACK_PID},
		.files = json_object(),
		.symbols = json_object(),
		.stacks = json_object(),
		.record = calloc(PACK_RECORD_WORDS, 8),
	};
	memcpy(pack->head.magic, ST_FILE_MAGIC, sizeof(pack->head.magic));
	return pack->files && pack->symbols && pack->stacks && pack->record ? 0 : -ENOMEM;
}

static void pack_release(struct pack *pack)
{
	trace_free(pack->trace);
	if (pack->fd >= 0)
		close(pack->fd);
	json_decref(pack->files);
	json_decref(pack->symbols);
	json_decref(pack->stacks);
	free(pack->record);
}

int pack_stream(FILE *in, int fd, char error[PACK_ERROR_MAX])
{
	struct pack pack;
	int result = pack_init(&pack, fd);

	if (!result)
		result = pack_lines(&pack, in);
	if (result && !pack.error[0])
		snprintf(pack.error, sizeof(pack.error), "making the trace: %s", strerror(-result));
	memcpy(error, pack.error, sizeof(pack.error));
	pack_release(&pack);
	return result;
}
