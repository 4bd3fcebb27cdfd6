/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The maximum of one quantity over a stretch of the run, and when it was reached. A quantity is what is known
 * at the instant plus what the last sample said; between two samples the second part may have been anything
 * between them, so a maximum carries an interval. Its moment is the first instant within 1 MiB.
 */
#ifndef SPARKTRACE_PEAK_H
#define SPARKTRACE_PEAK_H

#include <analyzer/range.h>

#define PEAK_NEAR     (UINT64_C(1) << 20)
#define PEAK_STEP     (UINT64_C(1) << 15) /* rises smaller than this are one instant */
#define PEAK_INSTANTS 40                  /* more than PEAK_NEAR / PEAK_STEP */

struct instant {
	uint64_t time, value;
	uint32_t thread, stack, file, tensor;
	int phase;
};

struct peak {
	bool any;
	uint64_t value;       /* the largest yet, the last sample taken to hold */
	struct range largest; /* of closed stretches between samples */
	struct range open;    /* of the exact part since the last sample */
	uint64_t most;        /* the same with what came since then and no sample has shown yet */
	bool is_open;
	struct instant instants[PEAK_INSTANTS]; /* rising; the first is within PEAK_NEAR of value */
	uint32_t first, count;
};

/*
 * `exact`, and `sampled` as of the last sample; `fresh`: bytes that the sampled part may have grown by since. True when
 * this is a new maximum: the caller keeps the rest.
 */
bool peak_note(struct peak *peak, struct range exact, struct change sampled, uint64_t fresh,
               const struct instant *instant);

/* Is the quantity, with the last sample taken to hold, just what it was at its maximum? */
bool peak_is_at(const struct peak *peak, struct range exact, struct change sampled);

/*
 * A sample has come: the stretch since the one before is between the two, or higher, but by no more than what came after
 * the first and went before the second. `left`: bytes that went since the one before, UINT64_MAX where no sample tells
 * any more. Call before noting what it says.
 */
void peak_close(struct peak *peak, struct change before, struct change after, uint64_t left);

/* The most that the stretch between two samples may have reached, for peak_close(). */
uint64_t peak_unseen(struct range open, uint64_t most, struct change before, struct change after,
                     uint64_t left);

/* This very instant was sampled. */
void peak_sampled(struct peak *peak, struct range exact, struct change sampled);

/* Maximum, and the first instant within PEAK_NEAR of it; only if peak->any. */
struct range peak_range(const struct peak *peak);
const struct instant *peak_instant(const struct peak *peak);

#endif
