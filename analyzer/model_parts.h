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
#include <analyzer/peak.h>
#include <analyzer/phases.h>
#include <analyzer/reader.h>
#include <analyzer/reader_order.h>
#include <analyzer/requests.h>
#include <analyzer/residency.h>

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

#define BUILD_THREADS 256

/* Shards that file names promise. */
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
	uint32_t threads[BUILD_THREADS], thread_count; /* that moved weight bytes */
	uint64_t spare;                                /* U */
	struct absent_shards absent;
	bool exit_moment; /* the program began to end by itself */
	bool badly;       /* it did not end well */

	/* Of the pass that runs. */
	struct reader_order order;
	struct residency residency;
	struct ledger ledger;
	uint64_t index; /* of the record, from 1 */
	bool granted;
	const struct st_record *record;
	struct st_record final; /* head of the last record */

	/* Of measure. */
	enum phase phase;
	struct peak peaks[PEAK_COUNT];
	uint64_t seen_blocks, seen_host; /* V + P, and A + S, of the last look at the peaks */
	size_t next_failure;
	bool settled_kept;
	int64_t host_first_lo, host_first_hi; /* H at the first weight byte */
};

/* Each 0 or a negative errno. */
int build_scan(struct build *build);
int build_survey(struct build *build);
/* At the end of the survey. */
void build_shards(struct build *build);
int build_measure(struct build *build);

/* The state as it is now, at the record that has been or is about to be applied. */
struct moment build_moment(const struct build *build);
struct instant build_instant(const struct build *build);
void moment_date(struct moment *moment, const struct instant *instant);

/* Peaks (model_peaks.c): look at the state, where it may be a maximum; when a sample came; at the end. */
void peaks_look(struct build *build);
bool peaks_worth_a_look(struct build *build);
void peaks_close(struct build *build, const struct ledger *before);
void peaks_finish(struct build *build);

/* After the passes: files, tensors, holders; load; needed. */
int build_files(struct build *build);
/* Payload bytes of a file that were loaded for sure, without those that several files share. */
uint64_t file_loaded(const struct build *build, uint32_t index);
void build_load(struct build *build);
void build_needed(struct build *build);

#endif
