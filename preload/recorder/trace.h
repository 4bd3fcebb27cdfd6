/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace file (format.h): the head, blocks of whole records, the trailer.
 *
 * Records collect in memory until a block is written; a block is in the file as a whole or not
 * at all. When it cannot be written (disk full, file size limit) the file is cut back to the last
 * whole block, the records stay in memory, up to ST_BLOCK_MAX, and the next flush tries again.
 *
 * Used by the recorder and by `sparktrace-analyze pack`, hence free of everything else here.
 */
#ifndef SPARKTRACE_RECORDER_TRACE_H
#define SPARKTRACE_RECORDER_TRACE_H

#include <sparktrace/format.h>
#include <stddef.h>

struct trace;

struct trace_clocks {
	uint64_t monotonic, boottime, realtime; /* ns */
	int64_t utc_offset;                     /* seconds east of UTC */
};

/* All zero is a good default. */
struct trace_options {
	int level;                         /* of zstd; 0: 3 */
	uint32_t block_size;               /* a block of so many raw bytes is written by itself; 0: 1 MiB */
	const struct trace_clocks *clocks; /* said by every `block` made here; NULL: this machine's, now */
	/* To go on with an existing file: its length in whole blocks (0: new, the head is written), */
	uint64_t offset;
	uint64_t blocks, records; /* and what these blocks hold */
};

/*
 * Makes the file (which must not exist, mode 0600) and writes its head. Nothing is left behind on
 * failure. Errors: those of open, write; -ENOMEM.
 */
int trace_create(const char *path, const struct st_file_head *head, const struct trace_options *options,
                 struct trace **ret_trace);

/*
 * The same on an open descriptor, which belongs to the trace from then on; after a failure it is
 * still the caller's. A descriptor that cannot seek (a pipe) is written in order, and a failure
 * in the middle of a block is then final.
 */
int trace_create_fd(int fd, const struct st_file_head *head, const struct trace_options *options,
                    struct trace **ret_trace);

/*
 * Takes a copy of one record. A `block` record ends the block before it and begins a new one with
 * just these contents; without it, blocks and their numbers and clocks are made here. A `trailer`
 * is a record like any other.
 *
 * 0; -EINVAL: the record's length is no record's; or the error of the write when there is no more
 * room in memory either: the record was not taken and may be given again.
 */
int trace_append(struct trace *trace, const struct st_record *record);

/* Writes what has collected as one block; nothing when nothing has. On an error it is kept. */
int trace_flush(struct trace *trace);

/* fdatasync. May be called from another thread than the rest. Later blocks say when it was done. */
int trace_sync(struct trace *trace);

/*
 * Makes the trace whole: what has collected, then a small block with the trailer. `lost`: events
 * that found no room. On an error it may be called again. Records may still be appended: the next
 * trace_finish then writes over the trailer's block with one that holds them too, so that the file
 * is whole between the two (not on a pipe).
 */
int trace_finish(struct trace *trace, uint64_t lost);

/* Bytes in the file, and raw bytes of records that are not in it yet. */
uint64_t trace_written(const struct trace *trace);
size_t trace_pending(const struct trace *trace);

/* Closes and frees; what was not flushed is dropped. NULL is allowed. */
void trace_free(struct trace *trace);

#endif
