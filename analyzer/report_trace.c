/* SPDX-License-Identifier: Apache-2.0 */
/* How good is the trace? What could not be seen, and what was lost. */
#include "report.h"

#include <inttypes.h>

#define SHOWN 6

static const char *const ring_words[] = {
	[READER_RING_NONE] = "none",
	[READER_RING_GONE] = "gone",
	[READER_RING_OTHER] = "of another process",
	[READER_RING_READ] = "read",
};

static void say_size(struct emitter *e, const struct report *r)
{
	const struct reader_summary *s = r->summary;
	const char *sentence = "{path}: {size}; records: {records}, blocks: {blocks}.";

	if (r->model->own != ST_UNKNOWN)
		sentence =
			"{path}: {size}; records: {records}, blocks: {blocks}; sparktrace itself took {own}.";
	emit_say(e, sentence, emit_path("path", r->path), emit_bytes("size", s->bytes),
	         emit_count("records", s->records), emit_count("blocks", s->blocks),
	         emit_bytes("own", r->model->own), emit_flag("whole", s->has_trailer),
	         emit_count("repeated", s->repeated));
}

/* What a power cycle would have left: everything up to the last sync that was completed. */
static void say_cut(struct emitter *e, const struct report *r)
{
	const struct reader_summary *s = r->summary;
	struct emit_field synced =
		emit_time("last_sync", s->last_synced ? report_since(r, s->last_synced) : ST_UNKNOWN);
	struct emit_field last = emit_time("last_event", report_since(r, s->last_time));

	if (s->has_trailer)
		emit_only(e, synced, last);
	else if (s->alive)
		emit_say(e,
		         "The program still runs; last event at {last_event}, last "
		         "completed sync at {last_sync}.",
		         last, synced);
	else
		emit_say(e,
		         "The trace has no end: last event at {last_event}, last completed "
		         "sync at {last_sync}.",
		         last, synced);
}

static void say_ring(struct emitter *e, const struct report *r)
{
	const struct reader_summary *s = r->summary;
	struct emit_field ring = emit_word("ring", ring_words[s->ring]);
	struct emit_field records = emit_count("ring_records", s->ring_records);
	struct emit_field torn = emit_count("ring_torn", s->torn);

	if (s->ring == READER_RING_READ)
		emit_say(e, "The ring was read: {ring_records} records from it, {ring_torn} torn.", ring,
		         records, torn);
	else if (s->ring != READER_RING_NONE)
		emit_say(e, "The ring is {ring}: what it held is missing.", ring, records, torn);
	else
		emit_only(e, ring, records, torn);
}

static void say_losses(struct emitter *e, const struct report *r)
{
	const struct reader_summary *s = r->summary;
	struct emit_field lost = emit_count("lost_events", r->model->lost_events);
	struct emit_field bytes = emit_bytes("lost", r->model->lost_bytes);
	struct emit_field damaged = emit_count("damaged_blocks", s->damaged_blocks);
	struct emit_field missing = emit_count("missing_blocks", s->missing_blocks);

	emit_say(e, r->model->lost_events ? "{lost_events} events ({lost}) found no room in the ring." : NULL,
	         lost, bytes);
	emit_say(e,
	         s->damaged_blocks || s->missing_blocks
	                 ? "{damaged_blocks} blocks are damaged, {missing_blocks} are missing."
	                 : NULL,
	         damaged, missing);
}

static void emit_problems(struct emitter *e, const struct report *r)
{
	static const struct emit_column columns[] = {{"", true}, {NULL, false}, {"", false}};
	const struct reader_summary *s = r->summary;
	uint64_t kept = bytes_min(s->problem_count, READER_PROBLEMS_MAX);

	emit_table(e, "problems", columns, 3);
	for (uint64_t i = 0; i < kept; i++) {
		char where[32];

		snprintf(where, sizeof(where), "%s %" PRIu64 ":", s->problems[i].in_ring ? "ring" : "byte",
		         s->problems[i].offset);
		emit_row(e, i < SHOWN,
		         (struct emit_field[]){emit_word(NULL, where),
		                               emit_count("offset", s->problems[i].offset),
		                               emit_word("text", s->problems[i].text)});
	}
	emit_table_end(e);
	emit_only(e, emit_count("problem_count", s->problem_count));
}

static void emit_coverage(struct emitter *e, const struct report *r)
{
	static const struct emit_column columns[] = {{"not seen", false}, {NULL, false}};
	const struct model *m = r->model;

	emit_table(e, "coverage", columns, 2);
	for (size_t i = 0; i < m->coverage_count; i++)
		emit_row(e, i < SHOWN,
		         (struct emit_field[]){emit_word("text", m->coverages[i].text),
		                               emit_count("count", m->coverages[i].count)});
	emit_table_end(e);
	if (e->format == EMIT_TEXT && m->coverage_count > SHOWN)
		emit_say(e, "and {more} more", emit_count("more", m->coverage_count - SHOWN));
}

static void emit_infos(struct emitter *e, const struct report *r)
{
	static const struct emit_column columns[] = {{NULL, false}, {NULL, false}};

	emit_table(e, "info", columns, 2);
	for (size_t i = 0; i < r->model->info_count; i++)
		emit_row(e, false,
		         (struct emit_field[]){emit_word("name", r->model->infos[i].name),
		                               emit_word("value", r->model->infos[i].value)});
	emit_table_end(e);
}

void report_trace(struct emitter *e, const struct report *r)
{
	emit_open(e, "recording", "How good is the trace?");
	say_size(e, r);
	say_cut(e, r);
	say_ring(e, r);
	say_losses(e, r);
	emit_problems(e, r);
	emit_coverage(e, r);
	emit_infos(e, r);
	emit_close(e);
}
