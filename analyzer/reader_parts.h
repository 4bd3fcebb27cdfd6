/* SPDX-License-Identifier: Apache-2.0 */
/* What reader.c is made of: the file's frames, and a copy of what waits in a ring. For reader*.c alone. */
#ifndef SPARKTRACE_READER_PARTS_H
#define SPARKTRACE_READER_PARTS_H

#include "reader.h"

#include <stddef.h>
#include <zstd.h>

/* A compressed block is never longer than this, so a window of it shows every whole frame. */
#define FRAME_MAX ZSTD_COMPRESSBOUND(ST_BLOCK_MAX)

/* Notes one more problem; beyond READER_PROBLEMS_MAX they are only counted. */
__attribute__((format(printf, 4, 5))) void problem_add(struct reader_summary *summary, uint64_t offset,
                                                       bool in_ring, const char *format, ...);

/* --- a frame, by itself --------------------------------------------------------------------------- */

/* What a look at one place in the file gave. */
struct look {
	const char *refusal; /* NULL: a good block */
	size_t bytes;        /* of the frame, where that is known */
	size_t words;        /* decompressed */
	bool cut;            /* the file ends inside the frame */
};

/* Looks at the frame that `data` begins with; the block in it goes to `words`, which has ST_BLOCK_MAX bytes. */
void look_at_frame(ZSTD_DCtx *zstd, uint64_t *words, const unsigned char *data, size_t bytes,
                   struct look *ret_look);

/*
 * A thread that decompresses one block while another is being read, a third of the time of a pass. It only ever
 * saves work: what it could not do is done without it. NULL stands for none.
 */
struct ahead;
struct ahead *ahead_new(int fd);
void ahead_free(struct ahead *ahead);

/* Begins with the frame at `offset` of a file of `size` bytes. `guess`: more bytes than it will have, probably. */
void ahead_ask(struct ahead *ahead, uint64_t offset, uint64_t size, size_t guess);

/* True: a good block is there, and *words was exchanged for the one that holds it. */
bool ahead_take(struct ahead *ahead, uint64_t offset, uint64_t **words, struct look *ret_look);

/* --- frames: the file, one whole block after the other ------------------------------------------ */

struct frames {
	int fd;
	uint64_t size, offset; /* of the file, of the next frame */
	uint64_t search_end;   /* no block that comes after damage is looked for behind this */
	uint64_t work;         /* bytes that failed tries may still cost, so that no input takes for ever */
	uint64_t next_number;  /* of the next block */
	uint64_t block_offset; /* where the block last returned began */

	unsigned char *window; /* file bytes from window_base on */
	uint64_t window_base;
	size_t window_used;

	ZSTD_DCtx *zstd;
	uint64_t *block; /* ST_BLOCK_MAX bytes */
	struct ahead *ahead;
};

/*
 * Takes the descriptor over once it returns 0. Frames are read as far as the file reached at this moment.
 * -ENOMEM, or as fstat and pread.
 */
int frames_init(struct frames *frames, int fd);
void frames_release(struct frames *frames);
void frames_rewind(struct frames *frames);

/* The file's head. 0; -EBADMSG: there is none; -EPROTONOSUPPORT: a version that we cannot read; -EIO. */
int frames_head(int fd, struct st_file_head *ret_head);

/* 1 and the next good block, 0 at the end; notes in `summary` what it steps over. Negative errno. */
int frames_next(struct frames *frames, struct reader_summary *summary, size_t *ret_words);

/* The block last returned was bad after all. Too many of these, and nothing more is read. */
void frames_blame(struct frames *frames);

/* --- ring: a copy of the records that wait in it ------------------------------------------------- */

struct ring_copy {
	struct st_file_head head; /* whose ring it is */
	uint64_t *words;          /* committed records, one after the other */
	size_t count, room;       /* in words */
	uint64_t position;        /* of the first, in the ring */
	uint64_t torn, lost, lost_bytes;
	bool alive;
};

/*
 * Copies what is committed above the ring's tail. Call it before the size of the trace file is taken: what
 * leaves the ring in between is then in the file. 0; -EBADMSG: no ring; -EXDEV: not the ring of the process
 * in `expect` (NULL: any); -EAGAIN: the recorder was faster each time; -ENOMEM, or as open and mmap.
 */
int ring_copy_init(struct ring_copy *copy, const char *path, const struct st_file_head *expect);
void ring_copy_release(struct ring_copy *copy);

#endif
