/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traces that a report was asked for, and which reports become of them.
 *
 *	folder		all traces in it; of these the newest run, the others are named as left out
 *	several files	those of one run (and machine) together, in one report; others by themselves
 *	one file	that process; where more of its run lies beside it, the report says so
 */
#ifndef SPARKTRACE_REPORT_SET_H
#define SPARKTRACE_REPORT_SET_H

#include "options.h"

/* What the report of one trace, or of one run, does not show. Zeros: nothing of that kind. */
struct report_beside {
	uint64_t traces, runs;      /* left out: of other runs, so many */
	const char *newest;         /* of these */
	uint64_t siblings;          /* traces of the same run beside a single one */
	const char *folder;         /* where they lie */
	uint64_t machine, machines; /* of a run on several machines this is one; else 0 */
};

/* Reports on all operands; the exit status. */
int report_operands(char *const *operands, int count, const struct options *options);

#endif
