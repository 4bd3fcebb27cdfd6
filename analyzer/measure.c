/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/measure_parts.h>
#include <analyzer/report_progress.h>
#include <analyzer/run_set.h>
#include <analyzer/run_wait.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int complain(const char *path, int error)
{
	fprintf(stderr, "sparktrace-analyze: %s: %s\n", path, reader_strerror(error));
	return error;
}

static int measure_parts(struct measure *measure, const struct measured *processes, size_t count)
{
	const struct model **models = calloc(count, sizeof(const struct model *));
	int error = models ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < count; i++)
		models[i] = processes[i].model;
	if (!error)
		error = breakdown_make(models, count, &measure->breakdown);
	free(models);
	return error;
}

/* All but who owns what: `whole` is the model of all processes together, of one process its own. 0 or -ENOMEM. */
static int measure_fill(struct measure *measure, const struct model *whole, const struct measured *processes,
                        size_t count)
{
	int error = fingerprint_make(&measure->fingerprint, whole, processes, count);

	measure_values(measure, whole, processes, count);
	if (!error)
		error = measure_versions(measure, processes, count);
	if (!error)
		error = measure_gaps(measure, whole, processes, count);
	if (!error)
		error = measure_parts(measure, processes, count);
	return error;
}

void measure_release(struct measure *measure)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		free(measure->gaps[i]);
	free(measure->unusable);
	for (size_t i = 0; i < measure->version_count; i++) {
		free(measure->versions[i].name);
		free(measure->versions[i].version);
	}
	free(measure->versions);
	fingerprint_release(&measure->fingerprint);
	breakdown_release(&measure->breakdown);
	if (measure->total)
		run_total_free(measure->total);
	else
		model_free((struct model *)measure->model);
	reader_free(measure->reader);
	*measure = (struct measure){0};
}

/* --- one run -------------------------------------------------------------------------------------- */

static int measure_single(struct measure *measure, const char *path)
{
	const struct model_watch watch = {progress_begin, progress_end};
	struct measured process;
	struct model *model;
	int error =
		model_read_whole(path, NULL, &(struct model_options){0}, &watch, &measure->reader, &model);

	if (error)
		return complain(path, error);
	measure->path = path;
	measure->model = model;
	process = (struct measured){model, reader_summary(measure->reader)};
	error = measure_fill(measure, model, &process, 1);
	return error ? complain(path, error) : 0;
}

static int measure_total(struct measure *measure, struct run_total *total)
{
	struct measured *processes = calloc(total->part_count, sizeof(*processes));
	int error;

	if (!processes)
		return -ENOMEM;
	for (size_t i = 0; i < total->part_count; i++)
		processes[i] =
			(struct measured){total->parts[i].model, reader_summary(total->parts[i].reader)};
	error = measure_fill(measure, total->model, processes, total->part_count);
	free(processes);
	return error;
}

static int measure_several(struct measure *measure, struct run_card *const *cards, size_t count)
{
	const char *bad = NULL;
	int error = run_total_build(cards, count, &(struct model_options){0}, &measure->total, &bad);

	if (error)
		return complain(bad ? bad : cards[0]->path, error);
	measure->path = cards[0]->path;
	measure->model = measure->total->model;
	error = measure_total(measure, measure->total);
	return error ? complain(measure->path, error) : 0;
}

/* A place for one more run. */
static struct measure *measures_add(struct measures *measures)
{
	struct measure *moved = realloc(measures->runs, (measures->count + 1) * sizeof(*moved));

	if (!moved)
		return NULL;
	measures->runs = moved;
	moved[measures->count] = (struct measure){0};
	return &moved[measures->count++];
}

/* The processes of one run on the machine of cards[first]. */
static int measure_machine(struct measures *measures, const struct run_set *set, size_t first)
{
	struct run_card **cards = calloc(set->count, sizeof(*cards));
	struct measure *measure = cards ? measures_add(measures) : NULL;
	size_t count = measure ? run_set_machine(set, first, cards) : 0;
	int error;

	if (!measure)
		error = complain(set->cards[first].path, -ENOMEM);
	else if (count == 1)
		error = measure_single(measure, cards[0]->path);
	else
		error = measure_several(measure, cards, count);
	free(cards);
	return error;
}

/* --- operands ------------------------------------------------------------------------------------- */

static void trace_bad(void *context, const char *path, int error)
{
	int *first = context;

	complain(path, error);
	*first = *first ? *first : error;
}

/* Sets stay with the measures: paths and cards are theirs. */
static struct run_set *sets_add(struct measures *measures)
{
	struct run_set **moved =
		realloc(measures->sets, (measures->set_count + 1) * sizeof(struct run_set *));
	struct run_set *set = moved ? calloc(1, sizeof(*set)) : NULL;

	measures->sets = moved ? moved : measures->sets;
	if (set)
		measures->sets[measures->set_count++] = set;
	return set;
}

/* The trace of another operand that tells of the same process, NULL: none. The last set is the one that is asked for. */
static const struct run_card *card_elsewhere(const struct measures *measures, const struct run_card *card)
{
	for (size_t i = 0; i + 1 < measures->set_count; i++)
		for (size_t k = 0; k < measures->sets[i]->count; k++)
			if (card_is_again(&measures->sets[i]->cards[k], card))
				return &measures->sets[i]->cards[k];
	return NULL;
}

/* Runs are counted: one that comes in by two folders would be two. */
static int folder_is_new(const struct measures *measures, const struct run_set *set, size_t group)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct run_card *again =
			set->cards[i].group == group ? card_elsewhere(measures, &set->cards[i]) : NULL;

		if (!again)
			continue;
		fprintf(stderr, "sparktrace-analyze: %s and %s are the same run: name it once\n", again->path,
		        set->cards[i].path);
		return -EEXIST;
	}
	return 0;
}

/* The newest run in a folder, each of its machines. */
static int measure_folder(struct measures *measures, const char *folder)
{
	struct run_set *set = sets_add(measures);
	int error = set ? paths_in_folder(&set->paths, folder, NULL, 0) : -ENOMEM, bad = 0;
	size_t newest, group;

	if (!error && !set->paths.count) {
		fprintf(stderr, "sparktrace-analyze: %s: no trace lies in this folder\n", folder);
		return -ENOENT;
	}
	if (!error)
		error = run_set_read(set, false, trace_bad, &bad);
	if (error || bad)
		return error ? complain(folder, error) : bad;
	newest = run_set_newest(set, SIZE_MAX);
	group = set->cards[newest].group;
	error = folder_is_new(measures, set, group);
	for (size_t i = 0; !error && i < set->count; i++)
		if (set->cards[i].group == group && run_set_is_first(set, i))
			error = measure_machine(measures, set, i);
	return error;
}

/* All files that were named together: one set, whose cards stand in their order. */
static int files_read(struct measures *measures, char *const *operands, int count, struct run_set **ret_set)
{
	struct run_set *set = sets_add(measures);
	int error = set ? 0 : -ENOMEM, bad = 0;

	for (int i = 0; !error && i < count; i++)
		error = path_is_folder(operands[i]) ? 0 : paths_add(&set->paths, operands[i]);
	if (!error)
		error = run_set_read(set, false, trace_bad, &bad);
	if (error)
		return complain(operands[0], error);
	*ret_set = set;
	return bad;
}

static int measure_alone(struct measures *measures, const char *path)
{
	struct measure *measure = measures_add(measures);

	return measure ? measure_single(measure, path) : complain(path, -ENOMEM);
}

static int measure_operands(struct measures *measures, char *const *operands, int count)
{
	struct run_set *files;
	size_t file = 0;
	int error;

	/* A trace alone is a process alone, whoever else was there. */
	if (count == 1 && !path_is_folder(operands[0]))
		return measure_alone(measures, operands[0]);
	error = files_read(measures, operands, count, &files);
	for (int i = 0; !error && i < count; i++) {
		if (path_is_folder(operands[i])) {
			error = measure_folder(measures, operands[i]);
			continue;
		}
		if (run_set_is_first(files, file))
			error = measure_machine(measures, files, file);
		file++;
	}
	return error;
}

int measures_read(char *const *operands, int count, struct measures *ret_measures)
{
	struct measures measures = {0};
	int error = measure_operands(&measures, operands, count);

	if (error)
		measures_release(&measures);
	else
		*ret_measures = measures;
	return error;
}

void measures_release(struct measures *measures)
{
	for (size_t i = 0; i < measures->count; i++)
		measure_release(&measures->runs[i]);
	free(measures->runs);
	for (size_t i = 0; i < measures->set_count; i++) {
		run_set_release(measures->sets[i]);
		free(measures->sets[i]);
	}
	free(measures->sets);
	*measures = (struct measures){0};
}
