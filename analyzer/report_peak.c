/* SPDX-License-Identifier: Apache-2.0 */
/* When was the peak? */
#include "report.h"

#include "names.h"

#include <math.h>

/* In text only where the moment has its sentence. */
static void emit_place(struct emitter *e, const struct report *r, const struct moment *at, bool shown)
{
	const char *thread = at->thread && r->model->names ? names_thread(r->model->names, at->thread) : NULL;
	const char *file = report_file(r, at->file), *tensor = report_tensor(r, at->tensor);
	const char *sentence = NULL;

	/* After the load the last file touched has nothing to do with the peak. */
	if (shown && file && at->phase == PHASE_LOAD)
		sentence = tensor ? "  at tensor {tensor} of {file}" : "  at {file}";
	emit_only(e, emit_count("thread", at->thread), emit_word("thread_name", thread));
	emit_say(e, sentence, emit_word("tensor", tensor), emit_path("file", file));
	if (shown || e->format == EMIT_JSON)
		report_stack(e, r, "stack", "  called from ", at->stack);
}

static void say_moment(struct emitter *e, const struct report *r, const char *key, const char *sentence,
                       const struct moment *at)
{
	emit_open(e, key, NULL);
	emit_say(e, at->valid ? sentence : NULL, emit_flag("seen", at->valid),
	         emit_time("time", at->valid ? report_since(r, at->time) : ST_UNKNOWN),
	         emit_word("phase", at->valid ? report_phase(at->phase) : NULL),
	         report_range("demand", at->demand), report_range("modelled", at->modelled),
	         report_range("resident", at->resident), emit_bytes("device", at->layers.device),
	         emit_bytes("pinned", at->layers.pinned), emit_bytes("staging", at->layers.staging),
	         report_range("anon", at->layers.anon));
	if (at->valid)
		emit_place(e, r, at, sentence != NULL);
	emit_close(e);
}

static struct emit_field steady_ratio(const struct report *r)
{
	const struct moment *settled = &r->model->moments[MOMENT_SETTLED];
	const struct load *load = &r->model->load;
	double ratio = settled->valid ? report_share(load->modelled.lo, settled->modelled.lo) : NAN;

	return emit_ratio("load_peak_to_steady", range_is_exact(load->modelled) ? ratio : NAN);
}

/* A factor is an interval when it would be read as one. */
static const char *factor_sentence(const struct load *load, bool settled)
{
	static const char *const sentences[2][2] = {
		{"Load: {weights} of weights, peak {load_modelled}: load factor {load_factor_low} to "
	         "{load_factor_high}; it never settled.",
	         "Load: {weights} of weights, peak {load_modelled}: load factor {load_factor_low} to "
	         "{load_factor_high}; steady {steady}, peak / steady {load_peak_to_steady}."},
		{"Load: {weights} of weights, peak {load_modelled}: load factor {load_factor_high}; it never "
	         "settled.",
	         "Load: {weights} of weights, peak {load_modelled}: load factor {load_factor_high}; "
	         "steady {steady}, peak / steady {load_peak_to_steady}."},
	};

	/* A factor of device bytes says nothing of a load that has none. */
	if (!load->device)
		return "Load: {weights} of weights, no device memory; demand of the load {load_demand}.";
	return sentences[load->factor_hi - load->factor_lo < 0.005][settled];
}

static void say_factor(struct emitter *e, const struct report *r)
{
	const struct load *load = &r->model->load;
	const struct moment *settled = &r->model->moments[MOMENT_SETTLED];

	emit_say(e, factor_sentence(load, settled->valid), emit_bytes("weights", load->weights),
	         report_range("load_modelled", load->modelled),
	         emit_ratio("load_factor", load->factor_lo >= load->factor_hi ? load->factor_hi : NAN),
	         emit_ratio("load_factor_low", load->factor_lo),
	         emit_ratio("load_factor_high", load->factor_hi),
	         report_range("steady", settled->valid ? settled->modelled : RANGE_UNKNOWN), steady_ratio(r),
	         report_range("load_demand", load->demand), report_range("load_resident", load->resident));
}

/* Both kinds of double residency, in bytes and as a share of the weights. */
static void say_double(struct emitter *e, const struct report *r)
{
	const struct load *load = &r->model->load;
	const char *sentence = "Twice in the pool: {anonymous_double} that nothing reclaims "
			       "({anonymous_share} of the weights), {reclaimable_double} of page "
			       "cache ({reclaimable_share}).";

	/* What a program holds in its own memory beside the page cache is not followed byte by byte. */
	if (!load->duplicated.hi && !load->reclaimable.hi)
		sentence = load->device ? "No byte of the weights was in the pool twice." : NULL;
	emit_say(e, sentence, report_range("anonymous_double", load->duplicated),
	         emit_share("anonymous_share", report_share(load->duplicated.hi, load->weights)),
	         report_range("reclaimable_double", load->reclaimable),
	         emit_share("reclaimable_share", report_share(load->reclaimable.hi, load->weights)),
	         report_range("anonymous_copies", load->anon), emit_bytes("staging_peak", load->staging),
	         emit_bytes("staging_pinned_and_not", load->staging_all),
	         emit_bytes("pinned_peak", load->pinned), emit_bytes("device_peak", load->device),
	         emit_count("threads", load->threads));
}

/* Files that stay mapped keep their pages in the program's hands: none can be dropped before the load is over. */
static void say_mapped(struct emitter *e, const struct report *r)
{
	const struct moment *last = &r->model->moments[MOMENT_LAST_WEIGHT];
	uint64_t count = 0, size = 0;
	bool all;

	for (size_t i = 0; i < r->model->file_count; i++) {
		const struct weight_file *file = &r->model->files[i];

		count += file->loaded.hi != 0;
		size += file->loaded.hi ? file->size : 0;
	}
	all = last->valid && r->model->load.device && count > 1 && last->mapped >= size;
	emit_say(e, all ? "All {weight_files} weight files stayed mapped to the end of the load." : NULL,
	         emit_count("weight_files", count), emit_bytes("mapped_peak", r->model->mapped_peak),
	         emit_bytes("mapped_at_end", last->valid ? last->mapped : ST_UNKNOWN),
	         emit_flag("all_stayed_mapped", all));
}

static void say_load(struct emitter *e, const struct report *r)
{
	const struct load *load = &r->model->load;

	emit_open(e, "load", NULL);
	emit_only(e, emit_flag("present", load->present), emit_flag("finished", load->finished),
	          emit_time("begin", load->present ? report_since(r, load->begin) : ST_UNKNOWN),
	          emit_time("end", load->present ? report_since(r, load->end) : ST_UNKNOWN),
	          report_range("loaded", load->loaded), report_range("would_load", load->would_load),
	          report_range("remaining", load->remaining),
	          emit_bytes("largest_tensor", load->largest_tensor),
	          emit_count("shards_missing", load->shards_missing),
	          emit_count("parameters", load->parameters));
	if (load->present) {
		say_factor(e, r);
		say_double(e, r);
		say_mapped(e, r);
	}
	emit_close(e);
}

void report_peak(struct emitter *e, const struct report *r)
{
	const struct moment *moments = r->model->moments;

	emit_open(e, "peak", "When was the peak?");
	say_moment(e, r, "demand_peak", "Demand {demand} at {time}, in the phase `{phase}`.",
	           &moments[MOMENT_DEMAND_PEAK]);
	if (!moments[MOMENT_DEMAND_PEAK].valid)
		emit_line(e, "Nothing was recorded before the program's end.");
	say_moment(e, r, "resident_peak", NULL, &moments[MOMENT_RESIDENT_PEAK]);
	say_moment(e, r, "load_demand_peak", NULL, &moments[MOMENT_LOAD_DEMAND_PEAK]);
	say_moment(e, r, "load_modelled_peak", NULL, &moments[MOMENT_LOAD_MODELLED_PEAK]);
	say_moment(e, r, "load_resident_peak", NULL, &moments[MOMENT_LOAD_RESIDENT_PEAK]);
	say_moment(e, r, "steps_peak", NULL, &moments[MOMENT_STEPS_PEAK]);
	say_moment(e, r, "settled", NULL, &moments[MOMENT_SETTLED]);
	say_load(e, r);
	emit_only(e, emit_bytes("device_peak", r->model->device_peak),
	          emit_time("device_peak_time", report_since(r, r->model->device_peak_time)),
	          emit_bytes("pinned_peak", r->model->pinned_peak),
	          emit_bytes("staging_peak", r->model->staging_peak),
	          emit_bytes("attempted_peak", r->model->attempted_peak));
	emit_close(e);
}
