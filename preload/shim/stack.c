/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

#include "event.h"
#include "hash.h"
#include "python.h"
#include "settings.h"
#include "unwind.h"

#include <stdatomic.h>
#include <string.h>

#include "banned.h"

#define OWN_FRAMES 12 /* between a wrapper and the walk there are fewer */
#define SLOTS      16384u
#define PROBES     16u

/*
 * Known stacks, by a 64-bit hash of their addresses and Python frames: the chance that two of a full table share one is
 * below 1 in 10^10. The slot's place is the identifier. A slot is empty (0), being defined by some thread (DEFINED not set), or
 * defined. A thread that meets one being defined goes on to the next slot: a stack may so get two identifiers,
 * but none is ever used before the record that defines it.
 */
#define DEFINED UINT64_C(1)
static _Atomic uint64_t slots[SLOTS];

static _Atomic(const char *) own_start, own_end;
static _Atomic bool tables; /* walk with libunwind */

/* Set by the linker: this library from its first byte to the end of its code. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

void stack_own(const void *start, const void *end)
{
	atomic_store(&own_start, (const char *)start);
	atomic_store(&own_end, (const char *)end);
}

static unsigned depth(void)
{
	uint64_t wanted = settings_get()->stack_depth;

	return settings_get()->unwind == UNWIND_OFF ? 0
	       : wanted < STACK_FRAMES              ? (unsigned)wanted
	                                            : STACK_FRAMES;
}

void stack_prepare(void)
{
	enum setting_unwind unwind = settings_get()->unwind;

#ifdef __aarch64__
	/* Before 1.8.3 libunwind loses its way in code that signs return addresses; frame pointers are kept there. */
	bool wanted = unwind == UNWIND_LIBUNWIND;
#else
	bool wanted = unwind == UNWIND_LIBUNWIND || unwind == UNWIND_AUTO;
#endif
	if (!atomic_load(&own_start))
		stack_own(__ehdr_start, etext);
	if (wanted && settings_get()->stack_depth && libunwind_open())
		atomic_store(&tables, true);
	if (depth())
		python_prepare();
}

static void leave_out_own(struct walk *walk)
{
	uintptr_t start = (uintptr_t)atomic_load_explicit(&own_start, memory_order_relaxed);
	uintptr_t end = (uintptr_t)atomic_load_explicit(&own_end, memory_order_relaxed);

	while (walk->count && walk->frame[0] >= start && walk->frame[0] < end) {
		walk->frame++;
		walk->count--;
	}
}

void stack_take(struct walk *walk)
{
	if (atomic_load_explicit(&tables, memory_order_relaxed) && !stack_is_small())
		libunwind_walk(walk);
	else
		frame_walk(walk);
	leave_out_own(walk);
	if (walk->count > depth()) {
		walk->count = depth();
		walk->cut = true;
	}
}

/* What a stack identifier stands for. */
struct both {
	struct walk native;
	struct python_walk python;
};

static uint64_t stack_hash(const struct both *both)
{
	uint64_t hash = both->native.count * 2 + both->native.cut;

	for (unsigned i = 0; i < both->native.count; i++)
		hash = hash_mix(hash, both->native.frame[i]);
	if (both->python.count)
		hash = hash_mix(hash, both->python.count * 2 + both->python.cut);
	for (unsigned i = 0; i < both->python.count; i++)
		hash = hash_mix(hash, both->python.frame[i]);
	return (hash & ~DEFINED) | 2;
}

static uint64_t cut_flag(bool cut)
{
	return cut ? UINT64_C(1) << ST_STACK_CUT : 0;
}

/*
 * Writes the record; when that finds no room the slot is given back, and the stack is new next time. Python frames that
 * find none are lost, and counted as such: the identifier stays what it is.
 */
static uint32_t stack_define(unsigned slot, uint64_t hash, const struct both *both)
{
	const struct walk *native = &both->native;
	const struct python_walk *python = &both->python;
	bool written = EVENT_TAIL(stack, native->frame, native->count * sizeof(native->frame[0]),
	                          .id = slot + 1, .flags = cut_flag(native->cut));

	if (written && python->count)
		EVENT_TAIL(frames, python->frame, python->count * sizeof(python->frame[0]), .id = slot + 1,
		           .flags = cut_flag(python->cut));
	atomic_store_explicit(&slots[slot], written ? hash | DEFINED : 0, memory_order_release);
	return written ? slot + 1 : 0;
}

/* The identifier; 0: not there, and then *ret_slot is the place for it, SLOTS when there is none. */
static uint32_t stack_find(uint64_t hash, unsigned *ret_slot)
{
	*ret_slot = SLOTS;
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned slot = (unsigned)((hash >> 32) + i) % SLOTS;
		uint64_t there = atomic_load_explicit(&slots[slot], memory_order_acquire);

		if (there == (hash | DEFINED))
			return slot + 1;
		if (there == 0) {
			*ret_slot = slot;
			return 0;
		}
	}
	return 0;
}

static uint32_t stack_intern(const struct both *both)
{
	uint64_t hash = stack_hash(both);

	for (unsigned i = 0; both->native.count && i < PROBES; i++) {
		uint64_t empty = 0;
		unsigned slot;
		uint32_t id = stack_find(hash, &slot);

		if (id || slot == SLOTS)
			return id;
		if (atomic_compare_exchange_strong(&slots[slot], &empty, hash))
			return stack_define(slot, hash, both);
	}
	return 0;
}

/* A walk through the interpreter's structures takes some 3 KB of stack. */
static void python_frames(struct both *both)
{
	both->python.count = 0;
	if (!both->native.frames || !stack_is_small())
		python_take(&both->native, &both->python);
}

uint32_t stack_id(void)
{
	uintptr_t frame[STACK_FRAMES + OWN_FRAMES];
	struct both both = {.native = {.frame = frame, .room = depth() + OWN_FRAMES}};
	unsigned slot;
	uint32_t id;

	if (both.native.room == OWN_FRAMES || !atomic_load_explicit(&own_end, memory_order_acquire) ||
	    !event_recording())
		return 0;
	stack_take(&both.native);
	python_frames(&both);
	id = stack_find(stack_hash(&both), &slot);
	if (id)
		return id;
	if (both.native.frames)
		frame_check(&both.native);
	return stack_intern(&both);
}

void stack_reset(void)
{
	python_reset();
	if (libunwind_forked())
		atomic_store(&tables, false);
	for (unsigned i = 0; i < SLOTS; i++)
		if (atomic_load_explicit(&slots[i], memory_order_relaxed))
			atomic_store_explicit(&slots[i], 0, memory_order_relaxed);
}
