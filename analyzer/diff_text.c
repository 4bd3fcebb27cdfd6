/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for people and for scripts. */
#include "diff_parts.h"
#include "measure_words.h"

#include <math.h>
#include <stdlib.h>

#define SCHEMA_VERSION 1
#define PARTS_SHOWN    8 /* of each kind */

/* --- rows --------------------------------------------------------------------------------------------- */

static const char *const class_words[] = {
	[DIFF_EXACT] = "exact",
	[DIFF_SCHEDULING] = "scheduling",
	[DIFF_SAMPLED] = "sampled",
	[DIFF_POOL] = "pool",
};

static struct emit_field value_field(const char *key, const struct diff_row *row, struct change value)
{
	bool open = value.hi == INT64_MAX;

	if (row->unit == METRIC_RATIO)
		return emit_word(NULL, NULL);
	if (row->is_change)
		return emit_change(key, value.lo, value.hi);
	if (value.lo == INT64_MIN)
		return emit_interval(key, UINT64_MAX, UINT64_MAX);
	return emit_interval(key, (uint64_t)value.lo, open ? UINT64_MAX : (uint64_t)value.hi);
}

/* One end of a ratio; of bytes nothing. */
static struct emit_field ratio_field(const char *key, const struct diff_row *row, int64_t units)
{
	bool open = units == INT64_MIN || units == INT64_MAX;

	return emit_ratio(row->unit == METRIC_RATIO ? key : NULL,
	                  open ? NAN : (double)units / METRIC_RATIO_ONE);
}

static const char *remark_of(const struct diff_row *row)
{
	if (row->state == DIFF_CANNOT_TELL)
		return row->class == DIFF_SAMPLED ? "sampled, cannot tell" : "cannot tell";
	if (row->class == DIFF_POOL || row->class == DIFF_SAMPLED)
		return "sampled";
	return row->state == DIFF_SAME && (row->change.lo || row->change.hi) ? "noise" : NULL;
}

#define ROW_COLUMNS 19

static void emit_compared(struct emitter *e, const char *key, const struct diff_row *row, bool shown)
{
	bool same = !row->change.lo && !row->change.hi, ratio = row->unit == METRIC_RATIO;
	char *before = diff_value_text(row, row->before), *after = diff_value_text(row, row->after);
	char *change = diff_change_text(row->unit, row->change);

	emit_row(e, shown && !row->hidden,
	         (struct emit_field[]){
			 emit_word(key, row->key),
			 emit_word(NULL, row->title),
			 emit_word(NULL, before),
			 emit_word(NULL, after),
			 emit_word(NULL, same ? "same" : change),
			 emit_word(NULL, remark_of(row)),
			 value_field("before", row, row->before),
			 value_field("after", row, row->after),
			 emit_change(ratio ? NULL : "change", row->change.lo, row->change.hi),
			 ratio_field("before_low", row, row->before.lo),
			 ratio_field("before_high", row, row->before.hi),
			 ratio_field("after_low", row, row->after.lo),
			 ratio_field("after_high", row, row->after.hi),
			 ratio_field("change_low", row, row->change.lo),
			 ratio_field("change_high", row, row->change.hi),
			 emit_bytes(ratio ? NULL : "noise", row->noise),
			 ratio_field("noise", row, (int64_t)bytes_min(row->noise, INT64_MAX)),
			 emit_word("state", diff_state_names[row->state]),
			 emit_word("class", class_words[row->class]),
		 });
	free(before);
	free(after);
	free(change);
}

static void emit_rows(struct emitter *e, const char *list, const char *key, const char *title,
                      const struct diff_row *rows, size_t count, bool shown)
{
	const struct emit_column columns[ROW_COLUMNS] = {
		{NULL, false},   {title, false},   {"before", true},
		{"after", true}, {"change", true}, {"", false},
	};

	emit_table(e, list, columns, ROW_COLUMNS);
	for (size_t i = 0; i < count; i++)
		emit_compared(e, key, &rows[i], shown);
	emit_table_end(e);
}

static void emit_layers(struct emitter *e, const char *key, const char *title,
                        const struct diff_layers *layers, bool shown)
{
	bool any = shown && (layers->before || layers->after);

	emit_open(e, key, any ? title : NULL);
	emit_only(e, emit_flag("before_seen", layers->before), emit_flag("after_seen", layers->after));
	if (any && !(layers->before && layers->after))
		emit_line(e, layers->before ? "The run after never came to it."
		                            : "The run before never came to it.");
	emit_rows(e, "layers", "layer", "layer", layers->rows, layers->count, shown);
	emit_close(e);
}

/* --- parts -------------------------------------------------------------------------------------------- */

static void emit_part(struct emitter *e, const struct diff_part *part)
{
	const struct growth *growth = part->growth;

	emit_row(e, false,
	         (struct emit_field[]){
			 emit_word("metric", metric_rows[growth->metric].name),
			 emit_change("change", part->change.lo, part->change.hi),
			 emit_interval("before", growth->before.lo, growth->before.hi),
			 emit_interval("after", growth->after.lo, growth->after.hi),
			 emit_word("name", growth->name),
			 emit_word("detail", growth->detail),
			 emit_word("state", diff_state_names[part->state]),
		 });
}

static void say_part(struct emitter *e, const struct diff_part *part)
{
	const struct growth *growth = part->growth;
	const struct range values[] = {growth->before, growth->after};
	bool exact = values_look_alike(METRIC_MODELLED, values, 2);
	char before[METRIC_TEXT], after[METRIC_TEXT];

	emit_text(e, "{change} {metric} ({before} -> {after}): {name}",
	          emit_change("change", part->change.lo, part->change.hi),
	          emit_word("metric", metric_rows[growth->metric].name),
	          emit_word("before", value_print(METRIC_MODELLED, growth->before, exact, before)),
	          emit_word("after", value_print(METRIC_MODELLED, growth->after, exact, after)),
	          emit_word("name", growth->name));
	if (growth->detail)
		emit_text(e, "    {detail}", emit_word("detail", growth->detail));
}

static size_t count_kind(const struct diff_parts *parts, enum part_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < parts->count; i++)
		count += parts->parts[i].growth->kind == kind;
	return count;
}

/* `title` NULL: for scripts only. */
static void emit_parts(struct emitter *e, const struct diff_parts *parts, enum part_kind kind,
                       const char *key, const char *title)
{
	static const struct emit_column columns[7];
	size_t count = title ? count_kind(parts, kind) : 0, seen = 0;

	emit_open(e, key, count ? title : NULL);
	emit_table(e, "parts", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < parts->count; i++)
		if (parts->parts[i].growth->kind == kind)
			emit_part(e, &parts->parts[i]);
	emit_table_end(e);
	for (size_t i = 0; i < parts->count && count; i++)
		if (parts->parts[i].growth->kind == kind && seen++ < PARTS_SHOWN)
			say_part(e, &parts->parts[i]);
	if (count > PARTS_SHOWN)
		emit_text(e, "and {more} more", emit_count("more", count - PARTS_SHOWN));
	emit_close(e);
}

static void emit_left_out(struct emitter *e, const struct diff_parts *parts)
{
	emit_say(e,
	         parts->small
	                 ? "and {small_parts} more below the noise (1 MiB, or 0.1 %; more where threads load)"
	                 : NULL,
	         emit_count("small_parts", parts->small));
	emit_say(e,
	         parts->moved ? "and {moved_parts} more that the threads' scheduling moves; the whole is "
	                        "the same"
	                      : NULL,
	         emit_count("moved_parts", parts->moved));
	emit_say(e, parts->unclear ? "and {unclear_parts} more that are not known well enough to tell" : NULL,
	         emit_count("unclear_parts", parts->unclear));
}

/* Device memory of the whole run is told apart where it is not that of the load. */
static void emit_all_parts(struct emitter *e, const struct diff *diff)
{
	static const char *const titles[PART_KINDS] = {"By file", "By tensor", "By call stack"};
	static const char *const keys[PART_KINDS] = {"files", "tensors", "stacks"};
	const struct diff_row *load = &diff->peaks[METRIC_DEVICE], *run = &diff->peaks[DIFF_RUN_DEVICE];
	bool apart = run->state != DIFF_SAME && run->change.lo != load->change.lo;

	for (int kind = 0; kind < PART_KINDS; kind++)
		emit_parts(e, &diff->load, (enum part_kind)kind, keys[kind], titles[kind]);
	emit_left_out(e, &diff->load);
	emit_parts(e, &diff->run, PART_STACK, "run_device",
	           apart ? "Device memory at the run's demand peak, by call stack" : NULL);
}

/* --- the whole of it ---------------------------------------------------------------------------------- */

static void emit_head(struct emitter *e, const struct diff *diff)
{
	emit_only(e, emit_count("schema_version", SCHEMA_VERSION),
	          emit_word("sparktrace_version", ST_VERSION),
	          emit_count("exit_status", (uint64_t)diff->status));
	emit_open(e, "verdict", diff->verdict);
	emit_only(e, emit_word("text", diff->verdict));
	emit_say(e, "before: {before}", emit_path("before", diff->before->path));
	emit_say(e, "after:  {after}", emit_path("after", diff->after->path));
	emit_close(e);
}

static void emit_sentences(struct emitter *e, const char *key, const char *title, char *const *sentences,
                           size_t count)
{
	emit_list(e, key, count ? title : NULL);
	for (size_t i = 0; i < count; i++) {
		emit_open(e, NULL, NULL);
		emit_say(e, "{text}", emit_word("text", sentences[i]));
		emit_close(e);
	}
	emit_close(e);
}

/* Mostly the load's peak is the run's; then it is shown once. */
static bool is_one_moment(const struct measure *measure)
{
	const struct moment *load = &measure->model->moments[MOMENT_LOAD_MODELLED_PEAK];
	const struct moment *demand = &measure->model->moments[MOMENT_DEMAND_PEAK];

	return load->valid && demand->valid && load->index == demand->index;
}

int diff_write(FILE *out, const struct diff *diff, enum emit_format format)
{
	struct emitter e;
	bool one;

	emit_begin(&e, out, format);
	emit_head(&e, diff);
	emit_sentences(&e, "failures", "Asked for by --fail-on", diff->failures, diff->failure_count);
	emit_open(&e, "peaks", "Peaks");
	emit_rows(&e, "rows", "metric", "metric", diff->peaks, DIFF_PEAKS, true);
	emit_close(&e);
	emit_all_parts(&e, diff);
	one = is_one_moment(diff->before) && is_one_moment(diff->after);
	emit_layers(&e, "load_peak", "At the load's modelled peak", &diff->layers[DIFF_LOAD_PEAK], !one);
	emit_layers(&e, "demand_peak",
	            one ? "At the load's modelled peak, which is the run's demand peak"
	                : "At the run's demand peak",
	            &diff->layers[DIFF_DEMAND_PEAK], true);
	emit_sentences(&e, "notes", "Notes", diff->notes, diff->note_count);
	return emit_end(&e);
}
