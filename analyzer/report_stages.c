/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of the load: how long, how fast, and what set the pace. */
#include "report.h"

#include "stages.h"

#include <math.h>

#define SHORT_NS UINT64_C(1000000) /* not worth a line for people */

static const char *const stage_words[STAGE_COUNT] = {
	[STAGE_HEADER] = "header",
	[STAGE_MAP] = "map",
	[STAGE_READ] = "read",
	[STAGE_HOST_COPY] = "host copy",
	[STAGE_DEVICE_COPY] = "device copy",
	[STAGE_CONVERSION] = "conversion",
	[STAGE_QUANTISE] = "quantise",
	[STAGE_REPACK] = "re-pack",
	[STAGE_RELEASE] = "release",
};

static const char *const bound_words[BOUND_COUNT] = {
	[BOUND_UNKNOWN] = NULL,    [BOUND_STORAGE] = "storage", [BOUND_MEMORY] = "memory copy",
	[BOUND_DRIVER] = "driver", [BOUND_PROGRAM] = "program",
};

const char *report_stage(enum stage stage)
{
	return stage < STAGE_COUNT ? stage_words[stage] : NULL;
}

static const struct emit_column columns[] = {
	{"stages of the load", false},
	{"time", true},
	{"of threads", true},
	{"bytes", true},
	{"GiB/s", true},
	{"from disk", true},
	{"paced by", false},
};

/* GiB in a second of the stage's time, NaN where nothing was moved or no time is known. */
static double rate_of(const struct load_stage *s)
{
	return s->bytes && s->wall ? (double)s->bytes / (1 << 30) / ((double)s->wall / 1e9) : NAN;
}

static const char *pace_of(const struct load_stage *s)
{
	static const char *const alone[BOUND_COUNT] = {
		[BOUND_MEMORY] = "memory copy, one thread",
		[BOUND_DRIVER] = "driver, one thread",
		[BOUND_PROGRAM] = "program, one thread",
	};

	return s->one_thread && alone[s->bound] ? alone[s->bound] : bound_words[s->bound];
}

static void text_row(struct emitter *e, enum stage stage, const struct load_stage *s)
{
	const char *pace = pace_of(s);

	emit_row(e, s->wall >= SHORT_NS,
	         (struct emit_field[]){
			 emit_word(NULL, stage_words[stage]),
			 emit_time(NULL, s->wall),
			 emit_time(NULL, s->thread_time),
			 emit_bytes(NULL, s->bytes ? s->bytes : UINT64_MAX),
			 emit_ratio(NULL, rate_of(s)),
			 emit_bytes(NULL, s->sampled ? s->storage : UINT64_MAX),
			 emit_word(NULL, pace ? pace : "cannot tell: too few samples"),
		 });
}

static void json_stage(struct emitter *e, enum stage stage, const struct load_stage *s)
{
	emit_open(e, NULL, NULL);
	emit_only(e, emit_word("stage", stage_words[stage]), emit_count("calls", s->calls),
	          emit_bytes("moved", s->bytes), emit_time("time", s->wall),
	          emit_time("thread_time", s->thread_time), emit_flag("upper_bound", s->upper),
	          emit_flag("lower_bound", s->lower), emit_ratio("gib_per_s", rate_of(s)),
	          emit_time("sampled", s->sampled),
	          emit_bytes("storage", s->sampled ? s->storage : UINT64_MAX),
	          emit_count("storage_faults", s->sampled ? s->faults : UINT64_MAX),
	          emit_word("bound", bound_words[s->bound]), emit_flag("one_thread", s->one_thread));
	emit_close(e);
}

static bool stage_seen(const struct load_stage *s)
{
	return s->calls || s->thread_time;
}

void report_stages(struct emitter *e, const struct report *r)
{
	const struct load *load = &r->model->load;
	bool upper = false, lower = false;

	emit_list(e, "stages", NULL);
	for (int i = 0; e->format == EMIT_JSON && i < STAGE_COUNT; i++)
		if (stage_seen(&load->stages[i]))
			json_stage(e, (enum stage)i, &load->stages[i]);
	emit_close(e);
	if (e->format == EMIT_JSON || !load->present)
		return;
	emit_table(e, NULL, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < STAGE_COUNT; i++) {
		upper |= load->stages[i].upper && load->stages[i].wall >= SHORT_NS;
		lower |= load->stages[i].lower;
		if (stage_seen(&load->stages[i]))
			text_row(e, (enum stage)i, &load->stages[i]);
	}
	emit_table_end(e);
	if (upper)
		emit_line(e, "Header, host copy, conversion and later stages may hold other work of their "
		             "threads.");
	if (lower)
		emit_line(e, "At least: more threads or calls at a time than could be followed.");
}
