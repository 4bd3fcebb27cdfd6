/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the program's end: it waits for its recorder, and not for one that is dead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/shim/event.h"
#include "preload/shim/finish.h"
#include "preload/shim/life.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static struct life life = {.state = LIFE_ON};

/* The recorder of a program that adopts orphans was killed: nobody has waited for it. */
static void a_dead_child_is_not_waited_for(void **state)
{
	pid_t pid = fork();
	siginfo_t info;
	uint64_t before;

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	life.pid = (uint32_t)getpid();
	life.spawned = (uint32_t)pid;
	life.ring = calloc(1, ST_RING_DATA);
	atomic_store(&life.ring->recorder, ST_RECORDER_RUNNING);
	atomic_store(&life_page, &life);
	before = event_now();
	recording_finish();
	assert_true(event_now() - before < SECOND);
	assert_int_equal(waitpid(pid, NULL, 0), pid); /* as if nobody had looked */
	free(life.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_child_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
