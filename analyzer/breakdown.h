/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the peaks of a load consisted of, under names that mean the same in another run: names of files, of tensors, of
 * functions; never an address, a process, a line number or a time.
 *
 *	file	the shortest tail of its path that no other weight file of the run has: mostly its base name
 *	tensor	its name; with the file's and ": " before it where two files have such a tensor
 *	stack	functions, innermost first, with " < " between: Python's where there are any (qualified, the interpreter's
 *		own left out), else native ones, demangled and without arguments; of a frame without a name its module's
 *		base name. At most BREAKDOWN_FRAMES. Stacks that come out alike are one part.
 */
#ifndef SPARKTRACE_BREAKDOWN_H
#define SPARKTRACE_BREAKDOWN_H

#include <analyzer/metrics.h>
#include <stddef.h>

#define BREAKDOWN_FRAMES 6

struct model;

enum part_kind { PART_FILE, PART_TENSOR, PART_STACK, PART_KINDS };

extern const char *const part_kind_names[PART_KINDS]; /* "file", "tensor", "stack" */

/*
 * Bytes at the peak of `metric`, as far as that is known part by part; of METRIC_READ bytes read in all.
 * The same bytes stand once by file, once by tensor and once by stack.
 */
struct part {
	enum metric metric; /* DEVICE, STAGING, ANON, HOST, MAPPED, READ */
	enum part_kind kind;
	char *name;
	struct range bytes;
	char *detail; /* for people, in one line, NULL: none; "private writable mapping; load_file (safetensors
	                 0.7.0, torch.py:359) < main (train.py:12)" */
};

struct breakdown {
	struct part *parts; /* by metric, kind, name; each once */
	size_t count;
};

/*
 * The parts of a run, from the models of its processes: the same names are added up. Which names are alike can only be told
 * of all of them together. Names and details are printable UTF-8: whatever else a trace holds is \xNN in them. 0 or -ENOMEM.
 */
int breakdown_make(const struct model *const *models, size_t count, struct breakdown *ret_breakdown);

/* The same of device memory when the run's demand was highest, by stack only: its metric is METRIC_DEVICE. */
int breakdown_make_run(const struct model *const *models, size_t count, struct breakdown *ret_breakdown);
void breakdown_release(struct breakdown *breakdown);

/* NULL: there is none. */
const struct part *breakdown_find(const struct breakdown *breakdown, enum metric metric, enum part_kind kind,
                                  const char *name);

/*
 * A part before and after; the one that is missing is 0 there. Most growth first (upper ends). A stack that only one run has
 * is taken for one that only the other has if the two innermost functions are the same, largest for largest: it was called
 * from elsewhere, or its callers got other names.
 */
struct growth {
	enum metric metric;
	enum part_kind kind;
	const char *name, *detail; /* of the breakdowns; detail of `after`, else of `before`, NULL */
	struct range before, after;
};

/* All parts of both. *ret_growths is freed with free(). 0 or -ENOMEM. */
int breakdown_compare(const struct breakdown *before, const struct breakdown *after,
                      struct growth **ret_growths, size_t *ret_count);

#endif
