/* SPDX-License-Identifier: Apache-2.0 */
/* What came and went during the load: temporaries of a conversion, a quantiser, a re-packing, by stack. */
#include "report.h"

#include "names.h"
#include "stages_stack.h"

#include <stdlib.h>

#define SITES_SHOWN 64                  /* of each kind, in JSON */
#define TEXT_LEAST  (UINT64_C(1) << 20) /* less is not worth a line */

/* What the memory was for, as a stage of a load; NULL: its stack does not tell. */
static const char *purpose_of(const struct model *model, const struct transient_site *site)
{
	enum stage stage = stack_stage(model->stack_stages, site->stack);

	/* PyTorch converts on the host, then copies to the device: on the device .to() is the copy alone. */
	if (stage == STAGE_CONVERSION && (site->kind != TRANSIENT_HOST || site->returned > site->bytes / 2))
		return NULL;
	return report_stage(stage);
}

static const char *const kind_keys[TRANSIENT_KINDS] = {
	[TRANSIENT_HOST] = "host", [TRANSIENT_DEVICE] = "device", [TRANSIENT_REUSED] = "reused"};

/* A line for each kind that there is: what it came to, and what most of it was for. */
static const char *const sentences[TRANSIENT_KINDS] = {
	[TRANSIENT_HOST] = "Host memory: {total} in {count} blocks",
	[TRANSIENT_DEVICE] = "Device memory: {total} in {count} blocks",
	[TRANSIENT_REUSED] = "In device blocks that stayed: {total} were overwritten",
};

/* What is there until it is overwritten may have been done with long before; what was not kept is missing in the sum. */
static const char *at_once_words(const struct model *model, enum transient_kind kind)
{
	if (model->transients_cut)
		return kind == TRANSIENT_REUSED ? ", {at_once} of those that were kept there at once"
		                                : ", at least {at_once} at once";
	return kind == TRANSIENT_REUSED ? ", at most {at_once} of it there at once" : ", {at_once} at once";
}

/* The innermost Python frame that belongs to a distribution, in words; NULL: none. To be freed. */
static char *place_of(const struct names *names, uint32_t stack)
{
	for (size_t i = 0; names && i < names_python_depth(names, stack); i++) {
		struct python_frame frame = names_python_frame(names, stack, i);
		const struct package *package = frame.package;
		char *place;

		if (!package)
			continue;
		if (asprintf(&place, "%s, %s:%u", package->name, names_base(frame.file), frame.line) < 0)
			return NULL;
		return place;
	}
	return NULL;
}

/* The site of a kind with most bytes, of those with a purpose if any has; NULL: none. */
static const struct transient_site *top_site(const struct model *model, enum transient_kind kind)
{
	const struct transient_site *top = NULL;

	for (size_t i = 0; i < model->transient_count; i++) {
		const struct transient_site *site = &model->transients[i];

		if (site->kind != kind)
			continue;
		if (purpose_of(model, site))
			return site;
		if (!top)
			top = site;
	}
	return top;
}

/* Bytes of all sites of a kind with this purpose. */
static uint64_t purpose_bytes(const struct model *model, enum transient_kind kind, const char *purpose)
{
	uint64_t bytes = 0;

	for (size_t i = 0; purpose && i < model->transient_count; i++) {
		const struct transient_site *site = &model->transients[i];

		if (site->kind == kind && purpose_of(model, site) == purpose)
			bytes += site->bytes;
	}
	return bytes;
}

static void say_sites(struct emitter *e, const struct report *r, enum transient_kind kind)
{
	size_t shown = 0;

	emit_list(e, "sites", NULL);
	for (size_t i = 0; i < r->model->transient_count && shown < SITES_SHOWN; i++) {
		const struct transient_site *site = &r->model->transients[i];

		if (site->kind != kind)
			continue;
		shown++;
		emit_open(e, NULL, NULL);
		emit_only(e, emit_word("purpose", purpose_of(r->model, site)),
		          emit_count("count", site->count), emit_bytes("total", site->bytes),
		          emit_bytes("at_once", site->at_once), emit_bytes("largest", site->largest),
		          emit_bytes("copied", site->copied), emit_bytes("returned", site->returned));
		report_stack(e, r, "stack", "", site->stack);
		emit_close(e);
	}
	emit_close(e);
}

static void say_kind(struct emitter *e, const struct report *r, enum transient_kind kind, bool aloud)
{
	const struct transient_sum *sum = &r->model->transient_sums[kind];
	const struct transient_site *top = top_site(r->model, kind);
	const char *purpose = top ? purpose_of(r->model, top) : NULL;
	char *place = top ? place_of(r->model->names, top->stack) : NULL, *sentence = NULL;

	if (aloud && sum->count &&
	    asprintf(&sentence, "%s%s%s%s.", sentences[kind], at_once_words(r->model, kind),
	             purpose ? "; {purpose} made {purpose_made} of it" : "", place ? " ({place})" : "") < 0)
		sentence = NULL;
	emit_open(e, kind_keys[kind], NULL);
	emit_say(e, sentence, emit_count("count", sum->count), emit_bytes("total", sum->bytes),
	         emit_bytes("at_once", sum->at_once), emit_bytes("copied", sum->copied),
	         emit_word("purpose", purpose),
	         emit_bytes("purpose_made", purpose_bytes(r->model, kind, purpose)),
	         emit_word("place", place));
	if (e->format == EMIT_JSON)
		say_sites(e, r, kind);
	emit_close(e);
	free(sentence);
	free(place);
}

void report_transients(struct emitter *e, const struct report *r)
{
	bool any = false;

	for (int kind = 0; kind < TRANSIENT_KINDS; kind++)
		any |= r->model->transient_sums[kind].bytes >= TEXT_LEAST;
	emit_open(e, "temporaries", any ? "What came and went during the load?" : NULL);
	emit_only(e, emit_flag("complete", !r->model->transients_cut));
	for (int kind = 0; kind < TRANSIENT_KINDS; kind++)
		say_kind(e, r, (enum transient_kind)kind, any);
	emit_close(e);
}
