/* SPDX-License-Identifier: Apache-2.0 */
/* `symbol` records: the function of every return address that occurs, found when there is time. */
#ifndef SPARKTRACE_RECORDER_SYMBOLS_H
#define SPARKTRACE_RECORDER_SYMBOLS_H

#include "modules.h"

struct symbols {
	struct modules modules;
	uint64_t *known; /* hash set of all addresses so far */
	uint32_t known_count, known_room;
	uint64_t *waiting; /* not named yet, in no order */
	uint32_t waiting_count, waiting_room;
	bool ask_modules; /* one of them lies in no known module */
};

void symbols_init(struct symbols *symbols, uint32_t pid);
void symbols_release(struct symbols *symbols);

/* Addresses of a stack. */
void symbols_add(struct symbols *symbols, const uint64_t *addresses, size_t count);

/* Module records for new addresses, if there are any: cheap, and only possible while the program lives. */
void symbols_place(struct symbols *symbols, struct out *out);

/*
 * Names the addresses of one module. `hurry`: however recently that was done. True: there is more
 * that can be done now.
 */
bool symbols_work(struct symbols *symbols, struct out *out, bool hurry);

#endif
