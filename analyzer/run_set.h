/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that were named, or lie in a folder, and how they hang together. */
#ifndef SPARKTRACE_RUN_SET_H
#define SPARKTRACE_RUN_SET_H

#include <analyzer/run.h>
#include <analyzer/run_folder.h>

/* A zeroed one is empty and ready. */
struct run_set {
	struct run_paths paths;
	struct run_card *cards; /* of the readable ones, in the order of the paths */
	size_t count;
};

/* Who hears of a trace that cannot be read. */
typedef void run_set_bad(void *context, const char *path, int error);

/*
 * Reads a card for each of `paths`, waiting a moment for a program's end where that is about to be written, and groups
 * them. Traces that cannot be read are left out. 0 or -ENOMEM.
 */
int run_set_read(struct run_set *set, bool together, run_set_bad *bad, void *context);
void run_set_release(struct run_set *set);

/* The same process: its trace was named twice, or is a copy. */
bool card_is_again(const struct run_card *a, const struct run_card *b);

/* The cards of a run that are of the machine of cards[first], each process once, into room for `count`; their number. */
size_t run_set_machine(const struct run_set *set, size_t first, struct run_card **ret_cards);

/* Is none before it of the same run and machine? */
bool run_set_is_first(const struct run_set *set, size_t index);

/* The card that was written to last, of runs other than `without` (SIZE_MAX: all); `count`: there is none. */
size_t run_set_newest(const struct run_set *set, size_t without);

#endif
