/* SPDX-License-Identifier: Apache-2.0 */
#include "report_set.h"

#include "commands.h"
#include "report.h"
#include "run.h"
#include "run_folder.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a report waits for the record of the program's end. */
#define END_PAUSE_NS 50000000
#define END_LOOKS    10

/* Cards of all traces of one command line. */
struct set {
	const struct options *options;
	struct run_paths paths;
	struct run_card *cards;
	size_t count;
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

static int complain(const char *path, int error)
{
	fprintf(stderr, "sparktrace-analyze: %s: %s\n", path, reader_strerror(error));
	return COMMAND_BAD;
}

static void set_release(struct set *set)
{
	for (size_t i = 0; i < set->count; i++)
		card_release(&set->cards[i]);
	free(set->cards);
	paths_release(&set->paths);
}

/* Waits a moment for how the program ended. */
static int card_read_whole(const char *path, struct run_card *ret_card)
{
	const struct timespec pause = {.tv_nsec = END_PAUSE_NS};
	int error = card_read(path, ret_card);

	for (int i = 0; !error && ret_card->ending && i < END_LOOKS; i++) {
		nanosleep(&pause, NULL);
		card_release(ret_card);
		error = card_read(path, ret_card);
	}
	return error;
}

static int set_read(struct set *set)
{
	set->cards = calloc(set->paths.count + 1, sizeof(*set->cards));
	if (!set->cards)
		return -ENOMEM;
	for (size_t i = 0; i < set->paths.count; i++) {
		int error = card_read_whole(set->paths.paths[i], &set->cards[set->count]);

		if (error)
			set->status = worse_status(set->status, complain(set->paths.paths[i], error));
		else
			set->count++;
	}
	cards_group(set->cards, set->count, set->options->together);
	return 0;
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

/* The cards of a run that are of the machine of cards[first]; the number of them. */
static size_t machine_cards(struct set *set, size_t first, struct run_card **ret_cards)
{
	const struct run_card *own = &set->cards[first];
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		if (set->cards[i].group == own->group && !strcmp(set->cards[i].boot_id, own->boot_id))
			ret_cards[count++] = &set->cards[i];
	return count;
}

static bool is_first_of_machine(const struct set *set, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (set->cards[i].group == set->cards[index].group &&
		    !strcmp(set->cards[i].boot_id, set->cards[index].boot_id))
			return false;
	return true;
}

static void report_machine(struct set *set, size_t first, const struct report_beside *beside)
{
	struct run_card **cards = calloc(set->count, sizeof(*cards));
	size_t count = cards ? machine_cards(set, first, cards) : 0;

	if (count == 1) {
		report_one(set, cards[0]->path, beside);
	} else if (count) {
		report_begin(set);
		set->status = worse_status(set->status, report_run_of(cards, count, set->options, beside));
	} else {
		set->status = worse_status(set->status, complain(set->cards[first].path, -ENOMEM));
	}
	free(cards);
}

/* All machines of the run that this card is the first of. */
static void report_group(struct set *set, size_t group, struct report_beside *beside)
{
	uint64_t machines = 0, machine = 0;

	for (size_t i = 0; i < set->count; i++)
		machines += set->cards[i].group == group && is_first_of_machine(set, i);
	for (size_t i = 0; i < set->count; i++) {
		if (set->cards[i].group != group || !is_first_of_machine(set, i))
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
	for (size_t i = 0; i < set->count; i++)
		if (set->cards[i].group == i)
			report_group(set, i, &(struct report_beside){0});
}

static size_t newest_group(const struct set *set, size_t without)
{
	size_t newest = set->count;

	for (size_t i = 0; i < set->count; i++)
		if (set->cards[i].group != without &&
		    (newest == set->count ||
		     card_day_end(&set->cards[i]) > card_day_end(&set->cards[newest])))
			newest = i;
	return newest;
}

static void report_folder(struct set *set, const char *folder)
{
	struct report_beside beside = {.folder = folder};
	size_t newest = newest_group(set, SIZE_MAX), next, group = set->cards[newest].group;

	next = newest_group(set, group);
	for (size_t i = 0; i < set->count; i++) {
		beside.traces += set->cards[i].group != group;
		beside.runs += set->cards[i].group != group && set->cards[i].group == i;
	}
	beside.newest = next < set->count ? set->cards[next].path : NULL;
	report_group(set, group, &beside);
}

static int operand_folder(const char *folder, const struct options *options, bool written)
{
	struct set set = {.options = options, .written = written};
	int error = paths_in_folder(&set.paths, folder, NULL, 0);

	if (!error && !set.paths.count) {
		fprintf(stderr, "sparktrace-analyze: %s: no trace lies in this folder\n", folder);
		set.status = COMMAND_BAD;
	} else if (!error) {
		error = set_read(&set);
	}
	if (error)
		set.status = complain(folder, error);
	else if (set.count)
		report_folder(&set, folder);
	set_release(&set);
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
	if (!paths_in_folder(&set.paths, folder, own.boot_id, card_day_start(&own) / 1000000000) &&
	    set.paths.count > 1 && !set_read(&set)) {
		size_t at = 0;

		while (at < set.count && (set.cards[at].pid != own.pid || set.cards[at].start != own.start))
			at++;
		for (size_t i = 0; at < set.count && i < set.count; i++)
			siblings += i != at && set.cards[i].group == set.cards[at].group;
	}
	card_release(&own);
	set_release(&set);
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
		error = path_is_folder(operands[i]) ? 0 : paths_add(&set.paths, operands[i]);
	if (!error)
		error = set_read(&set);
	if (error)
		set.status = complain(operands[0], error);
	else
		report_files(&set);
	for (int i = 0; i < count; i++)
		if (path_is_folder(operands[i]))
			set.status = worse_status(set.status, operand_folder(operands[i], options, true));
	set_release(&set);
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
