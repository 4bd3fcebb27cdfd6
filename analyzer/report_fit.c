/* SPDX-License-Identifier: Apache-2.0 */
/* Did it fit? */
#include "report.h"

static const char *const answers[VERDICT_COUNT] = {
	[VERDICT_FITS] = "Yes, it {verdict}: it needs {needed_peak}, the budget is {budget_now}.",
	[VERDICT_AFTER_FLUSH] = "It {verdict}: it needs {needed_peak}; {budget_now} were free at "
				"the start, {budget_after_flush} are once the page cache is flushed.",
	[VERDICT_TIGHT] = "Just so, {verdict}: it needs {needed_peak} of "
			  "{budget_after_flush}; a margin of {band} should stay.",
	[VERDICT_CANNOT_TELL] = "Cannot tell. Missing: {missing_input}. It needs {needed_peak} as "
				"far as was seen; the budget is {budget_after_flush}.",
	[VERDICT_DOES_NOT_FIT] =
		"No, it {verdict}: it needs {needed_peak}, the budget is {budget_after_flush}.",
};

static const char *const sources[] = {"measured", "given", "projected"};

static void say_verdict(struct emitter *e, const struct report *r)
{
	const struct budget *b = &r->budget;
	uint64_t room = bytes_sub(b->flush, r->model->needed.demand.hi);
	uint64_t host = budget_host_need(r->model);
	const char *answer = answers[r->judgement.verdict];

	if (budget_limit_binds(b, r->model))
		answer = "No, it {verdict}: it needs {host_needed} of host memory at least, more than its "
			 "cgroup may have.";
	emit_say(e, answer, emit_word("verdict", verdict_names[r->judgement.verdict]),
	         emit_word("missing_input", r->judgement.missing),
	         report_range("needed_peak", r->model->needed.demand),
	         report_range("needed_modelled", r->model->needed.modelled), emit_bytes("budget_now", b->now),
	         emit_bytes("budget_after_flush", b->flush), emit_bytes("band_now", b->band_now),
	         emit_bytes("band", b->band_flush), emit_word("budget_source", sources[b->source]),
	         emit_bytes("headroom", b->flush == ST_UNKNOWN ? ST_UNKNOWN : room),
	         emit_bytes("host_needed", host || r->model->host_seen ? host : ST_UNKNOWN));
}

/* Where a measured budget comes from; NULL for another. */
static const char *start_sentence(const struct report *r)
{
	static const char *const sentences[2][2] = {
		{"At the start, of {mem_total}: free {mem_free}, available {mem_available}; {reserve} are "
	         "kept back.",
	         "At the start, of {mem_total}: free {mem_free} and {percpu_free} in per-CPU lists, "
	         "available {mem_available}; {reserve} are kept back."},
		{"At the start, of {mem_total}: free {mem_free}, available {mem_available}; {watermark} are "
	         "kept back for the kernel's watermarks, {reserve} after a flush.",
	         "At the start, of {mem_total}: free {mem_free} and {percpu_free} in per-CPU lists, "
	         "available {mem_available}; {watermark} are kept back for the kernel's watermarks, "
	         "{reserve} after a flush."},
	};
	const struct budget *b = &r->budget;
	uint64_t parked = r->model->first.percpu;

	if (b->source != BUDGET_MEASURED || b->missing)
		return NULL;
	return sentences[b->watermark != ST_UNKNOWN && b->watermark > b->reserve]
			[parked != ST_UNKNOWN && parked];
}

static void say_budget(struct emitter *e, const struct report *r)
{
	const struct pool_state *p = &r->model->first;
	bool sampled = r->model->samples;

	emit_open(e, "start", NULL);
	emit_say(e, start_sentence(r), emit_bytes("mem_total", sampled ? p->total : ST_UNKNOWN),
	         emit_bytes("mem_free", sampled ? p->free : ST_UNKNOWN),
	         emit_bytes("percpu_free", sampled ? p->percpu : ST_UNKNOWN),
	         emit_bytes("mem_available", sampled ? p->available : ST_UNKNOWN),
	         emit_bytes("reserve", r->budget.reserve), emit_bytes("watermark", r->budget.watermark));
	emit_close(e);
}

static void say_death(struct emitter *e, const struct report *r)
{
	const struct needed *n = &r->model->needed;
	const struct load *load = &r->model->load;
	struct emit_field phase = emit_word("died_in", report_phase(n->died_in));
	struct emit_field request = emit_bytes("request", n->request);
	struct emit_field observed =
		report_range("observed_peak", r->model->moments[MOMENT_DEMAND_PEAK].demand);
	struct emit_field modelled = report_range("observed_modelled", load->modelled);

	if (n->died_in == PHASE_LOAD)
		emit_say(e,
		         "It ended in the load, with {loaded} of {would_load} loaded; "
		         "observed {observed_peak}, the rest of the load is in the need.",
		         report_range("loaded", load->loaded), report_range("would_load", load->would_load),
		         observed, phase, request, modelled);
	else if (n->died_in != PHASE_COUNT && n->request)
		emit_say(e,
		         n->at_least ? "It ended in the phase `{died_in}`; observed {observed_peak}, and "
		                       "{request} or more were asked for on top."
		                     : "It ended in the phase `{died_in}`; observed {observed_peak}, and "
		                       "{request} more were asked for.",
		         observed, phase, request, modelled);
	else if (n->died_in != PHASE_COUNT)
		emit_say(e,
		         r->model->exited
		                 ? "It ended in the phase `{died_in}`, before its time; observed "
		                   "{observed_peak}."
		                 : "The trace ends in the phase `{died_in}`; observed {observed_peak}.",
		         observed, phase, request, modelled);
	else
		emit_only(e, observed, phase, request, modelled);
	emit_only(e, emit_flag("later_phases_unknown", n->lower_bound));
}

/* Device memory is in no cgroup: a limit there binds the host part alone. */
static void say_limit(struct emitter *e, const struct report *r)
{
	uint64_t limit = r->budget.host_limit;

	if (limit == ST_UNKNOWN)
		emit_only(e, emit_bytes("cgroup_limit", limit));
	else
		emit_say(e,
		         "A cgroup limit of {cgroup_limit} binds host memory only; device "
		         "memory is not in it.",
		         emit_bytes("cgroup_limit", limit));
	if (!r->model->host_seen)
		emit_line(e, "Host memory of the program was not sampled: it is not in the need.");
}

void report_fit(struct emitter *e, const struct report *r)
{
	emit_open(e, "fit", "Did it fit?");
	say_verdict(e, r);
	say_death(e, r);
	say_budget(e, r);
	say_limit(e, r);
	emit_close(e);
}
