/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repairs: what would make a load take less, for the loader and version in front of us. A new one is a row of
 * repairs.def; what each saves here comes from the what-if of its effect.
 */
#ifndef SPARKTRACE_REPAIR_H
#define SPARKTRACE_REPAIR_H

#include <analyzer/model.h>

/* What has to be touched, least first. */
enum repair_kind { REPAIR_ENVIRONMENT, REPAIR_UPGRADE, REPAIR_ARGUMENT, REPAIR_CODE };

struct repair_row {
	const char *id, *package, *since, *before;
	unsigned signs; /* bits of SIGN_* in repair.c */
	enum effect effect;
	enum repair_kind kind;
	const char *change, *type, *source;
};

struct repair {
	const struct repair_row *row;
	const struct loader *loader;
	const struct loader_part *part; /* the one that the row names, NULL */
	struct outcome predicted;
	struct range relief;         /* of the needed peak */
	struct range relief_load;    /* of the modelled peak of the load */
	struct range relief_cached;  /* of the resident peak of the load */
	double factor_lo, factor_hi; /* load factor then */
};

#define REPAIRS_MAX 16

/* Best first: the lowest needed peak, then the least to change. */
struct repairs {
	struct repair found[REPAIRS_MAX];
	unsigned count;
};

extern const char *const repair_kind_names[];
extern const char *const effect_names[EFFECT_COUNT]; /* "readonly", ...: of JSON */
extern const char *const effect_meanings[EFFECT_COUNT];

void repairs_find(const struct model *model, struct repairs *ret_repairs);

/* The best one that makes the needed peak smaller, NULL for none. */
const struct repair *repairs_best(const struct repairs *repairs);

/* What to type, with the run's own command line in it: to be freed; NULL without memory or where there is nothing. */
char *repair_command(const struct model *model, const struct repair *repair);

#endif
