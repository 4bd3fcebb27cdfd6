/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a recording in this process: where events go now. Internal to event.c, touch.c and the end.
 *
 *	FRESH -> RENEWING -> EARLY -> STARTING -> ON -> OFF
 *
 * All of it lies in pages with MADV_WIPEONFORK: they read 0 in a fork child (which the parent's ring mapping is
 * inherited by), and keep their value in a vfork child and in threads. The first event of a fork child thus finds
 * FRESH, and everything that belongs to the parent's trace is forgotten there: no fork hook is needed, none can be
 * forgotten (_Fork, raw clone). qemu-user does not wipe; there the wrapper of fork helps.
 *
 * Order at the touch: the ring is made; the early buffer is closed by a bit in its head; its records are copied to
 * the front of the ring, so that their positions stay what they were; then the state becomes ON.
 */
#ifndef SPARKTRACE_SHIM_LIFE_H
#define SPARKTRACE_SHIM_LIFE_H

#include "export.h"
#include "producer.h"

#include <stdatomic.h>
#include <stdint.h>

enum life_state { LIFE_FRESH, LIFE_RENEWING, LIFE_EARLY, LIFE_STARTING, LIFE_ON, LIFE_OFF };

#define EARLY_SIZE   (256u << 10)
#define EARLY_CLOSED (UINT64_C(1) << 63)

struct life {
	_Atomic uint32_t state; /* enum life_state */
	uint32_t pid;           /* of the process that this belongs to */
	_Atomic uint32_t stacks, simulated;
	uint32_t spawned; /* the recorder's pid, 0: none */
	struct st_ring *ring;
	uint64_t ring_size;                 /* of its data */
	_Alignas(64) _Atomic uint64_t last; /* time of the last event */
	_Alignas(64) _Atomic uint64_t early_head;
	_Atomic uint64_t early_lost_count, early_lost_bytes;
	_Alignas(64) unsigned char early[EARLY_SIZE];
};

extern _Atomic(struct life *) life_page;

/* Makes the pages or, in a fork child, forgets the parent; NULL: nothing will be recorded now. */
struct life *life_renew(void);

/* The life of this process, never FRESH or RENEWING; NULL: nothing can be kept. */
static inline struct life *life_get(void)
{
	struct life *life = atomic_load_explicit(&life_page, memory_order_acquire);

	if (likely(life && atomic_load_explicit(&life->state, memory_order_acquire) > LIFE_RENEWING))
		return life;
	return life_renew();
}

static inline enum life_state life_state(const struct life *life)
{
	return (enum life_state)atomic_load_explicit(&life->state, memory_order_acquire);
}

/* In a fork child, where the kernel may not have wiped the pages. */
void life_forked(void);

/*
 * The early buffer. early_put: seq; 0 when full or closed, or when the record only takes back the one before it (the end
 * of the anonymous mapping that this thread made last): both are gone then. A record that matters may use the last
 * quarter too.
 */
uint64_t early_put(struct life *life, const struct piece *piece, bool matters);

/* Closes it, and moves what it holds to the front of a ring that nobody knows yet. */
void early_move(struct life *life, struct st_ring *ring);

#endif
