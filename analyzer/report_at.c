/* SPDX-License-Identifier: Apache-2.0 */
/* The whole pool at the moment that --at asks for. */
#include "report.h"

#include "model_snapshot.h"
#include "names.h"

#define BLOCKS_SHOWN 8
#define BLOCKS_MAX   64
#define FILES_SHOWN  16

static const char *const region_words[SNAPSHOT_REGIONS] = {
	[SNAPSHOT_DEVICE] = "device",
	[SNAPSHOT_PINNED] = "pinned",
	[SNAPSHOT_HOST] = "host",
};

static const char *word_of(const struct report *r)
{
	return r->options->at.kind == WHEN_WORD ? when_words[r->options->at.value] : NULL;
}

/* Why there is nothing to show. */
static void say_nothing(struct emitter *e, const struct report *r, const struct snapshot *at)
{
	static const char *const sentences[] = {
		[SNAPSHOT_SHOWN] = NULL,
		[SNAPSHOT_NEVER] = "The run never came to `{word}`.",
		[SNAPSHOT_BEFORE] = "That was before the program's start.",
		[SNAPSHOT_AFTER] = "{time} is after the last event of the run, which was at {end}.",
		[SNAPSHOT_NO_CLOCK] = "The trace does not tell the time of day.",
	};
	bool timed = at->state == SNAPSHOT_SHOWN || at->state == SNAPSHOT_AFTER;

	emit_say(e, sentences[at->state], emit_flag("shown", at->state == SNAPSHOT_SHOWN),
	         emit_word("word", word_of(r)),
	         emit_time("time", timed ? report_since(r, at->moment.time) : ST_UNKNOWN),
	         emit_time("end", report_since(r, r->model->end)));
}

static void say_event(struct emitter *e, const struct report *r, const struct snapshot *at)
{
	const char *name = at->thread ? names_thread(r->model->names, at->thread) : NULL;
	const char *file = report_file(r, at->moment.file), *tensor = report_tensor(r, at->moment.tensor);
	const char *sentence = at->moment.before
	                               ? "Just about to happen, at {event_time} in thread {thread}: {event}"
	                               : "Last event of the program, at {event_time} in thread "
	                                 "{thread}: {event}";

	emit_say(e, at->event ? sentence : "The program had done nothing yet that is recorded.",
	         emit_word("event", at->event),
	         emit_time("event_time", at->event ? report_since(r, at->event_time) : ST_UNKNOWN),
	         emit_count("thread", at->thread), emit_word("thread_name", name));
	report_stack(e, r, "stack", "  called from ", at->stack);
	emit_say(e,
	         file ? tensor ? "Weights were last touched at tensor {tensor} of {file}"
	                       : "Weights were last touched in {file}"
	              : NULL,
	         emit_word("tensor", tensor), emit_path("file", file));
}

static void say_moment(struct emitter *e, const struct report *r, const struct snapshot *at)
{
	const struct moment *moment = &at->moment;

	emit_say(e, "At {time}, in the phase `{phase}`: demand {demand}, with page cache {resident}.",
	         emit_time("time", report_since(r, moment->time)),
	         emit_word("phase", report_phase(moment->phase)), report_range("demand", moment->demand),
	         report_range("modelled", moment->modelled), report_range("resident", moment->resident),
	         emit_bytes("mapped", moment->mapped), report_range("weights_on_device", moment->on_device),
	         report_range("reclaimable_double", moment->reclaimable),
	         report_range("anonymous_double", moment->duplicated));
	say_event(e, r, at);
	report_layers(e, r, &moment->layers);
}

static void emit_blocks(struct emitter *e, const struct report *r, const struct snapshot *at)
{
	size_t limit = e->format == EMIT_JSON ? BLOCKS_MAX : BLOCKS_SHOWN;

	emit_list(e, "blocks", NULL);
	for (size_t i = 0; i < at->block_count && i < limit; i++) {
		const struct snapshot_block *block = &at->blocks[i];

		emit_open(e, NULL, NULL);
		emit_say(e,
		         block->count > 1 ? "{size} of {region} memory in {count} blocks"
		                          : "{size} of {region} memory",
		         emit_bytes("size", block->bytes), emit_word("region", region_words[block->region]),
		         emit_count("count", block->count ? block->count : ST_UNKNOWN));
		report_stack(e, r, "stack", "  asked for by ", block->stack);
		emit_close(e);
	}
	emit_close(e);
	if (at->block_count > limit)
		emit_text(e, "and {more} more places in the program",
		          emit_count("more", at->block_count - limit));
}

static void emit_files(struct emitter *e, const struct report *r, const struct snapshot *at)
{
	static const struct emit_column columns[] = {
		{NULL, false},       {"weights then", false}, {"mapped", true}, {"device", true},
		{"anonymous", true}, {"staging", true},       {"cached", true}, {NULL, false},
	};
	size_t shown = 0, touched = 0;

	emit_table(e, "files", columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < r->model->file_count; i++) {
		const struct snapshot_file *file = &at->files[i];
		const struct weight_file *of = &r->model->files[i];

		touched += file->touched;
		shown += file->touched && touched <= FILES_SHOWN;
		emit_row(e, file->touched && touched <= FILES_SHOWN,
		         (struct emit_field[]){
				 emit_path("path", of->path), emit_word(NULL, names_base(of->path)),
				 emit_bytes("mapped", file->mapped),
				 report_range("device", file->at.on_device),
				 report_range("anon", file->at.anon), emit_bytes("staging", file->at.staging),
				 report_range("cached", report_cached(of, &file->at)),
				 emit_flag("touched", file->touched)});
	}
	emit_table_end(e);
	if (touched > shown)
		emit_text(e, "and {more} more files", emit_count("more", touched - shown));
}

static void emit_mappings(struct emitter *e, const struct report *r, const struct snapshot *at)
{
	emit_list(e, "mappings", NULL);
	for (size_t i = 0; i < at->mapping_count; i++) {
		const struct snapshot_mapping *mapping = &at->mappings[i];
		const struct file_mapping kind = {.prot = mapping->prot, .flags = mapping->flags};
		const char *file = report_file(r, mapping->file);

		emit_open(e, NULL, NULL);
		emit_only(e, emit_path("file", file), emit_count("prot", mapping->prot),
		          emit_count("flags", mapping->flags));
		emit_say(e, i < FILES_SHOWN ? "{kind} of {name}: {size}" : NULL,
		         emit_word("kind", report_mapping(&kind)), emit_word("name", names_base(file)),
		         emit_bytes("size", mapping->bytes));
		if (e->format == EMIT_JSON)
			report_stack(e, r, "stack", "", mapping->stack);
		emit_close(e);
	}
	emit_close(e);
	if (at->mapping_count > FILES_SHOWN)
		emit_text(e, "and {more} more mappings", emit_count("more", at->mapping_count - FILES_SHOWN));
}

void report_at(struct emitter *e, const struct report *r)
{
	const struct snapshot *at = r->model->at;

	if (!at)
		return;
	emit_open(e, "at", "The pool at one moment");
	say_nothing(e, r, at);
	if (at->state == SNAPSHOT_SHOWN) {
		say_moment(e, r, at);
		emit_blocks(e, r, at);
		emit_files(e, r, at);
		emit_mappings(e, r, at);
	}
	emit_close(e);
}
