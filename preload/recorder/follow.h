/* SPDX-License-Identifier: Apache-2.0 */
/* The traced program, from outside: whether it still runs, what became of it. */
#ifndef SPARKTRACE_RECORDER_FOLLOW_H
#define SPARKTRACE_RECORDER_FOLLOW_H

#include <sparktrace/ring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct follow {
	struct st_ring *ring;
	uint64_t ring_ino;
	int pidfd;            /* -1: the kernel or a sandbox has none */
	uint64_t start_stack; /* another one: the program was replaced by exec */
	_Atomic bool dead;
	bool waiting; /* a thread of ours waits for the death and ends the sleep */
	pthread_t waiter;
	/* Once dead: enum st_exit_how and status or signal. */
	unsigned how;
	int status;
};

/* Starts following ring->pid. ring_ino: inode of the ring's file. The struct must stay in place. */
void follow_init(struct follow *follow, struct st_ring *ring, uint64_t ring_ino);
void follow_release(struct follow *follow);

/*
 * Whether the program has ended (its exit is then in how and status). Dead is also what has become
 * another program by exec: `execed` asks for that look, which costs a read of the memory map.
 */
bool follow_is_over(struct follow *follow, bool execed);

/* Whether the stack of the program lies elsewhere than at the start: cheap, true after most execs. */
bool follow_has_moved(const struct follow *follow);

#endif
