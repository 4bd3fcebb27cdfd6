/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a model is made: three passes over the trace.
 *
 *	scan	 what is named, and which releases did not take place
 *	survey	 replay and residency, for what only the end tells: phases, requests got later, scans
 *	measure	 replay and residency again, with that: peaks and moments
 */
#ifndef SPARKTRACE_MODEL_PARTS_H
#define SPARKTRACE_MODEL_PARTS_H

#include <analyzer/ledger.h>
#include <analyzer/model.h>
#include <analyzer/model_whatif.h>
#include <analyzer/peak.h>
#include <analyzer/phases.h>
#include <analyzer/reader.h>
#include <analyzer/reader_order.h>
#include <analyzer/requests.h>
#include <analyzer/residency.h>
#include <analyzer/stages.h>
#include <analyzer/transients.h>

enum peak_name {
	PEAK_DEMAND,
	PEAK_RESIDENT,
	PEAK_MODELLED,
	PEAK_REPAIRED,
	PEAK_STEPS,
	PEAK_LOAD_DEMAND,
	PEAK_LOAD_MODELLED,
	PEAK_LOAD_RESIDENT,
	PEAK_COUNT
};

enum quantity { QUANTITY_DEMAND, QUANTITY_RESIDENT, QUANTITY_MODELLED, QUANTITY_REPAIRED, QUANTITY_COUNT };

enum stretch { STRETCH_RUN, STRETCH_LOAD, STRETCH_STEPS };

/* What each peak is a maximum of, over which part of the run, and the moment that it is shown as. */
struct peak_row {
	enum quantity quantity;
	enum stretch stretch;
	enum moment_name moment; /* MOMENT_COUNT: none */
};
extern const struct peak_row peak_rows[PEAK_COUNT];

/* Each quantity: what is known at this instant, and what the last sample adds to it. */
struct peak_look {
	struct range exact[QUANTITY_COUNT];
	struct change sampled[QUANTITY_COUNT];
	uint64_t fresh; /* what the demand may have grown by since the last sample */
	uint64_t left;  /* for peak_close() */
};

/* How it was looked: in which phase; may a maximum that is still held take the place of an earlier one; at a sample. */
struct peak_sight {
	enum phase phase;
	bool plateau, sampled;
};

#define BUILD_THREADS 256
#define ARENA_ANSWERS 128

/* Does this stack ask for arenas? */
struct arena_answer {
	uint32_t stack; /* 0: none */
	bool is;
};

/* Shards that an index names, or file names promise. */
struct absent_shards {
	uint64_t count;     /* never opened */
	struct range bytes; /* of these, what this process would have loaded */
	uint64_t
		waiting; /* bytes of shards that were opened or promised and never touched; 0 where ranks share */
};

struct build {
	struct reader *reader;
	struct model *model;
	struct model_options options;
	struct catalog catalog;
	uint64_t *revoked;
	size_t revoked_count, revoked_room;
	struct phases phases;
	struct requests requests;
	struct anon_cap *caps;
	size_t cap_count;
	struct touches touches;
	struct livemap judged; /* see struct held */
	struct livemap fills;  /* see struct residency */
	struct source_stacks source_stacks;
	uint64_t *done_times; /* of the last touch of each file */
	size_t done_count;
	uint32_t threads[BUILD_THREADS], thread_count; /* that moved weight bytes */
	uint64_t spare;                                /* U */
	struct absent_shards absent;
	bool exit_moment; /* the program began to end by itself */
	bool badly;       /* it did not end well */

	/* Of the pass that runs. */
	struct reader_order order;
	struct residency residency;
	struct ledger ledger;
	struct transients transients; /* of measure */
	uint64_t index;               /* of the record, from 1 */
	bool granted;
	const struct st_record *record;
	struct st_record final; /* head of the last record */

	/* Of measure. */
	enum phase phase;
	struct peak peaks[PEAK_COUNT];
	struct whatif whatif;
	struct stages stages;
	uint64_t seen_blocks, seen_host; /* V + P, and A + S, of the last look at the peaks */
	size_t next_failure;
	bool settled_kept;
	int64_t host_first_lo, host_first_hi; /* H at the first weight byte */
	struct range
		first_doubt; /* by how much the load's demand may be less (lo) or more (hi) for that was no sample */
	uint64_t seen_fresh; /* residency_fresh() of the last look at the peaks */
	bool joint; /* several processes together: what the load's peaks consist of is kept when they say */
	struct arena_answer arena_answers[ARENA_ANSWERS];
	unsigned peaks_absent; /* 1 << enum load_peak: this process had no part in that peak */
};

/* Each 0 or a negative errno. */
int build_scan(struct build *build);
int build_survey(struct build *build);
/* For residency's `converts`; `stack_stages` are the model's. */
bool build_converts(void *stack_stages, uint32_t stack);
/* For residency's `is_arena`; the context is the build. */
bool build_is_arena(void *context, uint32_t stack);
/* At the end of the survey. */
int build_shards(struct build *build);

/*
 * The measuring pass, a record at a time, so that several traces can be measured side by side (run_total.c):
 * begin; each record of build->order in turn; finish. build->record is the last one, with index and phase.
 */
void build_measure_begin(struct build *build);
/* Of it, what any pass over the state needs: residency, ledger, the reader at the beginning. */
void build_state_begin(struct build *build);
int build_measure_record(struct build *build, const struct st_record *record);
void build_measure_finish(struct build *build);

/*
 * All of model_build(), in three steps: up to the beginning of the measuring pass; after its end, when residency is
 * still as it was; and the model out of the build, which is freed.
 */
int build_open(struct reader *reader, const struct model_options *options, struct build **ret_build);
int build_complete(struct build *build);
struct model *build_close(struct build *build);

/* The state as it is now, at the record that has been or is about to be applied. */
struct moment build_moment(const struct build *build);
struct instant build_instant(const struct build *build);
uint32_t record_stack(const struct st_record *record);
void moment_date(struct moment *moment, const struct instant *instant);

/* Peaks (model_peaks.c): look at the state, where it may be a maximum; when a sample came; at the end. */
void peaks_look(struct build *build);
bool peaks_worth_a_look(struct build *build);
void peaks_close(struct build *build, const struct ledger *before, uint64_t left);
void peaks_finish(struct build *build);

/*
 * Peaks of the load that stand for themselves (model_load_peaks.c): after each record; what is known of each now; is one
 * as high as it ever was; at the end, what they consisted of: build->model->load_parts, 0 or -ENOMEM.
 */
void load_peaks_look(struct build *build);
void load_peaks_now(const struct build *build, struct range ret_now[LOAD_PEAK_COUNT]);
bool load_peak_is_here(enum load_peak peak, struct range highest, struct range now);
int build_load_parts(struct build *build);

/* Their parts, which serve the sum of several processes as well. */
bool stretch_has(enum stretch stretch, enum phase phase);
struct peak_look peaks_state(const struct build *build);
/* Shows a look to all peaks of its phase; bits (1 << enum peak_name) of those that are at their maximum. */
unsigned peaks_show(struct peak peaks[PEAK_COUNT], const struct peak_look *look,
                    const struct instant *instant, const struct peak_sight *sight);
/* At the end: gives the moments of peaks their time and their interval. */
void peaks_date(const struct peak peaks[PEAK_COUNT], struct moment moments[MOMENT_COUNT]);

/* After the passes: files, tensors, holders; load; needed. */
int build_files(struct build *build);
/* A weight file as it was at a point; POINT_COUNT: now. */
struct residency_at file_at(const struct build *build, uint32_t index, enum point point);
/* D of a tensor at a point. */
struct range tensor_device(const struct build *build, size_t index, enum point point);
/* Who used what in which order, and the indexes. */
int build_uses(struct build *build);
/* At the very end, in place of the measuring pass: the moment that the options ask for. */
int build_at(struct build *build);
/* Payload bytes of a file that were loaded for sure, without those that several files share. */
uint64_t file_loaded(const struct build *build, uint32_t index);
/* 0 or -ENOMEM. */
int build_loaders(struct build *build);
void build_load(struct build *build);
/* The load's demand with what samples around the first weight byte leave open (build->first_doubt). */
struct range load_doubted(struct range demand, struct range doubt);
void build_needed(struct build *build);

/* Counts a `relief` record (model_relief.c). */
void relief_note(struct relief *relief, const struct st_ev_relief *record);

#endif
