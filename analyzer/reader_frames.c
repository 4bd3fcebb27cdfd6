/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are used as they stand in the file");

#define WINDOW_BYTES   (4 * FRAME_MAX)
#define HEAD_BYTES     (8 + sizeof(struct st_file_head))
#define SKIPPABLE_MASK 0xFFFFFFF0u
#define AHEAD_FROM     (2u << 20) /* a shorter file is not worth a thread */

int frames_init(struct frames *frames, int fd)
{
	struct stat st;

	memset(frames, 0, sizeof(*frames));
	frames->fd = -1;
	if (fstat(fd, &st))
		return -errno;
	frames->size = (uint64_t)st.st_size;
	frames->window = malloc(WINDOW_BYTES);
	frames->block = malloc(ST_BLOCK_MAX);
	frames->zstd = ZSTD_createDCtx();
	if (!frames->window || !frames->block || !frames->zstd) {
		frames_release(frames);
		return -ENOMEM;
	}
	if (frames->size > AHEAD_FROM)
		frames->ahead = ahead_new(fd);
	frames->fd = fd;
	frames_rewind(frames);
	return 0;
}

void frames_release(struct frames *frames)
{
	ahead_free(frames->ahead);
	if (frames->fd >= 0)
		close(frames->fd);
	ZSTD_freeDCtx(frames->zstd);
	free(frames->window);
	free(frames->block);
	frames->fd = -1;
	frames->ahead = NULL;
	frames->zstd = NULL;
	frames->window = NULL;
	frames->block = NULL;
}

void frames_rewind(struct frames *frames)
{
	frames->offset = 0;
	frames->search_end = frames->size;
	frames->work = 16 * frames->size + (UINT64_C(256) << 20);
	frames->next_number = 0;
	frames->block_offset = 0;
}

/* Fills the window behind what it holds. A file that has shrunk since is taken as it is now. */
static int window_fill(struct frames *frames)
{
	while (frames->window_used < WINDOW_BYTES) {
		uint64_t at = frames->window_base + frames->window_used;
		size_t want = WINDOW_BYTES - frames->window_used;
		ssize_t got;

		if (at >= frames->size)
			return 0;
		if (want > frames->size - at)
			want = frames->size - at;
		got = pread(frames->fd, frames->window + frames->window_used, want, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			frames->size = at;
		frames->window_used += (size_t)got;
	}
	return 0;
}

/*
 * File bytes from `offset` on: at least FRAME_MAX, or all there are. Bytes that the window still has are
 * kept, so each byte of the file is read once as long as offsets rise.
 */
static int window_at(struct frames *frames, uint64_t offset, const unsigned char **ret_data,
                     size_t *ret_bytes)
{
	uint64_t end = frames->window_base + frames->window_used;
	size_t kept = offset >= frames->window_base && offset < end ? end - offset : 0;
	int error = 0;

	if (kept < FRAME_MAX && (end < frames->size || !kept)) {
		memmove(frames->window, frames->window + frames->window_used - kept, kept);
		frames->window_base = offset;
		frames->window_used = kept;
		error = window_fill(frames);
		kept = frames->window_used;
	}
	if (error)
		return error;
	*ret_data = frames->window + (offset - frames->window_base);
	*ret_bytes = kept;
	return 0;
}

int frames_head(int fd, struct st_file_head *ret_head)
{
	unsigned char data[HEAD_BYTES];
	uint32_t frame[2];
	struct st_file_head head;
	ssize_t got = pread(fd, data, sizeof(data), 0);

	if (got < 0)
		return -errno;
	if (got < (ssize_t)sizeof(data))
		return -EBADMSG;
	memcpy(frame, data, sizeof(frame));
	memcpy(&head, data + sizeof(frame), sizeof(head));
	if (frame[0] != ST_SKIPPABLE_MAGIC || frame[1] < sizeof(head) ||
	    memcmp(head.magic, ST_FILE_MAGIC, sizeof(head.magic)))
		return -EBADMSG;
	if (head.major != ST_FORMAT_MAJOR)
		return -EPROTONOSUPPORT;
	head.boot_id[sizeof(head.boot_id) - 1] = '\0';
	head.ring[sizeof(head.ring) - 1] = '\0';
	*ret_head = head;
	return 0;
}

/* In a long trace the block that follows is begun at once, while this one is being read. */
static int look_at(struct frames *frames, uint64_t offset, struct look *ret_look)
{
	const unsigned char *data;
	size_t bytes;
	int error = 0;

	if (!ahead_take(frames->ahead, offset, &frames->block, ret_look)) {
		error = window_at(frames, offset, &data, &bytes);
		if (error)
			return error;
		look_at_frame(frames->zstd, frames->block, data, bytes, ret_look);
	}
	if (!ret_look->refusal)
		ahead_ask(frames->ahead, offset + ret_look->bytes, frames->size, 2 * ret_look->bytes);
	return 0;
}

/* The next place behind `offset` where a zstd frame may begin; frames->search_end: none. */
static int find_magic(struct frames *frames, uint64_t offset, uint64_t *ret_offset)
{
	static const uint32_t magic = ST_ZSTD_MAGIC;

	while (offset < frames->search_end) {
		const unsigned char *data, *hit;
		size_t bytes;
		int error = window_at(frames, offset, &data, &bytes);

		if (error)
			return error;
		hit = memmem(data, bytes, &magic, sizeof(magic));
		if (hit) {
			*ret_offset = offset + (uint64_t)(hit - data);
			return 0;
		}
		if (bytes <= sizeof(magic) || offset + bytes >= frames->size)
			break;
		offset += bytes - (sizeof(magic) - 1); /* a magic may lie across the end */
	}
	*ret_offset = frames->search_end;
	return 0;
}

/* Takes what a failed try costs; without anything left no further one is made. */
static void pay(struct frames *frames, const struct look *look)
{
	uint64_t cost = 64 + (look->bytes ? look->bytes + ST_BLOCK_MAX : 0);

	frames->work -= cost < frames->work ? cost : frames->work;
}

/* Tries each magic behind `offset` until a whole block comes. Without one *ret_offset is search_end. */
static int resynchronise(struct frames *frames, uint64_t offset, uint64_t *ret_offset, struct look *ret_look)
{
	int error;

	do {
		error = find_magic(frames, offset + 1, &offset);
		if (error || offset >= frames->search_end)
			break;
		error = look_at(frames, offset, ret_look);
		pay(frames, ret_look);
	} while (!error && ret_look->refusal && frames->work);
	*ret_offset = ret_look->refusal ? frames->search_end : offset;
	return error;
}

/* Goes to the next good block, which is then in frames->block, or to the end. */
static int step_over(struct frames *frames, struct reader_summary *summary, struct look *look)
{
	uint64_t from = frames->offset;
	const char *refusal = look->refusal;
	bool cut = look->cut;
	int error;

	pay(frames, look);
	error = resynchronise(frames, from, &frames->offset, look);
	if (error)
		return error;
	if (look->refusal && cut) {
		problem_add(summary, from, false, "the file ends inside a block (its last %" PRIu64 " bytes)",
		            frames->size - from);
		return 0;
	}
	summary->damaged = true;
	summary->damaged_blocks++;
	problem_add(summary, from, false, "%s; %" PRIu64 " bytes skipped%s", refusal, frames->offset - from,
	            frames->work ? "" : ", too much damage to search further");
	return 0;
}

/* Blocks are numbered without gaps: what is missing is noted, what comes again is dropped. */
static bool number_fits(struct frames *frames, struct reader_summary *summary)
{
	uint64_t number = ((const struct st_ev_block *)frames->block)->number;

	if (number < frames->next_number) {
		summary->damaged = true;
		problem_add(summary, frames->block_offset, false, "block %" PRIu64 " comes again, dropped",
		            number);
		return false;
	}
	if (number > frames->next_number) {
		summary->damaged = true;
		summary->missing_blocks += number - frames->next_number;
		problem_add(summary, frames->block_offset, false,
		            "blocks %" PRIu64 " to %" PRIu64 " are missing", frames->next_number, number - 1);
	}
	frames->next_number = number + 1;
	return true;
}

/* Does a frame (as far as it is there), or the end, follow at `offset`? A wrong length leads elsewhere. */
static int frame_follows(struct frames *frames, uint64_t offset, bool *ret_follows)
{
	static const unsigned char zstd[4] = {0x28, 0xB5, 0x2F, 0xFD},
				   skippable[4] = {0x50, 0x2A, 0x4D, 0x18};
	unsigned char magic[4] = {0};
	const unsigned char *data;
	size_t bytes;
	int error;

	*ret_follows = offset == frames->size;
	if (offset >= frames->size)
		return 0;
	error = window_at(frames, offset, &data, &bytes);
	if (error)
		return error;
	if (bytes > sizeof(magic))
		bytes = sizeof(magic);
	memcpy(magic, data, bytes);
	*ret_follows = !memcmp(magic, zstd, bytes);
	magic[0] &= SKIPPABLE_MASK & 0xFF;
	*ret_follows |= !memcmp(magic, skippable, bytes);
	return 0;
}

/* Passes skippable frames: the head, and what a later version may add. A second head ends the trace. */
static int skip_frames(struct frames *frames, struct reader_summary *summary)
{
	bool follows = true;

	while (follows && frames->offset < frames->size) {
		const unsigned char *data;
		size_t bytes;
		uint32_t frame[2];
		uint64_t next;
		int error = window_at(frames, frames->offset, &data, &bytes);

		if (error || bytes < sizeof(frame))
			return error;
		memcpy(frame, data, sizeof(frame));
		if ((frame[0] & SKIPPABLE_MASK) != ST_SKIPPABLE_MAGIC)
			return 0;
		if (frames->offset && bytes >= HEAD_BYTES &&
		    !memcmp(data + sizeof(frame), ST_FILE_MAGIC, 8)) {
			summary->damaged = true;
			problem_add(summary, frames->offset, false, "another trace begins here, not read");
			frames->offset = frames->size;
			return 0;
		}
		next = frames->offset + sizeof(frame) + frame[1];
		error = frame_follows(frames, next, &follows);
		if (error)
			return error;
		if (follows)
			frames->offset = next;
	}
	return 0;
}

void frames_blame(struct frames *frames)
{
	const struct look look = {.bytes = frames->offset - frames->block_offset};

	pay(frames, &look);
	if (!frames->work)
		frames->offset = frames->size;
}

int frames_next(struct frames *frames, struct reader_summary *summary, size_t *ret_words)
{
	for (;;) {
		struct look look;
		int error = skip_frames(frames, summary);

		if (error || frames->offset >= frames->size)
			return error;
		error = look_at(frames, frames->offset, &look);
		if (!error && look.refusal)
			error = step_over(frames, summary, &look);
		if (error || look.refusal)
			return error;
		frames->block_offset = frames->offset;
		frames->offset += look.bytes;
		if (number_fits(frames, summary)) {
			*ret_words = look.words;
			return 1;
		}
		frames_blame(frames);
	}
}
