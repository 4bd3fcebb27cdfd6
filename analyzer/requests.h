/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for memory that were refused, and whether the same bytes were got later. */
#ifndef SPARKTRACE_REQUESTS_H
#define SPARKTRACE_REQUESTS_H

#include <analyzer/model.h>
#include <analyzer/replay.h>

#define REQUESTS_MAX  64 /* kept; further ones are counted */
#define OUT_OF_MEMORY 2  /* CUDA_ERROR_OUT_OF_MEMORY */

struct request {
	struct failure failure; /* without `at` and the final outcome */
	uint64_t index;         /* of the record */
	uint32_t stack;
	bool open;              /* not got yet */
	uint64_t freed, grants; /* of the run, then */
};

struct requests {
	struct request kept[REQUESTS_MAX];
	size_t count;
	uint64_t dropped;
	uint64_t grants; /* requests met so far */
	uint64_t last_time;
	uint64_t smallest_device, smallest_pinned; /* open request, UINT64_MAX: none */
};

void requests_init(struct requests *requests);

/* `freed`: device bytes given back so far in the run. */
void requests_refuse(struct requests *requests, const struct st_record *record, const struct refusal *refusal,
                     uint64_t index, uint64_t freed);
void requests_grant(struct requests *requests, const struct st_record *record, uint64_t bytes,
                    uint64_t freed);

/* Decides what became of those still open. `badly`: the program did not end with status 0. */
void requests_finish(struct requests *requests, bool badly);

/* The first one that ended the program for want of memory, or NULL. */
const struct request *requests_fatal(const struct requests *requests);

#endif
