/* SPDX-License-Identifier: Apache-2.0 */
#include "finish.h"

#include "driver.h"
#include "event.h"
#include "life.h"
#include "place.h"
#include "real.h"
#include "relief.h"
#include "say.h"
#include "sys.h"
#include "wrap_heap.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "banned.h"

#define WAIT_NS  UINT64_C(2000000000)
#define SLICE_NS 50000000 /* between two looks whether the recorder still lives */

/* A program that adopts orphans has it as a child: dead, it is still there. It is looked at, and not taken away. */
static bool is_dead_child(uint32_t pid)
{
	siginfo_t info = {.si_pid = 0};

	return sys_call4(SYS_waitid, P_PID, (long)pid, (long)&info, WEXITED | WNOHANG | WNOWAIT | __WALL) ==
	               0 &&
	       info.si_pid;
}

static bool recorder_over(const struct life *life)
{
	uint32_t state = atomic_load(&life->ring->recorder);

	if (state == ST_RECORDER_DONE || state == ST_RECORDER_FAILED)
		return true;
	return sys_call3(SYS_kill, (long)life->spawned, 0, 0) == -ESRCH || is_dead_child(life->spawned);
}

static void recorder_wait(struct life *life)
{
	const struct timespec slice = {.tv_nsec = SLICE_NS};
	uint64_t until = event_now() + WAIT_NS;

	while (!recorder_over(life) && event_now() < until) {
		uint32_t state = atomic_load(&life->ring->recorder);

		if (state == ST_RECORDER_NONE || state == ST_RECORDER_RUNNING)
			sys_call4(SYS_futex, (long)&life->ring->recorder, FUTEX_WAIT, state, (long)&slice);
	}
}

void recording_finish(void)
{
	struct life *life = atomic_load(&life_page);
	uint32_t on = LIFE_ON;

	if (!life || life_state(life) != LIFE_ON || life->pid != sys_getpid())
		return;
	driver_finish();
	if (!atomic_compare_exchange_strong(&life->state, &on, LIFE_OFF) || !life->spawned)
		return;
	atomic_store(&life->ring->exiting, 1);
	atomic_store(&life->ring->sleeping, 1);
	producer_wake(life->ring);
	recorder_wait(life);
	if (atomic_load(&life->ring->recorder) == ST_RECORDER_FAILED)
		say_once("the trace is incomplete:", life->ring->recorder_text, -life->ring->recorder_error);
}

static __attribute__((constructor)) void shim_load(void)
{
	real_init();
	say_prepare();
	place_prepare();
	heap_prepare();
	relief_prepare();
	life_get(); /* now: the first event may come from a vfork child, and know another pid */
}

static __attribute__((destructor)) void shim_unload(void)
{
	recording_finish();
}
