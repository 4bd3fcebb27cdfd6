/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's process: started so that the program never has a child, a signal or a descriptor of it. */
#ifndef SPARKTRACE_SHIM_SPAWN_H
#define SPARKTRACE_SHIM_SPAWN_H

#include <sparktrace/ring.h>

/*
 * Starts sparktrace-recorder, argument: the ring's path, in a session of its own, at "/", with all signals blocked,
 * descriptors 0-2 on /dev/null, no others, and no environment but LD_LIBRARY_PATH. It lies beside this library, in
 * ../libexec or in ../bin. Sets ring->recorder_pid. Errors: those of clone; -ENOENT: it is at none of these places.
 */
int recorder_spawn(struct st_ring *ring);

#endif
