/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "commands.h"
#include "report_progress.h"
#include "report_set.h"
#include "run.h"
#include "run_wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static report_section *const sections[] = {
	report_head,   report_fit,    report_peak,       report_pool,         report_failures,
	report_next,   report_at,     report_weights,    report_weight_files, report_tensors,
	report_relief, report_stages, report_transients, report_trace,        report_run,
};

/* Of a whole run; what only one process can tell is in its own report. */
static report_section *const run_sections[] = {
	report_run, report_fit, report_peak, report_pool, report_failures, report_next,
};

static const char *blind_spot(const struct report *r)
{
	const char *blind = r->run ? NULL : trace_blind_spot(r->summary);

	for (size_t i = 0; r->run && !blind && i < r->run->part_count; i++)
		blind = trace_blind_spot(reader_summary(r->run->parts[i].reader));
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
	return complain(path, reader_strerror(error));
}

static int build_whole_model(const char *path, const struct options *options, struct reader **ret_reader,
                             struct model **ret_model)
{
	const struct model_options how = {.uma = options->uma || options->pool != ST_UNKNOWN,
	                                  .at = options->at};
	const struct model_watch watch = {progress_begin, progress_end};

	return model_read_whole(path, options->ring, &how, &watch, ret_reader, ret_model);
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
