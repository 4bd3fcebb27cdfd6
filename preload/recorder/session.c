/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"
#include "clock.h"
#include "finish.h"
#include "output.h"
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_EVENTS (100 * MILLISECOND) /* records of the program wait no longer in memory and ring */
#define FLUSH_LOAD   (200 * MILLISECOND) /* nor do ours, while much goes on */
#define FLUSH_REST   SECOND
#define RETRY        SECOND /* after a failed flush */
#define SYNC_LOAD    SECOND
#define SYNC_REST    (5 * SECOND)
#define GATHER       MILLISECOND         /* after a wake: what follows the first record comes along */
#define HELD_UP      (50 * MILLISECOND)  /* between two looks whether what waits can be taken now */
#define EXEC_LOOK    (100 * MILLISECOND) /* after one was announced */
#define EXEC_REST    (5 * SECOND)
#define SWEEP_AFTER  (2 * SECOND)

/* --- into the file --------------------------------------------------------------------------- */

static bool is_dirty(const struct session *session)
{
	return session->out.records != session->flushed_records || drain_unacknowledged(&session->drain);
}

/* On failure all stays as it is: the ring holds the events, the trace what it could take. */
static void flush(struct session *session)
{
	int err = session->whole ? trace_finish(session->out.trace, atomic_load(&session->ring->lost_count))
	                         : trace_flush(session->out.trace);

	session->flushed = clock_now();
	session->retry_at = err ? session->flushed + RETRY : 0;
	if (err)
		return;
	drain_acknowledge(&session->drain);
	session->flushed_records = session->out.records;
	session->dirty_since = 0;
}

void session_drain(struct session *session)
{
	int rc;

	do {
		rc = drain_step(&session->drain);
		if (drain_unacknowledged(&session->drain) >= session->ring->size / 4 &&
		    clock_now() >= session->retry_at)
			flush(session);
	} while (rc > 0);
}

static void catch_up(void *context)
{
	session_drain(context);
}

static uint64_t flush_due(const struct session *session)
{
	uint64_t own = cadence_is_active(&session->cadence, session->dirty_since) ? FLUSH_LOAD : FLUSH_REST;

	if (!session->dirty_since)
		return UINT64_MAX;
	own = session->dirty_since + (drain_unacknowledged(&session->drain) ? FLUSH_EVENTS : own);
	return own > session->retry_at ? own : session->retry_at;
}

/* A failure that was noted is in the file before anything else happens: it may be the last thing that does. */
static void flush_when_due(struct session *session, bool urgent)
{
	uint64_t now = clock_now();
	uint64_t pause = cadence_is_active(&session->cadence, now) ? SYNC_LOAD : SYNC_REST;

	if (is_dirty(session) && !session->dirty_since)
		session->dirty_since = now;
	if ((urgent && is_dirty(session) && now >= session->retry_at) || now >= flush_due(session))
		flush(session);
	if (now - session->synced < pause || trace_written(session->out.trace) == session->written_at_sync)
		return;
	session->synced = now;
	session->written_at_sync = trace_written(session->out.trace);
	syncer_ask(&session->syncer);
}

/* --- beginning ------------------------------------------------------------------------------- */

static int make_trace(struct st_ring *ring, struct trace **ret_trace)
{
	char path[sizeof(ring->trace)] = "", text[sizeof(ring->recorder_text)];
	int err = output_make(ring, true, ret_trace, path, sizeof(path));

	if (!err) {
		memcpy(ring->trace, path, sizeof(path));
		return 0;
	}
	snprintf(text, sizeof(text), "cannot make the trace %.160s", path);
	ringfile_fail(ring, err, text);
	return err;
}

static void start(struct session *session, struct st_ring *ring, uint64_t ring_ino)
{
	uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE);

	session->ring = ring;
	session->started = session->flushed = session->synced = clock_now();
	session->cadence.rest = recorder_setting_ms(ring->settings, "SPARKTRACE_SAMPLE_REST");
	session->cadence.load = recorder_setting_ms(ring->settings, "SPARKTRACE_SAMPLE_LOAD");
	session->cadence.edge = recorder_setting_ms(ring->settings, "SPARKTRACE_SAMPLE_EDGE");
	sampler_init(&session->sampler, ring);
	sampler_take(&session->sampler, &session->out, ST_MOMENT_START, true);
	session->sampled = clock_now();
	session->oom_kills_start = session->sampler.last.oom_kills;
	cache_init(&session->cache, page_size);
	shards_init(&session->shards, page_size);
	anon_init(&session->anon, ring->pid, page_size, catch_up, session);
	symbols_init(&session->symbols, ring->pid);
	drain_init(&session->drain, ring, &session->out);
	session->drain.observe = session_watch;
	session->drain.context = session;
	session_drain(session); /* weight files are looked at before anything else is done */
	facts_write(&session->facts, ring, &session->out);
	follow_init(&session->follow, ring, ring_ino);
	syncer_init(&session->syncer, session->out.trace);
}

static void release(struct session *session)
{
	syncer_release(&session->syncer);
	follow_release(&session->follow);
	facts_release(&session->facts);
	packages_release(&session->packages);
	symbols_release(&session->symbols);
	anon_release(&session->anon);
	shards_release(&session->shards);
	weights_release(&session->weights);
	cache_release(&session->cache);
	sampler_release(&session->sampler);
	free(session->formats);
}

/* --- running --------------------------------------------------------------------------------- */

static bool is_over(struct session *session)
{
	uint64_t now = clock_now();
	bool announced = now < session->exec_until, look = false;

	if (now >= session->next_exec_look) {
		look = announced || follow_has_moved(&session->follow);
		session->next_exec_look = now + (announced ? EXEC_LOOK : EXEC_REST);
	}
	return follow_is_over(&session->follow, look);
}

/*
 * What waits in the ring ends its sleep at once: where it cannot be taken (a program that was stopped half-way through a
 * record, a full disk), that would be a loop without any.
 */
static uint64_t pause_after(const struct session *session)
{
	uint64_t now = clock_now(), stuck = session->drain.stuck_since;
	uint64_t waiting = atomic_load(&session->ring->head) - session->drain.read;

	if (atomic_load(&session->follow.dead))
		return 0;
	if (now < session->retry_at || (stuck && now - stuck > SECOND))
		return HELD_UP;
	if (stuck)
		return GATHER;
	return waiting < session->ring->size / 8 && !atomic_load(&session->ring->exiting) ? GATHER : 0;
}

static void sleep_until_due(struct session *session, bool more)
{
	uint64_t now = clock_now(), due = session_due(session), flush_at = flush_due(session);
	struct timespec pause = {0};

	due = flush_at < due ? flush_at : due;
	due = now < session->exec_until && session->next_exec_look < due ? session->next_exec_look : due;
	if (more || due <= now)
		return;
	if (due - now > SECOND)
		due = now + SECOND; /* losses of precision and clocks that jump cost a second at most */
	ringfile_wait(session->ring, session->drain.read, due - now);
	pause.tv_nsec = (long)pause_after(session);
	if (pause.tv_nsec)
		nanosleep(&pause, NULL);
}

static void sweep(struct session *session, bool *swept)
{
	if (*swept || clock_now() - session->started < SWEEP_AFTER)
		return;
	*swept = true;
	finish_beside(session->ring->path);
}

static void follow_program(struct session *session)
{
	bool swept = false, more;

	while (!is_over(session)) {
		uint32_t moments;

		session_drain(session);
		moments = session->moments;
		session_look(session, clock_now());
		more = session_study(session, false);
		flush_when_due(session, moments != 0);
		if (atomic_load(&session->ring->exiting) && !session->whole &&
		    clock_now() >= session->next_finish) {
			session_finish(session);
			session->next_finish = clock_now() + FLUSH_EVENTS;
		}
		sweep(session, &swept);
		sleep_until_due(session, more);
	}
	session_end(session);
	if (!swept)
		finish_beside(session->ring->path);
}

int session_run(struct st_ring *ring, uint64_t ring_ino)
{
	static struct session session;
	int err = make_trace(ring, &session.out.trace);

	if (err)
		return err;
	ringfile_set_state(ring, ST_RECORDER_RUNNING);
	start(&session, ring, ring_ino);
	follow_program(&session);
	trace_sync(session.out.trace);
	release(&session);
	trace_free(session.out.trace);
	return session.whole ? 0 : -ENOSPC;
}
