/* SPDX-License-Identifier: Apache-2.0 */
/* fdatasync in a thread of its own: on a machine short of memory it can take seconds. */
#ifndef SPARKTRACE_RECORDER_SYNCER_H
#define SPARKTRACE_RECORDER_SYNCER_H

#include "trace.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct syncer {
	struct trace *trace;
	pthread_t thread;
	sem_t asked;
	_Atomic bool busy, stop;
	bool running;
};

/* The struct must stay in place. Without a thread nothing is synced but at the end. */
void syncer_init(struct syncer *syncer, struct trace *trace);

/* Asks for a sync of what is written now, unless one is under way. */
void syncer_ask(struct syncer *syncer);

/* Waits for the one under way. */
void syncer_release(struct syncer *syncer);

#endif
