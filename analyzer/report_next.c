/* SPDX-License-Identifier: Apache-2.0 */
/* What to do next? */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void rung_details(struct emitter *e, const struct report *r);

static void detail_flush(struct emitter *e, const struct report *r)
{
	(void)r;
	emit_line(e, "As root, between runs: sync; echo 3 > /proc/sys/vm/drop_caches. "
	             "Without root: posix_fadvise DONTNEED on the weight files. Also "
	             "stop idle servers that hold the pool.");
}

static const struct file_mapping *worst_mapping(const struct weight_file *file)
{
	const struct file_mapping *worst = NULL;

	for (size_t i = 0; i < file->mapping_count; i++)
		if (!worst || file->mappings[i].copied > worst->copied)
			worst = &file->mappings[i];
	return worst;
}

/* Where most of it came from: the mapping, the file, the call. */
static void say_source(struct emitter *e, const struct report *r, const struct weight_file *file)
{
	const struct file_mapping *worst = worst_mapping(file);
	const char *sentence = "{file} left {anon_copies} of anonymous copies and {staging} of staging.";

	if (worst && file->anon_peak >= file->at_peak.staging)
		sentence = "The {mapping} of {file} left {anon_copies} of anonymous copies.";
	else if (!file->anon_peak)
		sentence = "{file} went through {staging} of staging.";
	emit_say(e, sentence, emit_path("file", file->path),
	         emit_word("mapping", worst ? report_mapping(worst) : NULL),
	         emit_bytes("anon_copies", file->anon_peak), emit_bytes("staging", file->at_peak.staging),
	         emit_bytes("spare", r->model->load.spare));
	report_stack(e, r, "stack", worst ? "mapped by " : "opened by ",
	             worst ? worst->stack : file->open_stack);
	if (worst && worst->copied && worst->flags & MAP_PRIVATE && worst->prot & PROT_WRITE)
		emit_line(e, "Copies straight out of a private writable mapping break "
		             "copy-on-write, page by page.");
}

static void detail_load(struct emitter *e, const struct report *r)
{
	const struct weight_file *file = report_culprit(r);

	if (file)
		say_source(e, r, file);
	report_say_repairs(e, r);
	if (!repairs_best(&r->ladder.repairs))
		emit_line(e, "Map read-only, stage through pinned memory (safetensors 0.8 or "
		             "newer does), use the pread back end, drop each shard after its "
		             "copy, or use fewer loader threads.");
}

static void detail_pack(struct emitter *e, const struct report *r)
{
	const struct pack_plan *plan = &r->ladder.pack;

	if (plan->pack != ST_UNKNOWN)
		emit_say(e, "Packing length {old} -> {new}.", emit_count("old", r->options->pack),
		         emit_count("new", plan->pack));
	if (plan->batch != ST_UNKNOWN)
		emit_say(e, "Batch {old_batch} -> {new_batch}.", emit_count("old_batch", r->options->batch),
		         emit_count("new_batch", plan->batch));
	emit_say(e,
	         plan->factor_lo >= plan->factor_hi
	                 ? "Activations of {act} may keep a share of {f_high} (f)."
	                 : "Activations of {act} may keep a share of at most {f_high} (f).",
	         emit_ratio("f_high", plan->factor_hi), report_range("act", plan->activations));
	if (plan->upper_bound)
		emit_line(e, "The run died: f is an upper bound, more may have been wanted.");
}

static void detail_method(struct emitter *e, const struct report *r)
{
	const struct method_plan *plan = &r->ladder.method;

	if (plan->to != METHOD_UNKNOWN)
		emit_say(e, "From {from} to {to}.", emit_word("from", method_names[plan->from]),
		         emit_word("to", method_names[plan->to]));
	if (plan->half_step != ST_UNKNOWN)
		emit_say(e, "Half a step: an 8-bit optimizer alone frees {half_step}.",
		         emit_bytes("half_step", plan->half_step));
}

static void detail_sparks(struct emitter *e, const struct report *r)
{
	const struct sparks_plan *plan = &r->ladder.sparks;

	if (plan->sparks)
		emit_say(e,
		         "{sparks} Sparks with FSDP, which shards {shared}; or a model of "
		         "{share} of this one's size.",
		         emit_count("sparks", plan->sparks), report_range("shared", plan->shared),
		         emit_share("share", plan->model_share));
}

static rung_details *const details[RUNG_COUNT] = {
	detail_flush, detail_load, detail_pack, detail_method, detail_sparks,
};

static const struct emit_column columns[] = {
	{"", false},          {"", false},
	{NULL, false},        {NULL, false},
	{"rung", false},      {"relief", true},
	{"needs then", true}, {NULL, false},
	{NULL, false},        {"verdict then, and why", false},
};

static bool is_next(const struct report *r, enum rung rung)
{
	return r->ladder.next_kind == NEXT_RUNG && r->ladder.next == rung;
}

/* Why a rung would not help a run that needs no help is for those who look for it: JSON has it. */
static bool is_worth_a_line(const struct report *r, const struct rung_result *rung)
{
	return r->ladder.next_kind != NEXT_NONE || rung->state == RUNG_APPLIES || rung->tried;
}

/* Is what is missing for a rung in the sentence before the table already? */
static bool is_said(const struct emitter *e, const struct report *r, const struct rung_result *rung)
{
	const char *next = r->ladder.next_kind == NEXT_RUNG ? r->ladder.rungs[r->ladder.next].missing : NULL;

	return e->format == EMIT_TEXT && next && rung->missing && !strcmp(next, rung->missing);
}

/* The last column: verdict, what is missing, why; long only where somebody has to know more. */
static char *verdict_cell(const struct emitter *e, const struct report *r, const struct rung_result *rung)
{
	char *text = NULL;
	int length;

	if (rung->tried)
		length = asprintf(&text, "tried already");
	else if (rung->state == RUNG_NOT)
		length = asprintf(&text, "no: %s", rung->reason);
	else if (rung->state == RUNG_UNKNOWN && is_said(e, r, rung))
		length = asprintf(&text, "cannot tell, for want of that");
	else if (rung->state == RUNG_UNKNOWN)
		length = asprintf(&text, "cannot tell; missing: %s", rung->missing);
	else
		length = asprintf(&text, "%s", verdict_names[rung->judgement.verdict]);
	return length < 0 ? NULL : text;
}

static void emit_rung(struct emitter *e, const struct report *r, const struct rung_result *rung)
{
	char *text = verdict_cell(e, r, rung);
	struct emit_field relief = report_range("relief", rung->relief);
	struct emit_field needed = report_range("needed_peak", rung->needed);

	if (!text) {
		e->error = e->error ? e->error : -ENOMEM;
		return;
	}
	if (e->format == EMIT_TEXT && rung->state != RUNG_APPLIES)
		needed = emit_word(NULL, NULL);
	if (e->format == EMIT_TEXT && rung->state == RUNG_NOT)
		relief = emit_word(NULL, "-");
	emit_row(e, is_worth_a_line(r, rung),
	         (struct emit_field[]){
			 emit_word(NULL, is_next(r, rung->rung) ? ">" : NULL),
			 emit_word("rung", rung_names[rung->rung]),
			 emit_word("state", rung_state_names[rung->state]),
			 emit_flag("tried", rung->tried),
			 emit_word("title", rung_titles[rung->rung]),
			 relief,
			 needed,
			 emit_word("verdict", verdict_names[rung->judgement.verdict]),
			 emit_word("missing_input", rung->missing),
			 emit_word("note", text),
		 });
	free(text);
}

static void say_next(struct emitter *e, const struct report *r)
{
	const struct ladder *l = &r->ladder;
	const struct rung_result *rung = l->next_kind == NEXT_RUNG ? &l->rungs[l->next] : NULL;
	static const char *const words[] = {[NEXT_NONE] = "none", [NEXT_OUTSIDE] = "outside the ladder"};
	static const char *const sentences[] = {
		[NEXT_RUNG] = "Next: {next}, {title}: {next_reason}.",
		[NEXT_NONE] = "Next: {next}; {next_reason}.",
		[NEXT_OUTSIDE] = "Next: {next}; {next_reason}.",
	};

	emit_say(e, sentences[l->next_kind],
	         emit_word("next", rung ? rung_names[l->next] : words[l->next_kind]),
	         emit_word("title", rung ? rung_titles[l->next] : NULL),
	         emit_word("next_reason", l->next_reason),
	         emit_word("missing_input", rung ? rung->missing : NULL));
	if (rung && rung->missing)
		emit_text(e, "Missing for that: {missing}.", emit_word("missing", rung->missing));
}

static void emit_pack(struct emitter *e, const struct report *r)
{
	const struct pack_plan *plan = &r->ladder.pack;
	bool used = r->ladder.rungs[RUNG_PACK].state != RUNG_NOT;

	emit_open(e, "packing", NULL);
	emit_only(e, report_range("activations", plan->activations),
	          emit_ratio("factor_low", used ? plan->factor_lo : NAN),
	          emit_ratio("factor", used && plan->factor_lo >= plan->factor_hi ? plan->factor_hi : NAN),
	          emit_ratio("factor_high", used ? plan->factor_hi : NAN), emit_count("pack", plan->pack),
	          emit_count("batch", plan->batch), emit_flag("upper_bound", plan->upper_bound));
	emit_close(e);
}

void report_next(struct emitter *e, const struct report *r)
{
	bool hidden = false;

	emit_open(e, "ladder", "What to do next?");
	say_next(e, r);
	if (r->ladder.next_kind == NEXT_RUNG) {
		emit_open(e, "how", NULL);
		details[r->ladder.next](e, r);
		emit_close(e);
	}
	emit_pack(e, r);
	emit_table(e, "rungs", columns, sizeof(columns) / sizeof(columns[0]));
	for (unsigned i = 0; i < RUNG_COUNT; i++) {
		emit_rung(e, r, &r->ladder.rungs[i]);
		hidden |= !is_worth_a_line(r, &r->ladder.rungs[i]);
	}
	emit_table_end(e);
	if (hidden)
		emit_line(e, "The other rungs of the ladder are not needed; --json has them, and why.");
	emit_close(e);
	report_repairs(e, r);
}
