/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "session.h"

#include <time.h>

#define STUDY_LIMIT     (1500 * MILLISECOND) /* a program's destructor waits 2 s for us */
#define AFTERMATH_LIMIT (10 * SECOND)
#define AFTERMATH_STEP  (100 * MILLISECOND)
#define SLACK           (UINT64_C(32) << 20)
#define SETTLED         (UINT64_C(4) << 20) /* bytes a step; less does not count as coming back */

static void finish_trace(struct session *session)
{
	int err = trace_finish(session->out.trace, atomic_load(&session->ring->lost_count));

	session->whole = !err;
	session->flushed = clock_now();
	if (err) {
		ringfile_fail(session->ring, err, "the trace cannot be written, the rest is in the ring");
		return;
	}
	drain_acknowledge(&session->drain);
	session->flushed_records = session->out.records;
	session->dirty_since = 0;
	ringfile_set_state(session->ring, ST_RECORDER_DONE);
}

/* Names are found while the program's destructor waits, so that the trace explains itself at once. */
static void study_all(struct session *session)
{
	uint64_t until = clock_now() + STUDY_LIMIT;

	while (session_study(session, true) && clock_now() < until)
		continue;
}

/* A look costs milliseconds a GiB, and the program waits: not when nothing moved since one of just now. */
static void look_at_cache(struct session *session)
{
	if (clock_now() - session->looked >= session->cadence.load ||
	    cadence_has_moved(&session->cadence, session->looked))
		cache_look(&session->cache, &session->out);
}

/*
 * The program's destructor waits. What comes after it (its death, the aftermath) takes the place of the
 * trailer's block later: the file is whole from here on.
 */
void session_finish(struct session *session)
{
	session_drain(session);
	sampler_take(&session->sampler, &session->out, ST_MOMENT_EXIT, true);
	symbols_place(&session->symbols, &session->out);
	look_at_cache(session);
	study_all(session);
	finish_trace(session);
}

static void write_exit(struct session *session)
{
	uint64_t kills = session->sampler.last.oom_kills;

	if (kills != ST_UNKNOWN && session->oom_kills_start != ST_UNKNOWN)
		kills -= session->oom_kills_start;
	else
		kills = ST_UNKNOWN;
	out_info(&session->out, "recorder_cpu_us", "%llu",
	         (unsigned long long)(clock_read(CLOCK_PROCESS_CPUTIME_ID) / 1000));
	OUT(&session->out, exit, .how = session->follow.how,
	    .status = (uint64_t)(int64_t)session->follow.status, .oom_kills = kills);
}

/* Spare memory at which all that the program held has come back, give or take what others do meanwhile. */
static uint64_t wanted_bytes(const struct sampler *sampler)
{
	const struct st_ev_sample *alive = &sampler->last;
	uint64_t held = 0, slack;

	if (alive->mem_total && alive->rss_anon != ST_UNKNOWN)
		held = alive->rss_anon + (alive->sim_device == ST_UNKNOWN ? 0 : alive->sim_device);
	slack = held / 10 > SLACK ? held / 10 : SLACK;
	return sampler_spare(sampler) + (held > slack ? held - slack : 0);
}

/* At once where all is back already; else until it is and nothing more comes, or for 10 s. */
static void watch_aftermath(struct session *session, uint64_t wanted)
{
	const struct timespec step = {.tv_nsec = (long)AFTERMATH_STEP};
	uint64_t until = clock_now() + AFTERMATH_LIMIT, before;

	do {
		before = sampler_spare(&session->sampler);
		if (before >= wanted)
			return;
		nanosleep(&step, NULL);
		sampler_take(&session->sampler, &session->out, ST_MOMENT_AFTERMATH, false);
		finish_trace(session);
	} while (clock_now() < until && (sampler_spare(&session->sampler) < wanted ||
	                                 sampler_spare(&session->sampler) > before + SETTLED));
}

void session_end(struct session *session)
{
	uint64_t wanted = wanted_bytes(&session->sampler);
	bool execed = session->follow.how == ST_EXIT_EXECED;

	session->drain.dead = true;
	session_drain(session);
	sampler_take(&session->sampler, &session->out, execed ? ST_MOMENT_EXIT : ST_MOMENT_AFTERMATH, false);
	write_exit(session);
	finish_trace(session);
	study_all(session);
	finish_trace(session);
	if (!execed)
		watch_aftermath(session, wanted);
}
