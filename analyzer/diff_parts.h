/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a comparison among themselves. */
#ifndef SPARKTRACE_DIFF_PARTS_H
#define SPARKTRACE_DIFF_PARTS_H

#include <analyzer/diff.h>

/* Signed forms of a value, and what became of it. */
struct change diff_value(struct range range);
struct change diff_change(struct change before, struct change after);

/* Fills change, noise and state of a row whose values are there. */
void diff_judge(struct diff_row *row, uint64_t scheduling);
enum diff_state diff_state(struct change change, uint64_t noise);
uint64_t diff_noise(enum diff_class class, enum metric_unit unit, struct change before, uint64_t scheduling);

/* diff_scheduling.c: by how much each metric moves with the threads' scheduling. */
void diff_scheduling(struct diff *diff);

/* The model of one process. */
static inline const struct model *diff_model(const struct measure *measure, size_t process)
{
	return measure->total ? measure->total->parts[process].model : measure->model;
}

enum diff_class diff_metric_class(enum metric metric);

/* diff_layers.c */
void diff_layers_compare(struct diff *diff);

/* diff_breakdown.c: 0 or -ENOMEM; after the peaks. */
int diff_breakdowns(struct diff *diff);
void diff_parts_release(struct diff_parts *parts);

/* diff_verdict.c: 0 or -ENOMEM; after all rows and parts. */
int diff_verdict(struct diff *diff);
int diff_notes(struct diff *diff);
int diff_fail_on(struct diff *diff, const struct diff_limits *limits);

/* diff_words.c. Text for people, to be freed: a value, a change with its sign. NULL: no memory. */
char *diff_value_text(const struct diff_row *row, struct change value);
char *diff_change_text(enum metric_unit unit, struct change change);

/* Adds one sentence to a list; takes `sentence`, NULL is -ENOMEM. */
int diff_sentence(char ***sentences, size_t *count, char *sentence);

#endif
