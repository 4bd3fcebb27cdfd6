/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine had to give, and whether a need fits into it.
 *
 *	Bn  budget now         = MemFree at start (with the per-CPU lists) - max(reserve, watermarks)
 *	Bf  budget after flush = MemAvailable at start (with the same) - reserve
 *
 * --budget sets both, as final values. --pool is a machine of that size with nothing else on it: both are
 * its size less the reserve.
 */
#ifndef SPARKTRACE_BUDGET_H
#define SPARKTRACE_BUDGET_H

#include "model.h"
#include "options.h"

enum budget_source { BUDGET_MEASURED, BUDGET_GIVEN, BUDGET_PROJECTED };

struct budget {
	enum budget_source source;
	uint64_t now, flush;           /* Bn, Bf, bytes; ST_UNKNOWN: unknown, see `missing` */
	uint64_t band_now, band_flush; /* a need above budget - band is tight */
	uint64_t reserve, watermark;   /* bytes; watermark ST_UNKNOWN where never sampled */
	uint64_t host_limit;           /* of the cgroup, binds host memory only; ST_UNKNOWN: none */
	const char *missing;           /* the input without which there is no budget, NULL */
	const char *blind;             /* why the trace may have missed needs: nothing then fits; NULL */
};

/* From the best to the worst, with "cannot tell" before "does not fit": a change of verdict is a step left.
 */
enum verdict {
	VERDICT_FITS,
	VERDICT_AFTER_FLUSH,
	VERDICT_TIGHT,
	VERDICT_CANNOT_TELL,
	VERDICT_DOES_NOT_FIT,
	VERDICT_COUNT
};

extern const char *const verdict_names[VERDICT_COUNT]; /* "fits", "fits after flush", ... */

struct judgement {
	enum verdict verdict;
	const char *missing; /* of "cannot tell": the input that would decide; else NULL */
};

void budget_find(const struct model *model, const struct options *options, struct budget *ret_budget);

/* `need` against the budget, whatever may come after the phase that it is the need of. */
struct judgement budget_judge(const struct budget *budget, struct range need);

/*
 * `need` as the need of the whole run of `model`: where later phases were never seen, or events are
 * missing, nothing is said to fit.
 */
struct judgement budget_verdict(const struct budget *budget, const struct model *model, struct range need);

/* Bytes of host memory that the run needed at least: what a cgroup limit binds. */
uint64_t budget_host_need(const struct model *model);

/* Is it the cgroup limit alone that makes the run not fit? */
bool budget_limit_binds(const struct budget *budget, const struct model *model);

/* Exit status for a verdict (spec 01). */
int verdict_status(enum verdict verdict);

#endif
