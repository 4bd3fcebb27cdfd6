/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: where the bytes of each were, when it was touched, and by whom (--tensors). */
#include "report.h"

#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtype_words[] = {
#define W(n, t) [ST_DTYPE_##n] = t,
	ST_DTYPE(W)
#undef W
};

/* Which of the columns say something of this model. */
struct shape {
	bool anon, staging, reads, files, threads;
};

static uint64_t touch_since(const struct report *r, uint64_t time)
{
	return time ? report_since(r, time) : ST_UNKNOWN;
}

/* What the tensor took of the pool at the load's peak. */
static struct range held_at_peak(const struct tensor *t)
{
	return range_add(range_add(t->at_peak.on_device, t->at_peak.anon), range_of(t->at_peak.staging));
}

/* Of these beyond the device bytes: what was there twice and nothing could take back. */
static uint64_t duplicated(const struct tensor *t)
{
	return bytes_add(t->at_peak.anon.hi, t->at_peak.staging);
}

/* A tensor, and whether the program ever came to its file: what only an index names comes last. */
struct ranked {
	const struct tensor *tensor;
	bool touched;
};

static int tensor_compare(const void *left, const void *right)
{
	const struct ranked *x = left, *y = right;
	const struct tensor *a = x->tensor, *b = y->tensor;

	if (duplicated(a) != duplicated(b))
		return duplicated(a) < duplicated(b) ? 1 : -1;
	if (x->touched != y->touched)
		return x->touched ? -1 : 1;
	if (a->size != b->size)
		return a->size < b->size ? 1 : -1;
	return a < b ? -1 : a > b;
}

#define COLUMNS 22

static void columns_fill(const struct shape *shape, struct emit_column columns[COLUMNS])
{
	const struct emit_column all[COLUMNS] = {
		{"size", true},
		{"type", false},
		{NULL, false}, /* offset */
		{shape->reads ? "read" : NULL, true},
		{"copied", true},
		{NULL, false}, /* device, settled */
		{"device", true},
		{shape->anon ? "anonymous" : NULL, true},
		{shape->staging ? "staged" : NULL, true},
		{"cached", true},
		{NULL, false}, /* factor_low */
		{"factor", true},
		{"touched", true},
		{NULL, false}, /* last touch */
		{shape->threads ? "thread" : NULL, true},
		{"as no.", true},
		{"in file", true},
		{NULL, false}, /* elements */
		{NULL, false}, /* whole path */
		{shape->files ? "file" : NULL, false},
		{NULL, false}, /* duplicated */
		{"tensor", false},
	};

	memcpy(columns, all, sizeof(all));
}

/* Figures are those of the load's peak where they belong to a moment. */
static void emit_tensor(struct emitter *e, const struct report *r, const struct tensor *t, bool shown)
{
	struct range held = held_at_peak(t);

	emit_row(
		e, shown,
		(struct emit_field[COLUMNS]){
			emit_bytes("size", t->size),
			emit_word("dtype", dtype_words[t->dtype]),
			emit_bytes("offset", t->offset),
			emit_bytes("read", t->read_bytes),
			report_range("copied", t->copied),
			report_range("device", t->at_settled.on_device),
			report_range("device_at_peak", t->at_peak.on_device),
			report_range("anon_at_peak", t->at_peak.anon),
			emit_bytes("staging_at_peak", t->at_peak.staging),
			report_range("cached_at_peak", report_cached(&r->model->files[t->file], &t->at_peak)),
			emit_ratio("factor_low", report_share(held.lo, t->size)),
			emit_ratio("factor_high", report_share(held.hi, t->size)),
			emit_time("first_touch", touch_since(r, t->first_touch)),
			emit_time("last_touch", touch_since(r, t->last_touch)),
			emit_count("thread", t->first_touch ? t->thread : ST_UNKNOWN),
			emit_count("order", t->order ? t->order : ST_UNKNOWN),
			emit_count("place", t->place),
			emit_count("elements", t->elements),
			emit_path("file", report_file(r, t->file)),
			emit_word(NULL, names_base(report_file(r, t->file))),
			emit_bytes("duplicated_at_peak", duplicated(t)),
			emit_word("name", t->name),
		});
}

static void emit_tensors(struct emitter *e, const struct report *r, const char *key,
                         const struct ranked *tensors, size_t count)
{
	struct emit_column columns[COLUMNS];
	struct shape shape = {0};

	for (size_t i = 0; i < count; i++) {
		const struct tensor *t = tensors[i].tensor, *first = tensors[0].tensor;

		shape.anon |= t->at_peak.anon.hi != 0;
		shape.staging |= t->at_peak.staging != 0;
		shape.reads |= t->read_bytes != 0;
		shape.files |= t->file != first->file;
		shape.threads |= t->order && first->order && t->thread != first->thread;
	}
	columns_fill(&shape, columns);
	emit_table(e, key, columns, COLUMNS);
	for (size_t i = 0; i < count; i++)
		emit_tensor(e, r, tensors[i].tensor, true);
	emit_table_end(e);
}

static void say_all(struct emitter *e, const struct report *r, size_t shown)
{
	size_t count = r->model->tensor_count, touched = 0, in_order = 0;

	for (size_t i = 0; i < count; i++) {
		touched += r->model->tensors[i].order != 0;
		in_order += r->model->tensors[i].order == r->model->tensors[i].place;
	}
	emit_say(
		e,
		touched ? "{shown} of {tensors} tensors, those most in the pool twice first, as they were at "
			  "the load's peak. {touched} were seen to be read or copied, {in_order} of these in "
			  "the place that they have in their file."
			: "{shown} of {tensors} tensors, those most in the pool twice first, as they were at "
			  "the load's peak.",
		emit_count("shown", shown), emit_count("tensors", count), emit_count("touched", touched),
		emit_count("in_order", in_order));
	if (!r->model->load.present || touched == count)
		return;
	emit_line(e, "What a program copies out of a mapping by itself no call shows: such tensors look "
	             "untouched, "
	             "and what they have on the device may be an interval.");
}

static void emit_top(struct emitter *e, const struct report *r)
{
	size_t count = r->model->tensor_count;
	size_t shown = count < r->options->tensors ? count : (size_t)r->options->tensors;
	struct ranked *sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted) {
		e->error = e->error ? e->error : -ENOMEM;
		return;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct ranked){&r->model->tensors[i],
		                            r->model->files[r->model->tensors[i].file].first_touch != 0};
	qsort(sorted, count, sizeof(*sorted), tensor_compare);
	emit_open(e, "tensors_shown", "Tensors");
	if (count)
		say_all(e, r, shown);
	else
		emit_line(e, "The trace names no tensor.");
	emit_tensors(e, r, "tensors", sorted, shown);
	emit_close(e);
	free(sorted);
}

/* JSON has all tensors always, in the order of the files; with --tensors the ones that matter most as well. */
void report_tensors(struct emitter *e, const struct report *r)
{
	struct emit_column columns[COLUMNS];
	const struct shape none = {0};

	if (e->format == EMIT_JSON) {
		columns_fill(&none, columns);
		emit_table(e, "tensors", columns, COLUMNS);
		for (size_t i = 0; i < r->model->tensor_count; i++)
			emit_tensor(e, r, &r->model->tensors[i], false);
		emit_table_end(e);
	}
	if (r->options->tensors != ST_UNKNOWN)
		emit_top(e, r);
}
