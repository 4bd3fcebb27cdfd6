/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "commands.h"
#include "report_progress.h"
#include "report_set.h"
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long a report waits for the record of the program's end. */
#define END_PAUSE_NS 50000000
#define END_LOOKS    10

static report_section *const sections[] = {
	report_head,   report_fit,    report_peak,       report_pool,         report_failures,
	report_next,   report_at,     report_weights,    report_weight_files, report_tensors,
	report_relief, report_stages, report_transients, report_trace,        report_run,
};

/* Of a whole run; what only one process can tell is in its own report. */
static report_section *const run_sections[] = {
	report_run, report_fit, report_peak, report_pool, report_failures, report_next,
};

/* A trace of which parts are gone, or yet to come, proves no fit. */
static const char *find_blind_spot(const struct reader_summary *s)
{
	if (s->damaged_blocks || s->missing_blocks)
		return "the blocks of the trace that are damaged or missing";
	if (s->alive)
		return "the rest of the run: the program still runs";
	return NULL;
}

static const char *blind_spot(const struct report *r)
{
	const char *blind = r->run ? NULL : find_blind_spot(r->summary);

	for (size_t i = 0; r->run && !blind && i < r->run->part_count; i++)
		blind = find_blind_spot(reader_summary(r->run->parts[i].reader));
	return blind;
}

static void judge(struct report *r)
{
	budget_find(r->model, r->options, &r->budget);
	if (!r->budget.blind)
		r->budget.blind = blind_spot(r);
	r->judgement = budget_verdict(&r->budget, r->model, r->model->needed.demand);
	ladder_climb(r->model, r->options, &r->budget, &r->ladder);
}

static int write_report(const struct report *r)
{
	struct emitter e;

	report_section *const *const rows = r->run ? run_sections : sections;
	size_t count = r->run ? sizeof(run_sections) / sizeof(run_sections[0])
	                      : sizeof(sections) / sizeof(sections[0]);

	emit_begin(&e, stdout, r->options->json ? EMIT_JSON : EMIT_TEXT);
	for (size_t i = 0; i < count; i++)
		rows[i](&e, r);
	return emit_end(&e);
}

static int report_error(const char *path, int error)
{
	fprintf(stderr, "sparktrace-analyze: %s: %s\n", path, reader_strerror(error));
	return COMMAND_BAD;
}

static int build_model(const char *path, const struct options *options, struct reader **ret_reader,
                       struct model **ret_model)
{
	const struct model_options how = {.uma = options->uma || options->pool != ST_UNKNOWN,
	                                  .at = options->at};
	struct reader *reader;
	int error = options->ring ? reader_open_with_ring(path, options->ring, &reader)
	                          : reader_open(path, &reader);

	if (error)
		return error;
	progress_begin(reader);
	error = model_build(reader, &how, ret_model);
	progress_end();
	if (error)
		reader_free(reader);
	else
		*ret_reader = reader;
	return error;
}

/*
 * A program's destructor waits until its trace is whole; how it ended then comes some milliseconds after its end,
 * from a recorder whose ring is still there.
 */
static bool end_is_coming(const struct reader *reader, const struct model *model)
{
	const struct reader_summary *summary = reader_summary(reader);

	return summary->has_trailer && !model->exited && !access(summary->head.ring, F_OK);
}

static int build_whole_model(const char *path, const struct options *options, struct reader **ret_reader,
                             struct model **ret_model)
{
	const struct timespec pause = {.tv_nsec = END_PAUSE_NS};
	int error;

	for (int i = 0; !(error = build_model(path, options, ret_reader, ret_model)); i++) {
		if (i == END_LOOKS || !end_is_coming(*ret_reader, *ret_model))
			break;
		model_free(*ret_model);
		reader_free(*ret_reader);
		nanosleep(&pause, NULL);
	}
	return error;
}

int report_single(const char *path, const struct options *options, const struct report_beside *beside)
{
	struct report r = {.path = path, .options = options, .beside = beside};
	struct reader *reader;
	struct model *model;
	int error = build_whole_model(path, options, &reader, &model);

	if (error)
		return report_error(path, error);
	r.model = model;
	r.summary = reader_summary(reader);
	judge(&r);
	error = write_report(&r);
	model_free(model);
	reader_free(reader);
	if (error)
		return report_error("standard output", error);
	return verdict_status(r.judgement.verdict);
}

int report_run_of(struct run_card *const *cards, size_t count, const struct options *options,
                  const struct report_beside *beside)
{
	const struct model_options how = {.uma = options->uma || options->pool != ST_UNKNOWN};
	struct report r = {.path = cards[0]->path, .options = options, .beside = beside};
	struct run_total *total;
	const char *bad;
	int error = run_total_build(cards, count, &how, &total, &bad);

	if (error)
		return report_error(bad ? bad : r.path, error);
	r.run = total;
	r.model = total->model;
	judge(&r);
	error = write_report(&r);
	run_total_free(total);
	if (error)
		return report_error("standard output", error);
	return verdict_status(r.judgement.verdict);
}

static int print_help(void)
{
	puts("usage: sparktrace-analyze [report] [options] run.zst... | FOLDER\n\n"
	     "What the run did to the pool: did it fit, when was the peak, what was in the pool then,\n"
	     "what failed, and what to do next. Traces of one run (ranks, children) are taken together;\n"
	     "of a folder, the newest run.\n");
	options_print(stdout);
	return COMMAND_OK;
}

int cmd_report(int argc, char **argv)
{
	struct options options;
	int first;

	if (options_parse(argc, argv, &options, &first))
		return COMMAND_BAD;
	if (options.help)
		return print_help();
	if (first == argc) {
		fputs("sparktrace-analyze: name a trace; --help says more\n", stderr);
		return COMMAND_BAD;
	}
	return report_operands(argv + first, argc - first, &options);
}
