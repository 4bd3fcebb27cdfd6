/* SPDX-License-Identifier: Apache-2.0 */
/* The ring as the recorder has it: mapped, and locked so that there is one consumer. */
#ifndef SPARKTRACE_RECORDER_RINGFILE_H
#define SPARKTRACE_RECORDER_RINGFILE_H

#include <sparktrace/ring.h>
#include <stdbool.h>
#include <stddef.h>

struct ringfile {
	int fd;
	struct st_ring *ring;
	size_t bytes;
};

/*
 * Maps the ring at path for writing and takes its lock. 0; -EWOULDBLOCK: another recorder has it;
 * -EPERM: not our own file; -EINVAL: not a ring, or of another version; errors of open and mmap.
 */
int ringfile_open(const char *path, struct ringfile *ret_file);
void ringfile_release(struct ringfile *file);

/*
 * Whether its program is gone (another boot, or no such process). A zombie without threads is gone. Of a program of
 * another container that shares our shared memory no number tells: with the ring's lock in hand, a ring that is older
 * than an hour has neither a recorder nor one that is about to come.
 */
bool ringfile_is_dead(const struct st_ring *ring);

/* Whether it is of another container: what its numbers and paths name is not seen from here. */
bool ringfile_is_foreign(const struct st_ring *ring);

/* The head of the trace that belongs to the ring. */
void ringfile_make_head(const struct st_ring *ring, struct st_file_head *ret_head);

/* Tells the program (and whoever waits in its destructor) what has become of the recorder. */
void ringfile_set_state(struct st_ring *ring, enum st_ring_recorder state);

/* The same for failure: what it was, and the errno. */
void ringfile_fail(struct st_ring *ring, int err, const char *what);

/*
 * Sleeps until a producer has something worth it, or for ns at most. `read` is how far the
 * consumer has come: with anything beyond it there is no sleep.
 */
void ringfile_wait(struct st_ring *ring, uint64_t read, uint64_t ns);

/* Ends the sleep, from another thread. */
void ringfile_wake(struct st_ring *ring);

/*
 * Value of NAME in lines NAME=value (ring->settings, ring->environment), copied and ended with
 * NUL. 0, or -ENOENT: not there, or longer than size.
 */
int ringfile_get(const char *lines, const char *name, char *ret_value, size_t size);

#endif
