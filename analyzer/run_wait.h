/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a trace that is just being finished. A program's destructor waits until its trace is whole; how it ended then
 * comes some milliseconds after its end, from a recorder whose ring is still there. Half a second is waited for it.
 */
#ifndef SPARKTRACE_RUN_WAIT_H
#define SPARKTRACE_RUN_WAIT_H

#include <analyzer/model.h>
#include <analyzer/reader.h>
#include <analyzer/run.h>

/* As card_read(). */
int card_read_whole(const char *path, struct run_card *ret_card);

/* Who wants to know that a reader is at work; each may be NULL. */
struct model_watch {
	void (*begin)(const struct reader *reader);
	void (*end)(void);
};

/* Opens a trace (with `ring`, unless that is NULL) and builds its model. 0 or a negative errno of the reader or -ENOMEM. */
int model_read_whole(const char *path, const char *ring, const struct model_options *options,
                     const struct model_watch *watch, struct reader **ret_reader, struct model **ret_model);

/* What of a trace is gone or yet to come, as "the ..."; NULL: nothing. */
const char *trace_blind_spot(const struct reader_summary *summary);

#endif
