/* SPDX-License-Identifier: Apache-2.0 */
/* How the total of a run is made: the measuring passes of its processes side by side, merged by time. For run_*.c. */
#ifndef SPARKTRACE_RUN_PARTS_H
#define SPARKTRACE_RUN_PARTS_H

#include <analyzer/model_parts.h>
#include <analyzer/run.h>

/* One process under way. */
struct party {
	struct run_part *part;
	struct build *build;
	const struct st_record *next;   /* read and not applied; NULL: no more */
	uint64_t time;                  /* of it, never going back */
	size_t samples;                 /* applied */
	uint64_t held;                  /* V + P + A + S of the last look at its own most */
	bool begun, gone;               /* an event was applied; the process is dead, or its trace over */
	bool late;                      /* it came after the first sample of the run */
	uint64_t *looked, *looked_then; /* last look at each weight file's page cache; the same at the peak */
	bool looked_news;
	struct moment dead_at; /* of all together, when this one died; valid: it did */
};

/* All of them, now. */
struct joint {
	struct party *parties;
	size_t count;
	struct party *newest; /* whose sample was the last */
	uint64_t first;       /* time of the first sample of all */
	bool kernel_seen, others_seen;
	int64_t unexplained_first;  /* bytes of the pool that no layer explains, at the first sample */
	struct change kernel;       /* K, by the last sample of any */
	struct change others;       /* N since the start */
	const struct party *looker; /* who looked at the others last, and in which of its samples */
	size_t look;
	struct change others_first; /* N of the first such look, absolute */
	enum phase phase;
	uint64_t index; /* records applied */
	struct peak peaks[PEAK_COUNT];
	uint64_t seen_blocks, seen_host;
	uint64_t most_sampled;        /* of the sampled part of the demand */
	bool settled;                 /* MOMENT_SETTLED is that of the last load so far */
	const struct party *beginner; /* moved the first weight byte, and was not sampled before */
	struct range exact_first;     /* what was known of the demand then */
	struct model *model;
};

/* Sums over the processes that live (run_sum.c, run_layers.c). */
struct peak_look joint_look(const struct joint *joint);
struct moment joint_moment(const struct joint *joint, const struct party *party);
/* Has the process memory of its own that counts? */
bool party_lives(const struct party *party);
/* V + P + A + H of one of them. */
struct range party_demand(const struct party *party);
/* Its layers, H as it counts in the total. */
struct layers party_layers(const struct party *party);
/* A sample of joint->newest was applied: K anew. */
void joint_kernel(struct joint *joint);

/* N (run_others.c): a sample was applied, card->samples[party->samples - 1]; it, or the end of a process, was seen. */
void others_look(struct joint *joint, const struct party *party);
void others_update(struct joint *joint);

/* Peaks of the sum (run_peaks.c). */
bool joint_worth_a_look(struct joint *joint, const struct st_record *record);
void joint_show(struct joint *joint, struct party *party, const struct st_record *record);
/* The load's own peaks (run_load.c): after each record. */
void joint_load_peaks(struct joint *joint);
void joint_close(struct joint *joint, const struct peak_look *before, const struct peak_look *after,
                 uint64_t left);

/* After the passes (run_model.c, run_files.c). */
int joint_model(struct joint *joint);
int joint_files(const struct joint *joint, struct run_total *total);

#endif
