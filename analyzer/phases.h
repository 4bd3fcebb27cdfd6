/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases of a run: start, load, settle, steps, end. Launches of kernels are not traced, so a step is known by
 * what it allocates: the load ends with the last weight byte, and the steps begin with the first allocation
 * on the device after it, or with a mark of the program that begins with "step". Weights that are copied on the device
 * into memory that was asked for just before move as well: loaders clone tensors out of a buffer of theirs.
 *
 * Records are numbered from 1. The survey pass feeds every record; afterwards phases_at() tells the phase of any.
 */
#ifndef SPARKTRACE_PHASES_H
#define SPARKTRACE_PHASES_H

#include <analyzer/model.h>
#include <analyzer/residency.h>

struct phases {
	uint64_t first_weight, last_weight; /* records; 0: none */
	uint64_t settled;                   /* first allocation after the last weight byte, 0: none */
	uint64_t end;                       /* the program began to end, 0: not seen */
	uint64_t teardown;                  /* first release on the device after the last weight byte */
	uint64_t first_time, last_time, settled_time;
	bool moved;                  /* a call moved weights: it is not only samples that tell of it */
	bool to_device;              /* weights were copied to the device */
	bool closed;                 /* whatever moves weights from here on belongs to no load */
	bool unfinished;             /* the run died in its load */
	bool host_seen;              /* a sample saw the program */
	uint64_t grants;             /* allocations on the device since the last weight byte */
	uint64_t now;                /* time of the last event of the program itself */
	uint64_t grown;              /* largest sum of program memory and cached weights that a sample saw */
	uint64_t asked_lo, asked_hi; /* device memory that was granted last */
};

/* `granted`: the record brought device or pinned memory. */
void phases_record(struct phases *phases, const struct st_record *record, uint64_t index,
                   const struct residency *residency, bool granted);

/* After the last record: without steps, the first release on the device is the beginning of the end. */
void phases_finish(struct phases *phases);

/* The load never came to its end: the run died with weights still to load. */
void phases_set_unfinished(struct phases *phases);

/* Did the program, which has died, die in its load? `remaining` of `total` weight bytes were not loaded. */
bool phases_died_loading(const struct phases *phases, uint64_t remaining, uint64_t total);

enum phase phases_at(const struct phases *phases, uint64_t index);

#endif
