/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OOM ladder: what each rung would have bought in this run, and which one is next.
 * A new rung is a row of the table in ladder.c and a function (ladder_rungs.h).
 */
#ifndef SPARKTRACE_LADDER_H
#define SPARKTRACE_LADDER_H

#include "budget.h"
#include "repair.h"

enum rung_state {
	RUNG_APPLIES,
	RUNG_NOT,     /* proven not to apply, or not to help: `reason` */
	RUNG_UNKNOWN, /* cannot tell: `missing`; its relief is not zero but what is possible */
};

struct rung_result {
	enum rung rung;
	enum rung_state state;
	bool tried;
	struct range relief;        /* bytes; for the flush of budget, for the others of need */
	struct range needed;        /* new needed peak */
	struct judgement judgement; /* new verdict */
	const char *reason;         /* one clause: what it does here, or why it does nothing */
	const char *missing;        /* inputs that would make it exact, NULL */
};

/* Rung 2: the factor on the activations; ST_UNKNOWN where the old length is unknown. */
struct pack_plan {
	struct range activations;    /* bytes, Act */
	double factor_lo, factor_hi; /* f; NaN where there is none */
	bool upper_bound;            /* the step died: it may need less than f */
	uint64_t pack, batch;        /* new packing length (tokens) or batch (sequences) */
};

struct method_plan {
	enum method from, to; /* METHOD_UNKNOWN where not told */
	uint64_t half_step;   /* bytes that an 8-bit optimizer alone would free, ST_UNKNOWN */
};

struct sparks_plan {
	struct range shared; /* Sh, bytes that FSDP can shard */
	uint64_t sparks;     /* 0: no number of them is enough, or unknown */
	double model_share;  /* size of the largest model of this kind that fits, of this one; NaN */
};

enum next_kind {
	NEXT_RUNG,
	NEXT_NONE,    /* it ran and it fits */
	NEXT_OUTSIDE, /* no rung can cure this */
};

struct ladder {
	struct rung_result rungs[RUNG_COUNT];
	struct repairs repairs; /* of rung 1b */
	struct pack_plan pack;
	struct method_plan method;
	struct sparks_plan sparks;
	enum next_kind next_kind;
	enum rung next; /* of NEXT_RUNG */
	const char *next_reason;
};

extern const char *const rung_titles[RUNG_COUNT];
extern const char *const rung_state_names[]; /* of JSON, by enum rung_state */

void ladder_climb(const struct model *model, const struct options *options, const struct budget *budget,
                  struct ladder *ret_ladder);

#endif
