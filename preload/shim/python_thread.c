/* SPDX-License-Identifier: Apache-2.0 */
#include "python_thread.h"

#include "event.h"

#include <pthread.h>

#include "banned.h"

#define INTERPRETERS_MOST 64
#define THREADS_MOST      4096
#define TRIES             3  /* the lists may change under a search */
#define REST_MOST         64 /* stacks between two searches of a thread that had no state */

/*
 * What a thread knows of itself. `state` may be freed behind its back, and its memory used again or given back. A
 * thread without Python would search the lists for each stack: it waits for a new state to appear (`made`: how many
 * there ever were), or a while.
 */
static _Thread_local struct own {
	uintptr_t state;
	uint64_t made;
	uint32_t rest, resting; /* stacks still to be passed over, of so many */
} own;

struct search {
	struct peek *seen;
	const struct python_layout *layout;
	uint32_t tid;
	uint64_t self;
	unsigned threads; /* looked at */
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Reads the state at `address`, which begins with everything that is looked at. */
static int state_read(const struct search *search, uintptr_t address, unsigned char *ret_state)
{
	return fetch(search->tid, address, ret_state, search->layout->native_id + sizeof(uint64_t));
}

static uint64_t word_at(const unsigned char *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static bool state_is_own(const struct search *search, const unsigned char *state)
{
	return word_at(state, search->layout->thread_id) == search->self &&
	       word_at(state, search->layout->native_id) == search->tid;
}

/* The frame that a state of this thread stands at; up to 3.12 a structure on the C stack lies between. */
static int state_frame(const struct search *search, const unsigned char *state, uintptr_t *ret_frame)
{
	uintptr_t at = word_at(state, search->layout->thread_frame);

	if (search->layout->cframe_frame != PYTHON_NONE && at)
		return peek(search->seen, at + search->layout->cframe_frame, ret_frame, sizeof(*ret_frame))
		               ? 0
		               : -EFAULT;
	*ret_frame = at;
	return 0;
}

/* Others add to this list and take from it meanwhile: it may lead anywhere, but not for ever. */
static int search_threads(struct search *search, uintptr_t address)
{
	unsigned char state[PYTHON_STATE_MOST];

	while (address && search->threads++ < THREADS_MOST) {
		int r = state_read(search, address, state);

		if (r < 0)
			return r;
		if (state_is_own(search, state)) {
			own.state = address;
			return 0;
		}
		address = word_at(state, search->layout->thread_next);
	}
	return 0;
}

static int search_interpreters(struct search *search, uintptr_t interpreter)
{
	const struct python_layout *layout = search->layout;

	for (int i = 0; interpreter && !own.state && i < INTERPRETERS_MOST; i++) {
		uintptr_t head;
		int r = fetch(search->tid, interpreter + layout->threads, &head, sizeof(head));

		if (!r)
			r = search_threads(search, head);
		if (!r)
			r = fetch(search->tid, interpreter + layout->interpreter_next, &interpreter,
			          sizeof(interpreter));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Is it worth to search the lists again? */
static bool search_is_due(const struct search *search, uintptr_t interpreter)
{
	uint64_t made = 0;

	fetch(search->tid, interpreter + search->layout->threads - sizeof(made), &made, sizeof(made));
	if (made == own.made && own.rest) {
		own.rest--;
		return false;
	}
	own.resting = made == own.made ? smaller(own.resting * 2 + 1, REST_MOST) : 0;
	own.rest = own.resting;
	own.made = made;
	return true;
}

static int state_search(struct search *search, uintptr_t runtime)
{
	uintptr_t interpreter;
	int r = fetch(search->tid, runtime + search->layout->interpreters, &interpreter, sizeof(interpreter));

	if (r < 0 || !interpreter || !search_is_due(search, interpreter))
		return r;
	for (int i = 0; i < TRIES && !own.state; i++) {
		search->threads = 0;
		r = search_interpreters(search, interpreter);
		if (r != 0 && r != -EFAULT)
			return r;
	}
	return 0;
}

/* The state that this thread had the last time, if it still has it. */
static bool state_known(const struct search *search, unsigned char *ret_state)
{
	size_t size = search->layout->native_id + sizeof(uint64_t);

	if (!own.state)
		return false;
	if (peek_now(search->seen, own.state, size)) {
		memcpy(ret_state, (const void *)own.state, size);
		if (state_is_own(search, ret_state))
			return true;
	}
	own.state = 0;
	return false;
}

int python_thread_frame(struct peek *seen, const struct python_layout *layout, uintptr_t runtime,
                        uintptr_t *ret_frame)
{
	struct search search = {seen, layout, event_thread(), (uint64_t)pthread_self(), 0};
	unsigned char state[PYTHON_STATE_MOST];

	*ret_frame = 0;
	if (!state_known(&search, state)) {
		int r = state_search(&search, runtime);

		if (!r && own.state)
			r = state_read(&search, own.state, state);
		if (r < 0 || !own.state)
			return r;
	}
	return state_frame(&search, state, ret_frame);
}
