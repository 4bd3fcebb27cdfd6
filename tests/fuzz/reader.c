/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader and the dump on hostile input. Checksums keep random bytes away from most of the code, so the first
 * byte chooses what the rest is: a file, the records of a block whose frame is right, or the data of a ring.
 */
#include "analyzer/dump.h"
#include "analyzer/reader.h"

#include <sparktrace/ring.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int put(int fd, const void *data, size_t size)
{
	return write(fd, data, size) == (ssize_t)size;
}

static int put_head(int fd)
{
	const uint32_t frame[2] = {ST_SKIPPABLE_MAGIC, sizeof(struct st_file_head)};
	struct st_file_head head = {.major = ST_FORMAT_MAJOR};

	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	return put(fd, frame, sizeof(frame)) && put(fd, &head, sizeof(head));
}

static int put_block(int fd, const uint8_t *data, size_t size)
{
	const struct st_ev_block block = {.r = {.kind = ST_KIND_block, .words = sizeof(block) / 8}};
	size_t raw = sizeof(block) + size / 8 * 8, room = ZSTD_compressBound(raw), packed;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	unsigned char *content = malloc(raw), *frame = malloc(room);
	int done;

	memcpy(content, &block, sizeof(block));
	memcpy(content + sizeof(block), data, raw - sizeof(block));
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	packed = ZSTD_compress2(zstd, frame, room, content, raw);
	done = put(fd, frame, packed);
	ZSTD_freeCCtx(zstd);
	free(content);
	free(frame);
	return done;
}

/* The first 16 bytes are tail and head, the rest lies at the start of the data. */
static int put_ring(int fd, const uint8_t *data, size_t size)
{
	static _Alignas(128) unsigned char file[ST_RING_DATA + 4096];
	struct st_ring *ring = (struct st_ring *)(void *)file;
	uint64_t ends[2] = {0, 0};
	size_t first = size < sizeof(ends) ? size : sizeof(ends), rest = size - first;

	memset(file, 0, sizeof(file));
	memcpy(ends, data, first);
	memcpy(ring->magic, ST_RING_MAGIC, sizeof(ring->magic));
	ring->version = ST_RING_VERSION;
	ring->size = 4096;
	ring->tail = ends[0];
	ring->head = ends[1];
	memcpy(st_ring_data(ring), data + first, rest < 4096 ? rest : 4096);
	return put(fd, file, sizeof(file));
}

static void read_all(const char *path)
{
	const struct st_record *record;
	struct reader *reader;
	uint64_t records = 0;
	FILE *out;

	if (reader_open(path, &reader))
		return;
	while (reader_next(reader, &record) > 0)
		records++;
	if (records != reader_summary(reader)->records)
		abort();
	reader_rewind(reader);
	out = fopen("/dev/null", "w");
	dump_trace(out, reader, true);
	fclose(out);
	if (records != reader_summary(reader)->records)
		abort();
	reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), done = 0;
	char path[64];

	if (fd < 0 || !size)
		return 0;
	switch (*data % 4) {
	case 0:
		done = put(fd, data + 1, size - 1);
		break;
	case 1:
		done = put_head(fd) && put(fd, data + 1, size - 1);
		break;
	case 2:
		done = put_head(fd) && put_block(fd, data + 1, size - 1);
		break;
	case 3:
		done = put_ring(fd, data + 1, size - 1);
		break;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (done)
		read_all(path);
	close(fd);
	return 0;
}
