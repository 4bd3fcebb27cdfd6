/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the recorder: a trace file read back by zstd alone, and a folder that goes away again. */
#ifndef TESTS_UNIT_TRACE_BACK_H
#define TESTS_UNIT_TRACE_BACK_H

#include <fcntl.h>
#include <sparktrace/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define BACK_BYTES (64u << 20)
#define BACK_HEAD  (8 + sizeof(struct st_file_head))

struct trace_back {
	unsigned char *raw;
	size_t bytes;  /* of all blocks, one after the other */
	int blocks;    /* -1: damaged */
	size_t number; /* records */
	const struct st_record *record[100000];
};

static inline size_t back_read_file(const char *path, unsigned char **ret_bytes)
{
	unsigned char *bytes = malloc(BACK_BYTES);
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, bytes, BACK_BYTES);

	close(fd);
	*ret_bytes = bytes;
	return n < 0 ? 0 : (size_t)n;
}

/* Every frame must have a content size and decompress; records are indexed. */
static inline struct trace_back *back_read(const char *path)
{
	struct trace_back *back = calloc(1, sizeof(*back));
	unsigned char *file;
	size_t size = back_read_file(path, &file), at = BACK_HEAD, pos;

	back->raw = malloc(BACK_BYTES);
	while (at < size && back->blocks >= 0) {
		size_t frame = ZSTD_findFrameCompressedSize(file + at, size - at), raw;
		unsigned long long content = ZSTD_getFrameContentSize(file + at, size - at);

		raw = ZSTD_isError(frame) ? frame
		                          : ZSTD_decompress(back->raw + back->bytes, BACK_BYTES - back->bytes,
		                                            file + at, frame);
		if (ZSTD_isError(raw) || content != raw) {
			back->blocks = -1;
			break;
		}
		back->blocks++;
		back->bytes += raw;
		at += frame;
	}
	for (pos = 0; pos < back->bytes; pos += back->record[back->number - 1]->words * 8u)
		back->record[back->number++] = (const struct st_record *)(const void *)(back->raw + pos);
	free(file);
	return back;
}

static inline void back_free(struct trace_back *back)
{
	free(back->raw);
	free(back);
}

static inline size_t back_count(const struct trace_back *back, unsigned kind)
{
	size_t count = 0, i;

	for (i = 0; i < back->number; i++)
		count += back->record[i]->kind == kind;
	return count;
}

static inline const struct st_record *back_last(const struct trace_back *back)
{
	return back->record[back->number - 1];
}

static inline void back_make_folder(char *folder, size_t size)
{
	snprintf(folder, size, "/tmp/sparktrace-unit-XXXXXX");
	if (!mkdtemp(folder))
		abort();
}

static inline const struct st_record *back_first(const struct trace_back *back, unsigned kind)
{
	size_t i;

	for (i = 0; i < back->number; i++)
		if (back->record[i]->kind == kind)
			return back->record[i];
	fail_msg("no record of kind %u", kind);
	return NULL;
}

static inline void back_remove_folder(const char *folder)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		abort();
}

static inline struct st_file_head back_head(uint32_t pid, uint64_t start_time)
{
	struct st_file_head head = {.major = ST_FORMAT_MAJOR, .minor = ST_FORMAT_MINOR, .pid = pid};
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	head.start_time = start_time;
	if (!file || fscanf(file, "%36s", head.boot_id) != 1)
		abort();
	fclose(file);
	return head;
}

#endif
