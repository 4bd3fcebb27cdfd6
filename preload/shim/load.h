/* SPDX-License-Identifier: Apache-2.0 */
/* The load of weights: its first byte starts the recording, its ends ask for a sample. The guard must be up. */
#ifndef SPARKTRACE_SHIM_LOAD_H
#define SPARKTRACE_SHIM_LOAD_H

#include "file.h"
#include "touch.h"

/* A weight file was met: starts the recording, and asks for a sample the first time. True: a recording runs. */
bool load_seen(enum touch_place place, const struct file *file);

/* The last byte of a weight file was read, or the last mapping of one is about to go. */
void load_ended(uint64_t size);

/* A host allocation or mapping of `size` bytes was refused. */
void load_refused(uint64_t size);

/* A fork child starts afresh. */
void load_reset(void);

#endif
