/* SPDX-License-Identifier: Apache-2.0 */
#include "touch.h"

#include "life.h"
#include "ring_make.h"
#include "say.h"
#include "settings.h"
#include "spawn.h"
#include "stack.h"
#include "sys.h"

#include <string.h>
#include <sys/prctl.h>

#include "banned.h"

/* How often a thread gives way to the one that makes the ring: some milliseconds. */
#define PATIENCE 10000

/* It becomes an orphan, and this process adopts orphans: init of a container, or a subreaper by its own wish. */
static void note_adoption(void)
{
	static const char text[] =
		"the program adopts orphans: the recorder is a child that its wait() can see";
	int reaper = 0;

	sys_call3(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&reaper, 0);
	if (reaper || sys_getpid() == 1)
		EVENT_TAIL(coverage, text, strlen(text));
}

static void recorder_start(struct life *life)
{
	int r = recorder_spawn(life->ring);

	if (r == 0) {
		life->spawned = life->ring->recorder_pid;
		note_adoption();
		return;
	}
	life->ring->recorder_error = -r;
	atomic_store(&life->ring->recorder, ST_RECORDER_FAILED);
	say_once("the recorder cannot be started, events stay in", life->ring->path, r);
}

/* Events go into the ring before the recorder is started: other threads need not wait for that. */
static void recording_start(struct life *life)
{
	struct st_ring *ring;
	int r;

	settings_say_wrong();
	r = ring_make(&ring);
	if (r < 0) {
		atomic_store_explicit(&life->state, LIFE_OFF, memory_order_release);
		say_once("the ring cannot be made, nothing is recorded", NULL, r);
		return;
	}
	atomic_store(&ring->simulated, atomic_load(&life->simulated));
	life->ring = ring;
	life->ring_size = ring->size;
	early_move(life, ring);
	atomic_store_explicit(&life->state, LIFE_ON, memory_order_release);
	recorder_start(life);
}

/* A vfork child, which is another process in this memory, never starts one. */
static enum life_state start_or_wait(struct life *life)
{
	uint32_t early = LIFE_EARLY;

	if (life->pid != sys_getpid())
		return LIFE_EARLY;
	if (atomic_compare_exchange_strong(&life->state, &early, LIFE_STARTING))
		recording_start(life);
	for (int i = 0; i < PATIENCE && life_state(life) == LIFE_STARTING; i++)
		sys_yield();
	return life_state(life);
}

bool shim_touch(enum touch_place place)
{
	struct life *life = life_get();
	enum life_state state;

	if (unlikely(!life))
		return false;
	state = life_state(life);
	if (unlikely(state == LIFE_EARLY || state == LIFE_STARTING))
		state = start_or_wait(life);
	if (state != LIFE_ON)
		return false;
	if (unlikely(place == TOUCH_OPEN && !atomic_load_explicit(&life->stacks, memory_order_relaxed)) &&
	    !atomic_exchange(&life->stacks, 1))
		stack_prepare();
	return true;
}

void shim_simulated(void)
{
	struct life *life = life_get();

	if (!life)
		return;
	atomic_store(&life->simulated, 1);
	if (life_state(life) == LIFE_ON)
		atomic_store(&life->ring->simulated, 1);
}
