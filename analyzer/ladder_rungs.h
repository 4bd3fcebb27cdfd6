/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rungs' own functions. Each gets the situation and fills in its row (state, relief, needed,
 * reason, missing) and, where it has one, its plan; ladder.c does the rest.
 */
#ifndef SPARKTRACE_LADDER_RUNGS_H
#define SPARKTRACE_LADDER_RUNGS_H

#include "ladder.h"

struct situation {
	const struct model *model;
	const struct options *options;
	const struct budget *budget;
	struct range need;  /* Mn */
	bool died, in_load; /* it died; the needed peak lies in the load */
	uint64_t room,
		band; /* budget that rungs 2 to 4 work with: a flush comes first, unless it was tried */
	struct range growth;    /* device bytes that came after the load had settled, at the steps' peak */
	struct range optimizer; /* gradients and optimizer states; open: unknown */
};

typedef void rung_function(const struct situation *s, struct ladder *ladder, struct rung_result *r);

rung_function rung_flush, rung_load, rung_pack, rung_method, rung_sparks;

static inline void rung_refuse(struct rung_result *r, const char *reason)
{
	r->state = RUNG_NOT;
	r->reason = reason;
}

/* Cannot tell: up to `most` bytes are possible. */
static inline void rung_doubt(struct rung_result *r, uint64_t most, const char *reason, const char *missing)
{
	r->state = RUNG_UNKNOWN;
	r->relief = (struct range){0, most};
	r->reason = reason;
	r->missing = missing;
}

#endif
