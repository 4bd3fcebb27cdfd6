/* SPDX-License-Identifier: Apache-2.0 */
/* Small traces in files, for the tests of the reader: made by the product's writer, then damaged byte by byte. */
#ifndef SPARKTRACE_TEST_TRACE_FILE_H
#define SPARKTRACE_TEST_TRACE_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/reader.h"
#include "preload/recorder/trace.h"

#define GOT_MAX 4096

/* What a trace said: the addresses of its `free` records, which number them, and the summary. */
struct got {
	int error; /* of reader_open */
	size_t count;
	uint64_t addresses[GOT_MAX];
	struct reader_summary summary;
};

static inline const char *test_path(const char *name)
{
	static char paths[4][512];
	static unsigned next;
	const char *folder = getenv("T");
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/reader.%d.%s", folder ? folder : "/tmp", (int)getpid(), name);
	return path;
}

/* A file in memory, for thousands of rewrites, each of which a disk would have to see through. */
static inline const char *memory_path(void)
{
	static char path[32];
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static inline struct st_file_head test_head(const char *ring)
{
	struct st_file_head head = {
		.major = ST_FORMAT_MAJOR, .minor = ST_FORMAT_MINOR, .pid = 4242, .start_time = 77};

	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	snprintf(head.boot_id, sizeof(head.boot_id), "no such boot");
	snprintf(head.ring, sizeof(head.ring), "%s", ring);
	return head;
}

static inline struct st_ev_free make_free(uint64_t position, uint64_t address)
{
	return (struct st_ev_free){.r = {.seq = ST_SEQ_MAGIC | position,
	                                 .time = 1000 + address,
	                                 .thread = 5,
	                                 .kind = ST_KIND_free,
	                                 .words = sizeof(struct st_ev_free) / 8},
	                           .addr = address};
}

static inline void put_block(struct trace *trace, uint64_t number)
{
	const struct st_ev_block block = {
		.r = {.time = 10 * number, .kind = ST_KIND_block, .words = sizeof(block) / 8},
		.number = number,
		.synced = 100 + number};

	assert_int_equal(trace_append(trace, &block.r), 0);
}

static inline void put_frees(struct trace *trace, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		struct st_ev_free record = make_free(i * sizeof(record), i);

		assert_int_equal(trace_append(trace, &record.r), 0);
	}
}

static inline struct trace *start_trace(const char *path, const struct st_file_head *head)
{
	struct trace *trace = NULL;

	unlink(path);
	assert_int_equal(trace_create(path, head, NULL, &trace), 0);
	return trace;
}

/* `blocks` blocks of `each` records, numbered from 0 through all of them; with the trailer in the last. */
static inline void make_trace(const char *path, const struct st_file_head *head, uint64_t blocks,
                              uint64_t each, bool trailer)
{
	struct trace *trace = start_trace(path, head);

	for (uint64_t i = 0; i < blocks; i++) {
		put_block(trace, i);
		put_frees(trace, i * each, each);
	}
	assert_int_equal(trailer ? trace_finish(trace, 0) : trace_flush(trace), 0);
	trace_free(trace);
}

static inline unsigned char *load(const char *path, size_t *ret_bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	unsigned char *data;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	*ret_bytes = (size_t)st.st_size;
	return data;
}

static inline void store(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static inline void take_all(struct reader *reader, struct got *got)
{
	const struct st_record *record;
	int more;

	got->count = 0;
	while ((more = reader_next(reader, &record)) > 0)
		if (record->kind == ST_KIND_free && got->count < GOT_MAX)
			got->addresses[got->count++] = ((const struct st_ev_free *)record)->addr;
	assert_int_equal(more, 0);
	got->summary = *reader_summary(reader);
}

static inline void read_trace(const char *path, const char *ring, struct got *got)
{
	struct reader *reader;

	memset(got, 0, sizeof(*got));
	got->error = ring ? reader_open_with_ring(path, ring, &reader) : reader_open(path, &reader);
	if (got->error)
		return;
	take_all(reader, got);
	reader_free(reader);
}

/* Exactly the records first, first + 1, ... */
static inline void assert_run(const struct got *got, uint64_t first, size_t count)
{
	assert_int_equal(got->error, 0);
	assert_int_equal(got->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(got->addresses[i], first + i);
}

#endif
