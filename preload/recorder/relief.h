/* SPDX-License-Identifier: Apache-2.0 */
/* SPARKTRACE_RELIEF=drop, the recorder's part: the page cache of what the program is done with. */
#ifndef SPARKTRACE_RECORDER_RELIEF_H
#define SPARKTRACE_RECORDER_RELIEF_H

#include "cache.h"

/*
 * Gives the page cache of a `relief` record's range back, when that says that it was dropped: by advice, which takes
 * clean pages only, and none that is mapped. Everything else is left alone.
 */
void relief_watch(struct cache *cache, const struct st_ev_relief *relief);

#endif
