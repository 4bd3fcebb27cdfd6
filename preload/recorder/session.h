/* SPDX-License-Identifier: Apache-2.0 */
/* One recording, from the ring's first record to the program's end. */
#ifndef SPARKTRACE_RECORDER_SESSION_H
#define SPARKTRACE_RECORDER_SESSION_H

#include "anon.h"
#include "cache.h"
#include "cadence.h"
#include "drain.h"
#include "facts.h"
#include "follow.h"
#include "packages.h"
#include "ringfile.h"
#include "sample.h"
#include "shards.h"
#include "symbols.h"
#include "syncer.h"
#include "weights.h"

struct session {
	struct st_ring *ring;
	struct out out;
	struct drain drain;
	struct follow follow;
	struct sampler sampler;
	struct cadence cadence;
	struct cache cache;
	struct weights weights;
	struct shards shards;
	struct anon anon;
	struct symbols symbols;
	struct packages packages;
	struct facts facts;
	struct syncer syncer;

	/* What the events have asked for (watch.c) and has not been done. */
	uint32_t moments;    /* bits of enum st_moment */
	uint64_t copied;     /* bytes from host to device */
	uint64_t exec_until; /* an exec was announced: it is looked for until then */
	uint8_t *formats;    /* enum st_file_format of each file, by identifier */
	uint32_t formats_room;
	uint64_t lost; /* ring->lost_count, as of the table of mappings */

	/* What has been done. */
	uint64_t modules_asked; /* symbols.modules.next when their packages were asked for */
	uint64_t copied_sampled;
	uint64_t next_exec_look, next_finish;
	uint64_t sampled, looked, scanned; /* when last */
	uint64_t flushed_records;          /* out.records at the last flush */
	uint64_t dirty_since;              /* something is not in the file for so long; 0: all is */
	uint64_t retry_at;                 /* a failed flush is not tried again before */
	uint64_t flushed, synced;          /* when last */
	uint64_t written_at_sync;
	uint64_t started;
	bool whole;               /* the trailer is in the file */
	uint64_t oom_kills_start; /* of the first sample */
};

/*
 * Makes the trace and follows the program until its end and the aftermath. ring_ino: inode of the
 * ring's file. 0; -ENOSPC: the trace is not whole, what is missing is in the ring, which must stay; or
 * why there is no trace at all. The ring's head then says what it was.
 */
int session_run(struct st_ring *ring, uint64_t ring_ino);

/* watch.c: what an event means for the recorder. `context` is the session. */
void session_watch(void *context, const struct st_record *record);

/* look.c: samples, page cache, anonymous pages. Moments that were asked for first, then what is due. */
void session_look(struct session *session, uint64_t now);

/* Names, tensors, facts that come late. `hurry`: now, at whatever price. True: there is more to do. */
bool session_study(struct session *session, bool hurry);

/* When the next look is due, CLOCK_MONOTONIC. */
uint64_t session_due(const struct session *session);

/* Events of the ring into the trace, the tail behind them when they are in the file. */
void session_drain(struct session *session);

/* end.c: the last block before the program's destructor goes on; after its death; the aftermath. */
void session_finish(struct session *session);
void session_end(struct session *session);

#endif
