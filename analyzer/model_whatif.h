/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What-ifs of the load: at every instant that may be a peak, what the pool would have held had the weights come
 * another way, so that the maxima are those of a replay with the repair applied.
 */
#ifndef SPARKTRACE_MODEL_WHATIF_H
#define SPARKTRACE_MODEL_WHATIF_H

#include <analyzer/ledger.h>
#include <analyzer/model.h>

struct build;

/* The maximum of a quantity that has no moment of its own; see struct peak. */
struct crest {
	struct range open, largest;
	uint64_t most; /* as in struct peak */
	bool is_open;
};

enum crest_name { CREST_DEMAND, CREST_MODELLED, CREST_RESIDENT, CREST_COUNT };

struct whatif {
	unsigned active;           /* bit 1 << enum effect */
	bool cow_seen, reads_seen; /* copies out of private writable mappings; reads of weights */
	bool stale;                /* page cache of files is older than that of the pool */
	uint64_t largest_tensor;
	uint64_t cache_then; /* page cache of the pool, by the last sample */
	struct crest crests[EFFECT_COUNT][CREST_COUNT];
	struct range at_death[EFFECT_COUNT][CREST_COUNT]; /* no CREST_RESIDENT */
	struct range heap_then;                           /* of the last sample: see whatif_heap() */
	struct range rest, rest_anon; /* what a load that died would still have taken, and in copies of A */
};

/* Of effects (model_effects.c). */
/* The parts of the pool that a way of loading decides on. */
struct imagined {
	struct range pinned, anon, staging; /* staging outside of pinned memory */
	struct range uncached;              /* page cache of weights that is not there */
	uint64_t cache_left;                /* most of it that is, UINT64_MAX: as it was */
	struct range heap;                  /* of H at the last sample: what is not there */
	bool other_staging;
};

struct effect_row {
	struct imagined (*imagine)(const struct build *build);
	bool no_copies; /* anonymous copies do not come about: not those under way either */
};

extern const struct effect_row effect_rows[EFFECT_COUNT];

/*
 * Weights in the heap: what was read there, at most with all blocks that they were copied out of; and in the page
 * cache.
 */
struct range whatif_heap(const struct build *build);
struct range whatif_cached(const struct build *build);

/* At the end of the survey; before the measuring pass. */
void whatif_survey(struct build *build);
void whatif_begin(struct build *build);

/* At each look at the peaks; when a sample came; when the page cache of all files is that of the last sample. */
void whatif_look(struct build *build);
void whatif_close(struct build *build, const struct ledger *before, uint64_t left);
void whatif_settle(struct build *build);

/* The state in which the run died is now. */
void whatif_death(struct build *build);

/* Fills in load.outcomes, once `needed` is known. */
void whatif_finish(struct build *build);

#endif
