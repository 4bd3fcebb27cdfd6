/* SPDX-License-Identifier: Apache-2.0 */
/* --fit: the report's own verdict, as with --pool SIZE --uma. */
#include <analyzer/budget.h>
#include <analyzer/check_parts.h>
#include <analyzer/run_wait.h>
#include <errno.h>
#include <sparktrace/format.h>
#include <stdlib.h>

/* A run's verdict on that machine. */
struct fit {
	struct budget budget;
	struct judgement judgement;
	struct range need;
};

static void judge(const struct model *model, const struct options *options, struct fit *ret_fit)
{
	budget_find(model, options, &ret_fit->budget);
	ret_fit->need = model->needed.demand;
	ret_fit->judgement = budget_verdict(&ret_fit->budget, model, ret_fit->need);
	/* As it is said: what comes after the end of a program that died is not known. */
	if (model->needed.lower_bound)
		ret_fit->need.hi = UINT64_MAX;
}

/* Where device memory was apart from the pool the run is replayed as if it had been in it. */
static int judge_projected(const struct measure *run, const struct options *options, struct fit *ret_fit)
{
	struct model_options projected = {.uma = true};
	struct run_total *total = NULL;
	struct reader *reader = NULL;
	struct model *model = NULL;
	struct run_card **cards;
	const char *bad;
	int error;

	if (!run->total) {
		error = model_read_whole(run->path, NULL, &projected, &(struct model_watch){0}, &reader,
		                         &model);
		if (!error)
			judge(model, options, ret_fit);
		model_free(model);
		reader_free(reader);
		return error;
	}
	cards = calloc(run->total->part_count, sizeof(struct run_card *));
	if (!cards)
		return -ENOMEM;
	for (size_t i = 0; i < run->total->part_count; i++)
		cards[i] = run->total->parts[i].card;
	error = run_total_build(cards, run->total->part_count, &projected, &total, &bad);
	free(cards);
	if (!error) {
		judge(total->model, options, ret_fit);
		run_total_free(total);
	}
	return error;
}

/* The options of a report that asks that. */
static int report_options(uint64_t pool, struct options *ret_options)
{
	char name[] = "report", *argv[] = {name, NULL};
	int first, error = options_parse(1, argv, ret_options, &first);

	ret_options->pool = pool;
	ret_options->uma = true;
	return error;
}

static int judge_run(const struct measure *run, const struct options *options, struct fit *ret_fit)
{
	if (run->model->pool == ST_POOL_DISCRETE)
		return judge_projected(run, options, ret_fit);
	judge(run->model, options, ret_fit);
	return 0;
}

/* Why that verdict is not what the trace says; NULL: it is. */
static const char *doubt_of(const struct measure *run, enum verdict verdict)
{
	const char *gap =
		verdict == VERDICT_DOES_NOT_FIT ? run->gaps[METRIC_MODELLED] : run->gaps[METRIC_DEVICE];

	if (verdict == VERDICT_DOES_NOT_FIT && !run->unproven)
		return NULL;
	return run->unusable ? run->unusable : gap;
}

/* The worst of all runs. */
static int judge_runs(const struct check *check, struct fit *ret_fit)
{
	struct options options;
	int error = report_options(check->options->fit, &options);

	for (size_t i = 0; !error && i < check->measures->count; i++) {
		const struct measure *run = &check->measures->runs[i];
		const char *doubt;
		struct fit fit;

		error = judge_run(run, &options, &fit);
		doubt = error ? NULL : doubt_of(run, fit.judgement.verdict);
		if (doubt)
			fit.judgement = (struct judgement){VERDICT_CANNOT_TELL, doubt};
		if (!error &&
		    (!i || fit.judgement.verdict > ret_fit->judgement.verdict ||
		     (fit.judgement.verdict == ret_fit->judgement.verdict && fit.need.lo > ret_fit->need.lo)))
			*ret_fit = fit;
	}
	return error;
}

static enum check_state state_of(enum verdict verdict)
{
	static const enum check_state states[VERDICT_COUNT] = {
		[VERDICT_FITS] = CHECK_OK,           [VERDICT_AFTER_FLUSH] = CHECK_OK,
		[VERDICT_TIGHT] = CHECK_WARNED,      [VERDICT_CANNOT_TELL] = CHECK_CANNOT_TELL,
		[VERDICT_DOES_NOT_FIT] = CHECK_OVER,
	};

	return states[verdict];
}

void check_fit(struct check *check)
{
	struct check_line line = {.metric = METRIC_COUNT,
	                          .against = AGAINST_FIT,
	                          .before = RANGE_UNKNOWN,
	                          .spread = RANGE_UNKNOWN,
	                          .given = check->options->fit_given};
	struct fit fit = {.need = RANGE_UNKNOWN};
	int error = judge_runs(check, &fit);

	if (error) {
		check->error = check->error ? check->error : error;
		return;
	}
	line.value = fit.need;
	line.limit = fit.budget.flush;
	line.state = state_of(fit.judgement.verdict);
	line.sentence = check_sentence(check, &line, fit.judgement.missing);
	if (line.state == CHECK_CANNOT_TELL && line.sentence)
		check_reason(check, check_format(check, "%s", line.sentence));
	if (line.state == CHECK_OVER)
		check_note(check,
		           check_format(check,
		                        "`sparktrace-analyze --pool %s --uma %s` says what to do about it",
		                        line.given, check->measures->runs[0].path));
	check_add_line(check, &line);
}
