/* SPDX-License-Identifier: Apache-2.0 */
#include "syncer.h"

#include <errno.h>

static void *sync_when_asked(void *argument)
{
	struct syncer *syncer = argument;

	for (;;) {
		while (sem_wait(&syncer->asked) && errno == EINTR)
			continue;
		if (atomic_load(&syncer->stop))
			return NULL;
		trace_sync(
			syncer->trace); /* a failure shows in the blocks: their time of the last sync stands */
		atomic_store(&syncer->busy, false);
	}
}

void syncer_init(struct syncer *syncer, struct trace *trace)
{
	pthread_attr_t attributes;

	syncer->trace = trace;
	atomic_store(&syncer->busy, false);
	atomic_store(&syncer->stop, false);
	sem_init(&syncer->asked, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	syncer->running = !pthread_create(&syncer->thread, &attributes, sync_when_asked, syncer);
	pthread_attr_destroy(&attributes);
}

void syncer_ask(struct syncer *syncer)
{
	if (!syncer->running || atomic_exchange(&syncer->busy, true))
		return;
	sem_post(&syncer->asked);
}

void syncer_release(struct syncer *syncer)
{
	if (syncer->running) {
		atomic_store(&syncer->stop, true);
		sem_post(&syncer->asked);
		pthread_join(syncer->thread, NULL);
	}
	sem_destroy(&syncer->asked);
}
