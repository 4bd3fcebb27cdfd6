/* SPDX-License-Identifier: Apache-2.0 */
#include "tracescan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define HEAD_BYTES (8 + sizeof(struct st_file_head))
#define WINDOW     ZSTD_COMPRESSBOUND(ST_BLOCK_MAX)

struct window {
	int fd;
	uint64_t offset; /* of bytes[0] in the file */
	size_t used;
	unsigned char *bytes;
	unsigned char *raw; /* of one block */
};

int tracescan_head(int fd, struct st_file_head *ret_head)
{
	unsigned char bytes[HEAD_BYTES];
	struct st_file_head head;
	uint32_t frame[2];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	if (n < 0)
		return -errno;
	memcpy(frame, bytes, sizeof(frame));
	memcpy(&head, bytes + sizeof(frame), sizeof(head));
	if (n < (ssize_t)sizeof(bytes) || frame[0] != ST_SKIPPABLE_MAGIC || frame[1] != sizeof(head) ||
	    memcmp(head.magic, ST_FILE_MAGIC, sizeof(head.magic)) || head.major != ST_FORMAT_MAJOR)
		return -EINVAL;
	head.boot_id[sizeof(head.boot_id) - 1] = '\0';
	head.ring[sizeof(head.ring) - 1] = '\0';
	*ret_head = head;
	return 0;
}

/* The whole frame at `offset`, wherever the window is. Bytes, or 0: none that is whole. */
static size_t find_frame(struct window *window, uint64_t offset, const unsigned char **ret_frame)
{
	size_t at = (size_t)(offset - window->offset), bytes;
	ssize_t n;

	if (at <= window->used) {
		bytes = ZSTD_findFrameCompressedSize(window->bytes + at, window->used - at);
		if (!ZSTD_isError(bytes) && bytes) {
			*ret_frame = window->bytes + at;
			return bytes;
		}
	}
	n = pread(window->fd, window->bytes, WINDOW, (off_t)offset);
	window->offset = offset;
	window->used = n < 0 ? 0 : (size_t)n;
	bytes = ZSTD_findFrameCompressedSize(window->bytes, window->used);
	*ret_frame = window->bytes;
	return ZSTD_isError(bytes) ? 0 : bytes;
}

/* Counts the records of a block. False: it is none. */
static bool scan_block(const unsigned char *raw, size_t bytes, struct tracescan *scan)
{
	struct st_ev_block block;
	struct st_record record;
	size_t at;

	memcpy(&block, raw, bytes < sizeof(block) ? bytes : sizeof(block));
	if (bytes < sizeof(block) || block.r.kind != ST_KIND_block)
		return false;
	for (at = 0; at + sizeof(record) <= bytes; at += (size_t)record.words * 8) {
		memcpy(&record, raw + at, sizeof(record));
		if (record.words < sizeof(record) / 8)
			return false;
		scan->records++;
	}
	scan->blocks = block.number + 1;
	scan->trailer = record.kind == ST_KIND_trailer;
	return true;
}

static void scan_frames(struct window *window, struct tracescan *scan)
{
	const unsigned char *frame;
	size_t bytes, raw;

	while ((bytes = find_frame(window, scan->end, &frame)) > 0) {
		struct tracescan next = *scan;

		raw = ZSTD_decompress(window->raw, ST_BLOCK_MAX, frame, bytes);
		if (ZSTD_isError(raw) || !scan_block(window->raw, raw, &next))
			return;
		next.end += bytes;
		*scan = next;
	}
}

int tracescan_blocks(int fd, struct tracescan *ret_scan)
{
	struct window window = {.fd = fd, .bytes = malloc(WINDOW), .raw = malloc(ST_BLOCK_MAX)};
	struct tracescan scan = {.end = HEAD_BYTES};
	int err = window.bytes && window.raw ? 0 : -ENOMEM;

	if (!err) {
		scan_frames(&window, &scan);
		*ret_scan = scan;
	}
	free(window.bytes);
	free(window.raw);
	return err;
}
