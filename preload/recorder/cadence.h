/* SPDX-License-Identifier: Apache-2.0 */
/* When to look next: often while bytes move, most often near the edge, never dearer than its share. */
#ifndef SPARKTRACE_RECORDER_CADENCE_H
#define SPARKTRACE_RECORDER_CADENCE_H

#include <stdbool.h>
#include <stdint.h>

struct cadence {
	uint64_t rest, load, edge; /* ns between samples (settings) */
	uint64_t active_until;     /* device or file bytes moved lately */
	uint64_t spare, total;     /* bytes of the last sample, 0: none */
	bool falling;              /* spare memory shrank by more than a little between the last two */
};

/* Device or file bytes move now. */
void cadence_move(struct cadence *cadence, uint64_t now);

/* What the last sample found. */
void cadence_see(struct cadence *cadence, uint64_t spare, uint64_t total);

bool cadence_is_active(const struct cadence *cadence, uint64_t now);

/* Have bytes moved since `then`? */
bool cadence_has_moved(const struct cadence *cadence, uint64_t then);

/* ns to the next look whose last one cost `cost` ns of CPU time: 1 % of a core at rest, 10 % at the edge. */
uint64_t cadence_interval(const struct cadence *cadence, uint64_t now, uint64_t cost);

#endif
