/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: shared pages in which the shim leaves records for the recorder.
 *
 * A file of ST_RING_DATA + size bytes, in /dev/shm where that works, mapped shared by the
 * shim, by the recorder, and, after a kill of both, read by the analyzer. Many producers
 * (all threads of the program), one consumer.
 *
 * POSITIONS are bytes since the first record, always multiples of 8; position p lies at
 * data[p % size]. Records are those of format.h and never wrap: where one does not fit before
 * the end of the data, a record of kind ST_RING_PAD fills the rest (its words may exceed what a
 * record can be only by being ignored: the consumer goes to the next multiple of size), and where
 * fewer than sizeof(struct st_record) bytes are left both sides skip them without a word.
 *
 * PRODUCE	reserve by compare-and-swap of `head` (need + head - tail <= size, else count in
 *		`lost*` and give up, never wait); write everything behind the first word; then
 *		store-release the first word, seq = ST_SEQ_MAGIC | position. That is the commit.
 * CONSUME	at `tail`: load-acquire the first word; it is committed when it equals
 *		ST_SEQ_MAGIC | position. What stands there from an earlier lap or from nothing never
 *		does, so nothing needs to be cleared. Store-release `tail` only after the records are
 *		in the trace file (pwrite done): a kill in between repeats records, and the reader
 *		drops repetitions by seq.
 * DEAD		when the program is dead, a reserved record that was never committed is torn: go on
 *		8 bytes at a time until a word equals ST_SEQ_MAGIC | its position, or `head`.
 * WAKE		the recorder sleeps on the futex `wake` with a time-out and sets `sleeping` before;
 *		a producer that sees `sleeping` set and has something worth it (a moment, or more than
 *		size/4 waiting, or the first record after rest) clears it, adds 1 to `wake` and wakes.
 */
#ifndef SPARKTRACE_RING_H
#define SPARKTRACE_RING_H

#include <sparktrace/format.h>
#include <stdatomic.h>

#define ST_RING_MAGIC   "SPARKRNG"
#define ST_RING_VERSION 2
#define ST_RING_DATA    16384u /* offset of the data in the file */
#define ST_RING_PAD     0u     /* kind of a filler record */

/* What the recorder has come to (field `recorder`). */
enum st_ring_recorder {
	ST_RECORDER_NONE,    /* not started, or could not be */
	ST_RECORDER_RUNNING, /* the trace file is open and named in `trace` */
	ST_RECORDER_FAILED,  /* it runs no more: errno in `recorder_error`, what in `recorder_text` */
	ST_RECORDER_DONE,    /* the trailer is written */
};

struct st_ring {
	/* Written once by the shim before the recorder starts. */
	char magic[8];
	uint32_t version;
	uint32_t page_size;
	uint64_t size; /* bytes of data, a power of two, at most 1 GiB */
	uint32_t pid;
	uint32_t uid;
	uint64_t start_time; /* as in struct st_file_head */
	uint64_t epoch;      /* CLOCK_MONOTONIC when the ring was made, ns */
	uint64_t pids;       /* inode of the namespace in which `pid` is a process, 0: unknown */
	char boot_id[40];
	char path[256];          /* of this ring */
	char directory[1024];    /* the program's working directory: relative outputs start there */
	char library_path[1024]; /* LD_LIBRARY_PATH of the program, for the recorder's own exec and NVML */
	/* The recorder's settings, as NAME=value\n..., validated; names of preload/settings.def */
	char settings[4096];
	char environment[4096]; /* allow-listed variables of the program, NAME=value\n... */

	/* Producers. */
	_Alignas(128) _Atomic uint64_t head; /* reserved up to here */
	_Atomic uint64_t lost_count, lost_bytes;
	_Atomic uint32_t exiting;   /* 1: the program's destructor asks for the last block and waits */
	_Atomic uint32_t simulated; /* 1: the driver is tests/simcuda */

	/* Consumer. */
	_Alignas(128) _Atomic uint64_t tail; /* in the trace file up to here */
	_Atomic uint32_t recorder;           /* enum st_ring_recorder; also a futex for the destructor */
	_Atomic uint32_t recorder_pid;
	_Atomic int32_t recorder_error;
	char recorder_text[200];
	char trace[1024]; /* absolute path of the trace file */

	/* Both. */
	_Alignas(128) _Atomic uint32_t wake;
	_Atomic uint32_t sleeping;
};

_Static_assert(sizeof(struct st_ring) <= ST_RING_DATA, "the ring's head fits before its data");

static inline unsigned char *st_ring_data(struct st_ring *ring)
{
	return (unsigned char *)ring + ST_RING_DATA;
}

#endif
