/* SPDX-License-Identifier: Apache-2.0 */
/* What failed? */
#include "report.h"

#include "event.h"

#include <stdlib.h>

#define SHOWN 4

static const struct {
	int64_t result;
	const char *word;
} results[] = {
	{1, "invalid value"},   {2, "out of memory"},     {3, "not initialised"},
	{100, "no device"},     {201, "invalid context"}, {700, "illegal address"},
	{719, "launch failed"}, {801, "not supported"},   {999, "unknown driver error"},
};

static const char *const outcomes[] = {
	[FAILURE_RETRIED] = "retried with success: not an OOM",
	[FAILURE_SURVIVED] = "never got, but the program went on",
	[FAILURE_FATAL] = "never got; the program ended",
};

static const char *result_word(int64_t result)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == result)
			return results[i].word;
	return "refused";
}

/* Bytes in the pool that the refused request could not get at: the mark of cache read as used. */
static void emit_pool_then(struct emitter *e, const struct failure *f)
{
	emit_only(e, report_range("free", f->at.layers.free),
	          report_range("weight_cache", f->at.layers.weight_cache),
	          report_range("stale_cache", f->at.layers.stale_cache), report_range("demand", f->at.demand),
	          report_range("modelled", f->at.modelled), emit_bytes("device", f->at.layers.device));
}

static void emit_failure(struct emitter *e, const struct report *r, const struct failure *f, bool shown)
{
	const struct event_kind *kind = event_kind_find(f->kind);

	emit_open(e, NULL, NULL);
	emit_say(e,
	         !shown        ? NULL
	         : f->at_least ? "At {time}, {call} of {asked} or more: {result} ({code}); {outcome}."
	                       : "At {time}, {call} of {asked}: {result} ({code}); {outcome}.",
	         emit_time("time", report_since(r, f->time)), emit_word("call", kind ? kind->name : NULL),
	         emit_bytes("asked", f->asked), emit_flag("at_least", f->at_least),
	         emit_word("result", result_word(f->result)),
	         emit_count("code", f->result < 0 ? ST_UNKNOWN : (uint64_t)f->result),
	         emit_word("outcome", outcomes[f->outcome]), emit_bytes("attempted", f->attempted),
	         emit_count("repeats", f->repeats), emit_word("phase", report_phase(f->at.phase)),
	         emit_time("retry_time", f->retry_time ? report_since(r, f->retry_time) : ST_UNKNOWN),
	         emit_bytes("freed_between", f->freed_between));
	emit_pool_then(e, f);
	if (shown && f->attempted)
		emit_text(e, "  {attempted} of handles had been got for it and were given back",
		          emit_bytes("attempted", f->attempted));
	if (shown && f->repeats)
		emit_text(e,
		          f->repeats == 1 ? "  and once more from there"
		                          : "  and {repeats} times more from there",
		          emit_count("repeats", f->repeats));
	if (shown || e->format == EMIT_JSON)
		report_stack(e, r, "stack", "  called from ", f->at.stack);
	emit_close(e);
}

/* What ended the run comes first; retries last. */
static int compare_failures(const void *a, const void *b)
{
	const struct failure *const *x = a, *const *y = b;

	if ((*x)->outcome != (*y)->outcome)
		return (*x)->outcome > (*y)->outcome ? -1 : 1;
	return (*x)->time < (*y)->time ? -1 : (*x)->time > (*y)->time;
}

static void emit_sorted(struct emitter *e, const struct report *r)
{
	const struct model *m = r->model;
	const struct failure **sorted = calloc(m->failure_count + 1, sizeof(*sorted));

	if (!sorted)
		return;
	for (size_t i = 0; i < m->failure_count; i++)
		sorted[i] = &m->failures[i];
	qsort(sorted, m->failure_count, sizeof(*sorted), compare_failures);
	for (size_t i = 0; i < m->failure_count; i++)
		emit_failure(e, r, sorted[i], i < SHOWN);
	free(sorted);
}

/* Exit 137 proves a SIGKILL and no more, and silence proves no clean OOM. */
static const char *nothing_sentence(const struct model *m)
{
	if (!m->exited)
		return "No request was refused; the end of the program is not in the trace.";
	if (m->exit_how == ST_EXIT_SIGNALED)
		return "No request was refused; a signal ended the program, which alone does not say why.";
	return "Nothing: no request was refused.";
}

static const char *more_sentence(const struct model *m)
{
	uint64_t more = m->failures_dropped + bytes_sub(m->failure_count, SHOWN);

	if (!m->failure_count)
		return nothing_sentence(m);
	return more ? "And {further_failures} more." : NULL;
}

/* Of the whole machine, so it need not have been this program. */
static uint64_t oom_kills(const struct model *m)
{
	if (!m->samples || m->first.oom_kills == ST_UNKNOWN || m->last.oom_kills == ST_UNKNOWN)
		return ST_UNKNOWN;
	return bytes_sub(m->last.oom_kills, m->first.oom_kills);
}

void report_failures(struct emitter *e, const struct report *r)
{
	const struct model *m = r->model;
	uint64_t kills = oom_kills(m),
		 hidden = e->format == EMIT_TEXT ? bytes_sub(m->failure_count, SHOWN) : 0;

	emit_list(e, "failures", "What failed?");
	emit_sorted(e, r);
	emit_close(e);
	emit_say(e, more_sentence(m), emit_count("further_failures", m->failures_dropped + hidden));
	emit_say(e,
	         kills && kills != ST_UNKNOWN
	                 ? "The kernel's OOM killer struck on this machine: {oom_kills} times."
	                 : NULL,
	         emit_count("oom_kills", kills));
}
