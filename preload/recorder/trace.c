/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define BLOCK_DEFAULT (1u << 20)
#define HEAD_BYTES    (8 + sizeof(struct st_file_head))

struct trace {
	int fd;
	bool seeks;         /* pwrite works: a failed block can be cut off again */
	uint64_t offset;    /* end of the last whole block: where the collected one goes */
	uint64_t block_end; /* end of the block just written there */
	uint64_t file_end;
	bool finished; /* that block has the trailer, and its records are still collected here */

	/* The block being collected: a `block` record first, as soon as there is any other. */
	unsigned char *raw;
	size_t used, room;
	bool given;        /* its `block` record came from outside */
	size_t next_try;   /* a failed flush is tried again by append at this length */
	uint32_t in_block; /* records in it */
	uint32_t block_size;

	uint64_t blocks, records; /* in whole blocks; the first is also the next number */
	const struct trace_clocks *fixed_clocks;
	struct trace_clocks clocks_copy;
	_Atomic uint64_t synced;

	ZSTD_CCtx *zstd;
	unsigned char *packed;
	size_t packed_room;
};

static void read_clocks(struct trace_clocks *ret_clocks)
{
	time_t seconds;
	struct tm local = {0};

	ret_clocks->monotonic = clock_read(CLOCK_MONOTONIC);
	ret_clocks->boottime = clock_read(CLOCK_BOOTTIME);
	ret_clocks->realtime = clock_read(CLOCK_REALTIME);
	seconds = (time_t)(ret_clocks->realtime / SECOND);
	localtime_r(&seconds, &local);
	ret_clocks->utc_offset = local.tm_gmtoff;
}

/* --- bytes into the file --------------------------------------------------------------------- */

static int write_all(struct trace *trace, const unsigned char *data, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = trace->seeks ? pwrite(trace->fd, data + done, bytes - done,
		                                  (off_t)(trace->offset + done))
		                         : write(trace->fd, data + done, bytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* All of it behind the last whole block, or nothing; and nothing behind it. */
static int write_piece(struct trace *trace, const unsigned char *data, size_t bytes)
{
	int err = write_all(trace, data, bytes);
	uint64_t end = trace->offset + (err ? 0 : bytes);

	/* Cutting fails only where writing does; a torn tail is written over by the next try. */
	if (trace->seeks && (err || end < trace->file_end) && ftruncate(trace->fd, (off_t)end) && !err)
		err = -errno;
	trace->file_end = end;
	return err;
}

static int write_head(struct trace *trace, const struct st_file_head *head)
{
	const uint32_t frame[2] = {ST_SKIPPABLE_MAGIC, sizeof(*head)};
	unsigned char bytes[HEAD_BYTES];
	int err;

	memcpy(bytes, frame, sizeof(frame));
	memcpy(bytes + sizeof(frame), head, sizeof(*head));
	err = write_piece(trace, bytes, sizeof(bytes));
	if (!err)
		trace->offset = sizeof(bytes);
	return err;
}

/* --- life ------------------------------------------------------------------------------------ */

void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	if (trace->fd >= 0)
		close(trace->fd);
	ZSTD_freeCCtx(trace->zstd);
	free(trace->packed);
	free(trace->raw);
	free(trace);
}

static int prepare(struct trace *trace, int fd, const struct trace_options *options)
{
	trace->fd = -1; /* the caller's until all has gone well */
	trace->seeks = lseek(fd, 0, SEEK_CUR) >= 0;
	trace->offset = options->offset;
	trace->file_end = options->offset;
	trace->blocks = options->blocks;
	trace->records = options->records;
	trace->block_size = options->block_size ? options->block_size : BLOCK_DEFAULT;
	if (trace->block_size > ST_BLOCK_MAX)
		trace->block_size = ST_BLOCK_MAX;
	if (options->clocks) {
		trace->clocks_copy = *options->clocks;
		trace->fixed_clocks = &trace->clocks_copy;
	}
	trace->zstd = ZSTD_createCCtx();
	if (!trace->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(trace->zstd, ZSTD_c_compressionLevel, options->level ? options->level : 3);
	ZSTD_CCtx_setParameter(trace->zstd, ZSTD_c_contentSizeFlag, 1);
	ZSTD_CCtx_setParameter(trace->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
}

int trace_create_fd(int fd, const struct st_file_head *head, const struct trace_options *options,
                    struct trace **ret_trace)
{
	static const struct trace_options none;
	struct trace *trace = calloc(1, sizeof(*trace));
	int err;

	if (!trace)
		return -ENOMEM;
	err = prepare(trace, fd, options ? options : &none);
	trace->fd = fd;
	if (!err && !trace->offset)
		err = write_head(trace, head);
	if (err) {
		trace->fd = -1;
		trace_free(trace);
		return err;
	}
	*ret_trace = trace;
	return 0;
}

int trace_create(const char *path, const struct st_file_head *head, const struct trace_options *options,
                 struct trace **ret_trace)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = trace_create_fd(fd, head, options, ret_trace);
	if (err) {
		unlink(path);
		close(fd);
	}
	return err;
}

uint64_t trace_written(const struct trace *trace)
{
	return trace->file_end;
}

size_t trace_pending(const struct trace *trace)
{
	return trace->used;
}

/* --- collecting ------------------------------------------------------------------------------ */

/* Room for `bytes` more, in steps of a power of two. Without it the block must be written first. */
static int make_room(struct trace *trace, size_t bytes)
{
	size_t room = trace->room ? trace->room : 65536;
	unsigned char *raw;

	if (trace->used + bytes > ST_BLOCK_MAX)
		return -ENOBUFS;
	while (room < trace->used + bytes)
		room *= 2;
	if (room == trace->room)
		return 0;
	raw = realloc(trace->raw, room);
	if (!raw)
		return -ENOMEM;
	trace->raw = raw;
	trace->room = room;
	return 0;
}

static void put_record(struct trace *trace, const struct st_record *record, size_t bytes)
{
	memcpy(trace->raw + trace->used, record, bytes);
	trace->used += bytes;
	trace->in_block++;
}

/* Its fields are filled in when the block is written: the clocks are those of that instant. */
static void begin_block(struct trace *trace)
{
	const struct st_ev_block block = {
		.r = {.kind = ST_KIND_block, .words = sizeof(block) / 8},
		.minor = ST_FORMAT_MINOR,
	};

	put_record(trace, &block.r, sizeof(block));
	trace->given = false;
}

/* Writes a block that has come to its size. A failure counts only once there is no room either. */
static int flush_before(struct trace *trace, size_t bytes)
{
	size_t limit = trace->next_try ? trace->next_try : trace->block_size;
	int err;

	if (!trace->used || trace->used + bytes <= limit)
		return 0;
	err = trace_flush(trace);
	if (err && trace->used + bytes <= ST_BLOCK_MAX) {
		trace->next_try = trace->used + bytes + trace->block_size;
		if (trace->next_try > ST_BLOCK_MAX)
			trace->next_try = ST_BLOCK_MAX;
		err = 0;
	}
	return err;
}

static int append_given_block(struct trace *trace, const struct st_record *record, size_t bytes)
{
	struct st_ev_block block;
	int err;

	if (bytes < sizeof(block))
		return -EINVAL;
	err = trace_flush(trace);
	if (!err)
		err = make_room(trace, bytes);
	if (err)
		return err;
	memcpy(&block, record, sizeof(block));
	put_record(trace, record, bytes);
	trace->given = true;
	trace->blocks = block.number;
	return 0;
}

int trace_append(struct trace *trace, const struct st_record *record)
{
	size_t bytes = (size_t)record->words * 8, need = bytes;
	int err;

	if (bytes < sizeof(*record))
		return -EINVAL;
	if (record->kind == ST_KIND_block)
		return append_given_block(trace, record, bytes);
	err = flush_before(trace, need);
	if (err)
		return err;
	if (!trace->used)
		need += sizeof(struct st_ev_block);
	err = make_room(trace, need);
	if (err)
		return err;
	if (!trace->used)
		begin_block(trace);
	put_record(trace, record, bytes);
	return 0;
}

/* --- writing --------------------------------------------------------------------------------- */

static void stamp_block(struct trace *trace)
{
	struct st_ev_block *block = (struct st_ev_block *)(void *)trace->raw;
	struct trace_clocks now;

	if (trace->fixed_clocks)
		now = *trace->fixed_clocks;
	else
		read_clocks(&now);
	block->r.time = now.monotonic;
	block->number = trace->blocks;
	block->monotonic = now.monotonic;
	block->boottime = now.boottime;
	block->realtime = now.realtime;
	block->utc_offset = (uint64_t)now.utc_offset;
	block->synced = atomic_load_explicit(&trace->synced, memory_order_acquire);
}

static int pack_block(struct trace *trace, size_t *ret_bytes)
{
	size_t bound = ZSTD_compressBound(trace->used), bytes;

	if (bound > trace->packed_room) {
		unsigned char *packed = realloc(trace->packed, bound);

		if (!packed)
			return -ENOMEM;
		trace->packed = packed;
		trace->packed_room = bound;
	}
	bytes = ZSTD_compress2(trace->zstd, trace->packed, trace->packed_room, trace->raw, trace->used);
	if (ZSTD_isError(bytes))
		return -ENOMEM; /* the room suffices, so only memory can fail */
	*ret_bytes = bytes;
	return 0;
}

/* The collected block goes behind the last whole one; to count it as whole is the caller's. */
static int write_block(struct trace *trace)
{
	size_t bytes;
	int err;

	if (!trace->given)
		stamp_block(trace);
	err = pack_block(trace, &bytes);
	if (!err)
		err = write_piece(trace, trace->packed, bytes);
	if (!err)
		trace->block_end = trace->offset + bytes;
	return err;
}

int trace_flush(struct trace *trace)
{
	int err;

	if (!trace->used)
		return 0;
	err = write_block(trace);
	if (err)
		return err;
	trace->offset = trace->block_end;
	trace->blocks++;
	trace->records += trace->in_block;
	trace->used = 0;
	trace->in_block = 0;
	trace->next_try = 0;
	trace->finished = false;
	return 0;
}

int trace_sync(struct trace *trace)
{
	if (fdatasync(trace->fd) && errno != EINVAL && errno != EROFS) /* EINVAL: a pipe */
		return -errno;
	atomic_store_explicit(&trace->synced, clock_read(CLOCK_MONOTONIC), memory_order_release);
	return 0;
}

/* The block that the trailer closes stays in memory: whatever follows takes its place in the file. */
int trace_finish(struct trace *trace, uint64_t lost)
{
	struct st_ev_trailer trailer = {
		.r = {.kind = ST_KIND_trailer, .words = sizeof(trailer) / 8},
		.lost = lost,
	};
	size_t used;
	int err = trace->finished ? 0 : trace_flush(trace);

	if (!err)
		err = make_room(trace, sizeof(trailer) + sizeof(struct st_ev_block));
	if (err)
		return err;
	if (!trace->used)
		begin_block(trace);
	used = trace->used;
	trailer.r.time = trace->fixed_clocks ? trace->fixed_clocks->monotonic : clock_read(CLOCK_MONOTONIC);
	trailer.blocks = trace->blocks + 1;
	trailer.records = trace->records + trace->in_block + 1;
	put_record(trace, &trailer.r, sizeof(trailer));
	err = write_block(trace);
	trace->used = used;
	trace->in_block--;
	trace->finished = !err;
	return err;
}
