/* SPDX-License-Identifier: Apache-2.0 */
#include "report_set.h"

#include "commands.h"
#include "report.h"
#include "run_set.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cards of all traces of one command line. */
struct set {
	const struct options *options;
	struct run_set run;
	int status;
	bool written; /* a report: the next one in text stands apart */
};

/* Of several traces: unreadable input outweighs a run that does not fit, and that one that cannot be told. */
static int worse_status(int a, int b)
{
	static const int rank[] = {
		[COMMAND_OK] = 0, [COMMAND_CANNOT_TELL] = 1, [COMMAND_OVER] = 2, [COMMAND_BAD] = 3};

	return rank[a] > rank[b] ? a : b;
}

static void set_complain(void *context, const char *path, int error)
{
	struct set *set = context;

	set->status = worse_status(set->status, complain(path, reader_strerror(error)));
}

static int set_read(struct set *set)
{
	return run_set_read(&set->run, set->options->together, set_complain, set);
}

/* --- one report ----------------------------------------------------------------------------------- */

static void report_begin(struct set *set)
{
	if (set->written && !set->options->json)
		putchar('\n');
	set->written = true;
}

static void report_one(struct set *set, const char *path, const struct report_beside *beside)
{
	report_begin(set);
	set->status = worse_status(set->status, report_single(path, set->options, beside));
}

static void report_machine(struct set *set, size_t first, const struct report_beside *beside)
{
	struct run_card **cards = calloc(set->run.count, sizeof(*cards));
	size_t count = cards ? run_set_machine(&set->run, first, cards) : 0;

	if (count == 1) {
		report_one(set, cards[0]->path, beside);
	} else if (count) {
		report_begin(set);
		set->status = worse_status(set->status, report_run_of(cards, count, set->options, beside));
	} else {
		set->status =
			worse_status(set->status, complain(set->run.cards[first].path, strerror(ENOMEM)));
	}
	free(cards);
}

/* All machines of the run that this card is the first of. */
static void report_group(struct set *set, size_t group, struct report_beside *beside)
{
	uint64_t machines = 0, machine = 0;

	for (size_t i = 0; i < set->run.count; i++)
		machines += set->run.cards[i].group == group && run_set_is_first(&set->run, i);
	for (size_t i = 0; i < set->run.count; i++) {
		if (set->run.cards[i].group != group || !run_set_is_first(&set->run, i))
			continue;
		machine++;
		beside->machine = machines > 1 ? machine : 0;
		beside->machines = machines > 1 ? machines : 0;
		report_machine(set, i, beside);
	}
}

/* --- operands ------------------------------------------------------------------------------------- */

/* Several files: one report for each run, in the order in which they were named. */
static void report_files(struct set *set)
{
	for (size_t i = 0; i < set->run.count; i++)
		if (set->run.cards[i].group == i)
			report_group(set, i, &(struct report_beside){0});
}

static void report_folder(struct set *set, const char *folder)
{
	struct report_beside beside = {.folder = folder};
	size_t newest = run_set_newest(&set->run, SIZE_MAX), next, group = set->run.cards[newest].group;

	next = run_set_newest(&set->run, group);
	for (size_t i = 0; i < set->run.count; i++) {
		beside.traces += set->run.cards[i].group != group;
		beside.runs += set->run.cards[i].group != group && set->run.cards[i].group == i;
	}
	beside.newest = next < set->run.count ? set->run.cards[next].path : NULL;
	report_group(set, group, &beside);
}

static int operand_folder(const char *folder, const struct options *options, bool written)
{
	struct set set = {.options = options, .written = written};
	int error = paths_in_folder(&set.run.paths, folder, NULL, 0);

	if (!error && !set.run.paths.count) {
		set.status = complain(folder, "no trace lies in this folder");
	} else if (!error) {
		error = set_read(&set);
	}
	if (error)
		set.status = complain(folder, reader_strerror(error));
	else if (set.run.count)
		report_folder(&set, folder);
	run_set_release(&set.run);
	return set.status;
}

/*
 * Is there more of this run beside it? Only traces of the same boot that were still written to when it began can be;
 * mostly there are none, and nothing is read.
 */
static uint64_t count_siblings(const char *path, const char *folder)
{
	struct set set = {.options = &(struct options){0}};
	struct run_card own;
	uint64_t siblings = 0;

	if (card_glance(path, &own))
		return 0;
	if (!paths_in_folder(&set.run.paths, folder, own.boot_id, card_day_start(&own) / 1000000000) &&
	    set.run.paths.count > 1 && !set_read(&set)) {
		size_t at = 0;

		while (at < set.run.count &&
		       (set.run.cards[at].pid != own.pid || set.run.cards[at].start != own.start))
			at++;
		for (size_t i = 0; at < set.run.count && i < set.run.count; i++)
			siblings += i != at && set.run.cards[i].group == set.run.cards[at].group;
	}
	card_release(&own);
	run_set_release(&set.run);
	return siblings;
}

static int operand_file(char *path, const struct options *options)
{
	char *copy = strdup(path);
	struct report_beside beside = {.folder = copy ? dirname(copy) : "."};
	int status;

	beside.siblings = options->ring ? 0 : count_siblings(path, beside.folder);
	status = report_single(path, options, &beside);
	free(copy);
	return status;
}

static int operands_files(char *const *operands, int count, const struct options *options)
{
	struct set set = {.options = options};
	int error = 0;

	for (int i = 0; !error && i < count; i++)
		error = path_is_folder(operands[i]) ? 0 : paths_add(&set.run.paths, operands[i]);
	if (!error)
		error = set_read(&set);
	if (error)
		set.status = complain(operands[0], reader_strerror(error));
	else
		report_files(&set);
	for (int i = 0; i < count; i++)
		if (path_is_folder(operands[i]))
			set.status = worse_status(set.status, operand_folder(operands[i], options, true));
	run_set_release(&set.run);
	return set.status;
}

int report_operands(char *const *operands, int count, const struct options *options)
{
	if (count > 1)
		return operands_files(operands, count, options);
	if (path_is_folder(operands[0]))
		return operand_folder(operands[0], options, false);
	return operand_file(operands[0], options);
}
