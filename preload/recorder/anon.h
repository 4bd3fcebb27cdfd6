/* SPDX-License-Identifier: Apache-2.0 */
/* `anon` records: pages of private weight mappings that have become the program's own. */
#ifndef SPARKTRACE_RECORDER_ANON_H
#define SPARKTRACE_RECORDER_ANON_H

#include "mappings.h"
#include "out.h"
#include "pagemap.h"

struct anon {
	struct mappings mappings;
	struct pagemap pagemap;
	uint64_t cost; /* CPU time of the last scan of all, ns */
	bool refused;  /* said once */
	/*
	 * Takes the events that have come meanwhile: what they unmapped must not be written down as
	 * found, another mapping may have stood there already.
	 */
	void (*catch_up)(void *context);
	void *context;
};

void anon_init(struct anon *anon, uint32_t pid, uint64_t page_size, void (*catch_up)(void *), void *context);
void anon_release(struct anon *anon);

/*
 * Scans all mappings that can have such pages; with `all` the read-only ones too, which proves that they
 * have none. Ranges that are as they were the last time are written only for `all`.
 */
void anon_look(struct anon *anon, struct out *out, enum st_moment reason, bool all);

#endif
