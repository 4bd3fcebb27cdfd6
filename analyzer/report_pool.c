/* SPDX-License-Identifier: Apache-2.0 */
/* What was in the pool at that moment? */
#include "report.h"

#include <math.h>

enum layer_form { LAYER_BYTES, LAYER_RANGE, LAYER_CHANGE };

/* A layer of the pool: a row here, and a member of struct layers. */
static const struct layer_row {
	const char *key, *name, *reclaim;
	enum layer_form form;
	size_t offset;
	bool always; /* shown even when it is 0 */
} rows[] = {
#define AT(member) offsetof(struct layers, member)
	{"device", "device memory", "no", LAYER_BYTES, AT(device), true},
	{"pinned", "pinned host memory", "no", LAYER_BYTES, AT(pinned), false},
	{"anon", "anonymous copies of weight pages", "no, swap at best", LAYER_RANGE, AT(anon), true},
	{"host", "other host memory (change)", "no", LAYER_CHANGE, AT(host), true},
	{"staging", "  of it buffers that held weights", "no", LAYER_BYTES, AT(staging), false},
	{"others", "other processes (change)", "not ours", LAYER_CHANGE, AT(others), true},
	{"weight_cache", "page cache of the weight files", "yes, unless dirty or in use", LAYER_RANGE,
         AT(weight_cache), true},
	{"stale_cache", "other page cache", "yes, by a flush", LAYER_RANGE, AT(stale_cache), true},
	{"free", "free, per-CPU lists included", "-", LAYER_RANGE, AT(free), true},
	{"own", "sparktrace itself", "no", LAYER_RANGE, AT(own), false},
	{"kernel", "kernel, driver and the rest (change)", "not known", LAYER_CHANGE, AT(kernel), true},
#undef AT
};

static const struct emit_column columns[] = {
	{NULL, false}, {"layer", false}, {"bytes", true}, {"of the pool", true}, {"can be reclaimed?", false},
};

/* Any of the three forms as a change; unknown where a bound is missing below. */
static struct change layer_value(const struct layers *layers, const struct layer_row *row)
{
	const void *at = (const char *)layers + row->offset;
	struct range range;

	if (row->form == LAYER_CHANGE)
		return *(const struct change *)at;
	range = row->form == LAYER_BYTES ? range_of(*(const uint64_t *)at) : *(const struct range *)at;
	if (range.hi > INT64_MAX)
		return CHANGE_UNKNOWN;
	return (struct change){(int64_t)range.lo, (int64_t)range.hi};
}

static struct emit_field layer_size(struct change value, const struct layer_row *row)
{
	if (row->form == LAYER_CHANGE || !change_is_known(value))
		return report_change("size", value);
	return emit_interval("size", (uint64_t)value.lo, (uint64_t)value.hi);
}

static void emit_layer(struct emitter *e, const struct report *r, const struct layers *layers,
                       const struct layer_row *row)
{
	struct change value = layer_value(layers, row);
	uint64_t total = r->model->samples ? r->model->first.total : ST_UNKNOWN;
	bool known = change_is_known(value) && value.lo >= 0;

	emit_row(e, row->always || value.hi,
	         (struct emit_field[]){
			 emit_word("layer", row->key),
			 emit_word(NULL, row->name),
			 layer_size(value, row),
			 emit_share("share", known ? report_share((uint64_t)value.hi, total) : NAN),
			 emit_word("reclaim", row->reclaim),
		 });
}

/* Beside the truth, what the program was told. */
static void say_told(struct emitter *e, const struct report *r)
{
	const struct told *told = r->model->told_failed.valid ? &r->model->told_failed : &r->model->told_last;

	if (!told->valid)
		return;
	emit_open(e, "told", NULL);
	emit_say(e, "cuMemGetInfo had said {free} free at {time}; MemAvailable was {mem_available} then.",
	         emit_bytes("free", told->free), emit_bytes("total", told->total),
	         emit_time("time", report_since(r, told->time)), emit_bytes("mem_free", told->mem_free),
	         emit_bytes("mem_available", told->mem_available));
	emit_close(e);
}

static void say_lowest(struct emitter *e, const struct report *r)
{
	const struct model *m = r->model;

	if (m->samples)
		emit_say(e, "Lowest seen: MemAvailable {lowest_available}, MemFree {lowest_free}.",
		         emit_bytes("lowest_available", m->lowest_available),
		         emit_bytes("lowest_free", m->lowest_free), emit_bytes("swap_used", m->swap_used));
	if (m->samples && m->swap_used)
		emit_say(e, "Swap took {swapped}.", emit_bytes("swapped", m->swap_used));
}

void report_layers(struct emitter *e, const struct report *r, const struct layers *layers)
{
	emit_table(e, "layers", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; layers && i < sizeof(rows) / sizeof(rows[0]); i++)
		emit_layer(e, r, layers, &rows[i]);
	emit_table_end(e);
}

void report_pool(struct emitter *e, const struct report *r)
{
	const struct moment *peak = &r->model->moments[MOMENT_DEMAND_PEAK];

	emit_open(e, "pool", "What was in the pool at that moment?");
	report_layers(e, r, peak->valid ? &peak->layers : NULL);
	say_lowest(e, r);
	say_told(e, r);
	emit_close(e);
}
