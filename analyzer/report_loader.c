/* SPDX-License-Identifier: Apache-2.0 */
/* Who loaded the weights, and what would make that take less. */
#include "report.h"

#include "demangle.h"
#include "names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPAIRS_SHOWN 6

/* --- the loader ---------------------------------------------------------------------------------- */

static void print_part(FILE *out, const struct loader_part *part)
{
	fprintf(out, "%s %s", part->name, part->version ? part->version : "(version unknown)");
}

/* What others stand on is named only where there are no others. */
static bool is_named(const struct loader *loader, const struct loader_part *part)
{
	return !part->base || loader->parts[0].base;
}

static void print_parts(FILE *out, const struct loader *loader)
{
	unsigned named = 0;

	for (unsigned i = 0; i < loader->part_count; i++) {
		if (!is_named(loader, &loader->parts[i]))
			continue;
		fputs(!named ? "" : named == 1 ? " through " : ", ", out);
		print_part(out, &loader->parts[i]);
		named++;
	}
}

static void print_place(FILE *out, const char *function, const char *file, uint32_t line)
{
	char *name = function ? demangle_name(function) : NULL;

	fputs(name ? name : "?", out);
	free(name);
	if (file)
		fprintf(out, " (%s", names_base(file));
	if (file && line)
		fprintf(out, ":%u", line);
	if (file)
		fputc(')', out);
}

/* An unknown one has no name but its way of loading. */
static void print_signature(FILE *out, const struct loader *loader)
{
	static const char *const ways[COPY_SOURCE_COUNT] = {
		[COPY_PRIVATE_WRITABLE] = "copies straight out of private writable mappings",
		[COPY_MAPPING] = "copies straight out of mappings",
		[COPY_PINNED] = "copies out of pinned memory",
		[COPY_REGISTERED] = "copies out of registered memory",
		[COPY_HOST] = "copies out of the heap",
		[COPY_OTHER] = "copies out of other host memory",
	};
	int most = -1;

	for (int i = 0; i < COPY_SOURCE_COUNT; i++)
		if (loader->copied[i] && (most < 0 || loader->copied[i] > loader->copied[most]))
			most = i;
	fprintf(out, "an unknown loader, by its signature: %s, %s",
	        loader->read > loader->mapped ? "reads" : "maps", most < 0 ? "copies nothing" : ways[most]);
}

char *report_loader_words(const struct loader *loader)
{
	char *words = NULL;
	size_t size;
	FILE *out = open_memstream(&words, &size);

	if (!out)
		return NULL;
	if (!loader->part_count)
		print_signature(out, loader);
	else
		print_parts(out, loader);
	/* A native frame says nothing where the user's own line is known. */
	if (loader->function && (loader->line || !loader->caller)) {
		fputs(", ", out);
		if (loader->entry && strcmp(loader->entry, loader->function) != 0)
			fprintf(out, "%s > ", loader->entry);
		print_place(out, loader->function, loader->file, loader->line);
	}
	if (loader->caller) {
		fputs(", called from ", out);
		print_place(out, loader->caller, loader->caller_file, loader->caller_line);
	}
	if (fclose(out)) {
		free(words);
		return NULL;
	}
	return words;
}

static void emit_parts(struct emitter *e, const struct loader *loader)
{
	static const struct emit_column columns[4];

	emit_table(e, "parts", columns, 4);
	for (unsigned i = 0; i < loader->part_count; i++)
		emit_row(e, false,
		         (struct emit_field[]){
				 emit_word("name", loader->parts[i].name),
				 emit_word("version", loader->parts[i].version),
				 emit_bytes("direct", loader->parts[i].direct),
				 emit_bytes("read", loader->parts[i].read),
			 });
	emit_table_end(e);
}

static void emit_sources(struct emitter *e, const struct loader *loader)
{
	emit_open(e, "copied_from", NULL);
	emit_only(e, emit_bytes("private_writable_mapping", loader->copied[COPY_PRIVATE_WRITABLE]),
	          emit_bytes("other_mapping", loader->copied[COPY_MAPPING]),
	          emit_bytes("pinned", loader->copied[COPY_PINNED]),
	          emit_bytes("registered", loader->copied[COPY_REGISTERED]),
	          emit_bytes("heap", loader->copied[COPY_HOST]),
	          emit_bytes("other", loader->copied[COPY_OTHER]));
	emit_close(e);
}

static uint64_t line_or_unknown(uint32_t line)
{
	return line ? line : UINT64_MAX;
}

static void emit_loader(struct emitter *e, const struct report *r, const struct loader *loader)
{
	const struct loader_part *head = loader->part_count ? &loader->parts[0] : NULL;
	char *words = report_loader_words(loader);

	emit_open(e, NULL, NULL);
	emit_say(e,
	         r->model->loader_count > 1 ? "{loaded} in {files} files were loaded by {words}."
	                                    : "Loaded by {words}.",
	         emit_word("words", words), emit_word("name", head ? head->name : NULL),
	         emit_word("version", head ? head->version : NULL), emit_word("entry", loader->entry),
	         emit_word("function", loader->function), emit_path("file", loader->file),
	         emit_count("line", line_or_unknown(loader->line)), emit_word("caller", loader->caller),
	         emit_path("caller_file", loader->caller_file),
	         emit_count("caller_line", line_or_unknown(loader->caller_line)),
	         emit_bytes("loaded", loader->bytes), emit_count("files", loader->file_count),
	         emit_path("first_file", report_file(r, loader->first_file)), emit_flag("kept", loader->kept),
	         emit_bytes("mapped", loader->mapped), emit_bytes("read", loader->read));
	emit_parts(e, loader);
	emit_sources(e, loader);
	emit_close(e);
	free(words);
}

#define LOADERS_SHOWN 3

void report_loaders(struct emitter *e, const struct report *r)
{
	size_t count = r->model->loader_count;

	emit_list(e, "loaders", NULL);
	for (size_t i = 0; i < count && (e->format == EMIT_JSON || i < LOADERS_SHOWN); i++)
		emit_loader(e, r, &r->model->loaders[i]);
	emit_close(e);
	if (count > LOADERS_SHOWN)
		emit_text(e, "and by {more} more ways", emit_count("more", count - LOADERS_SHOWN));
	emit_say(e,
	         r->model->touches_dropped ? "Not told: {loader_calls_lost} calls, from more places than "
	                                     "are kept."
	                                   : NULL,
	         emit_count("loader_calls_lost", r->model->touches_dropped));
}

/* --- repairs ------------------------------------------------------------------------------------- */

static void emit_prediction(struct emitter *e, const struct repair *repair)
{
	emit_open(e, "predicted", NULL);
	emit_only(e, report_range("modelled", repair->predicted.modelled),
	          report_range("demand", repair->predicted.demand),
	          report_range("resident", repair->predicted.resident),
	          emit_ratio("factor_low", repair->factor_lo),
	          emit_ratio("factor", repair->factor_lo >= repair->factor_hi ? repair->factor_hi : NAN),
	          emit_ratio("factor_high", repair->factor_hi));
	emit_close(e);
}

static void emit_repair(struct emitter *e, const struct report *r, const struct repair *repair)
{
	const struct repair_row *row = repair->row;
	char *command = repair_command(r->model, repair);

	emit_open(e, NULL, NULL);
	emit_only(e, emit_word("id", row->id), emit_word("text", row->change), emit_word("command", command),
	          emit_word("kind", repair_kind_names[row->kind]),
	          emit_word("effect", effect_names[row->effect]),
	          emit_word("meaning", effect_meanings[row->effect]),
	          emit_word("loader", repair->part ? repair->part->name : NULL),
	          emit_word("version", repair->part ? repair->part->version : NULL),
	          report_range("relief", repair->relief),
	          report_range("relief_modelled", repair->relief_load),
	          report_range("relief_resident", repair->relief_cached), emit_word("source", row->source));
	emit_prediction(e, repair);
	emit_close(e);
	free(command);
}

static void say_repair(struct emitter *e, const struct report *r, const struct repair *repair, bool first)
{
	const struct repair_row *row = repair->row;
	bool cache = row->effect == EFFECT_DROP || row->effect == EFFECT_READONLY_DROP;
	char *command = repair_command(r->model, repair);
	bool one = repair->factor_hi - repair->factor_lo < 0.005;
	const char *sentence = first ? "Repair: {change}; it saves {relief}, load factor {factor} then."
	                             : "Or: {change}; saves {relief}, load factor {factor}.";

	if (!one)
		sentence = first ? "Repair: {change}; it saves {relief}, load factor {factor_low} to "
		                   "{factor} then."
		                 : "Or: {change}; saves {relief}, load factor {factor_low} to {factor}.";
	if (cache)
		sentence = "Also: {change}; {cached} less in the pool at the load's peak.";
	emit_text(e, sentence, emit_word("change", row->change), report_range("relief", repair->relief),
	          report_range("cached", repair->relief_cached), emit_ratio("factor_low", repair->factor_lo),
	          emit_ratio("factor", repair->factor_hi));
	if (command)
		emit_command(e, command);
	free(command);
}

void report_repairs(struct emitter *e, const struct report *r)
{
	const struct repairs *repairs = &r->ladder.repairs;

	emit_list(e, "repairs", NULL);
	for (unsigned i = 0; e->format == EMIT_JSON && i < repairs->count; i++)
		emit_repair(e, r, &repairs->found[i]);
	emit_close(e);
}

void report_say_repairs(struct emitter *e, const struct report *r)
{
	const struct repairs *repairs = &r->ladder.repairs;

	for (unsigned i = 0; i < repairs->count && i < REPAIRS_SHOWN; i++)
		say_repair(e, r, &repairs->found[i], i == 0);
}
