/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_parts.h"

#include <string.h>
#include <zstd_errors.h>

#define FRAME_HEAD_MAX 18
#define CHECKSUM_FLAG  4u /* in byte 4 of a zstd frame */

/* Why a frame is no block of ours, told by its first bytes alone; NULL: it may be one. */
static const char *frame_refusal(const unsigned char *data, size_t bytes)
{
	uint32_t magic = 0;
	unsigned long long content;

	memcpy(&magic, data, bytes < sizeof(magic) ? bytes : sizeof(magic));
	if (magic != ST_ZSTD_MAGIC)
		return "no block begins here";
	content = ZSTD_getFrameContentSize(data, bytes);
	if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN)
		return "a block without its size";
	if (content > ST_BLOCK_MAX)
		return "a block larger than the format allows";
	if (content < sizeof(struct st_ev_block) || content % 8)
		return "a block that is not whole records";
	if (!(data[4] & CHECKSUM_FLAG))
		return "a block without checksum";
	return NULL;
}

static void look_inside(ZSTD_DCtx *zstd, uint64_t *words, const unsigned char *data, struct look *look)
{
	const struct st_ev_block *block = (const struct st_ev_block *)words;
	size_t got = ZSTD_decompressDCtx(zstd, words, ST_BLOCK_MAX, data, look->bytes);

	if (ZSTD_isError(got)) {
		look->refusal = ZSTD_getErrorName(got);
		return;
	}
	look->words = got / 8;
	if (block->r.kind != ST_KIND_block || block->r.words < sizeof(*block) / 8 ||
	    block->r.words > look->words)
		look->refusal = "a block without its first record";
}

void look_at_frame(ZSTD_DCtx *zstd, uint64_t *words, const unsigned char *data, size_t bytes,
                   struct look *ret_look)
{
	struct look look = {.refusal = frame_refusal(data, bytes)};
	size_t frame;

	if (look.refusal) {
		look.cut = bytes < FRAME_HEAD_MAX && !memcmp(data, "\x28\xB5\x2F\xFD", bytes < 4 ? bytes : 4);
		*ret_look = look;
		return;
	}
	frame = ZSTD_findFrameCompressedSize(data, bytes);
	if (ZSTD_isError(frame)) {
		look.refusal = ZSTD_getErrorName(frame);
		look.cut = ZSTD_getErrorCode(frame) == ZSTD_error_srcSize_wrong && bytes < FRAME_MAX;
	} else {
		look.bytes = frame;
		look_inside(zstd, words, data, &look);
	}
	*ret_look = look;
}
