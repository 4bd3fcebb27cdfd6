/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the nesting guard: what is inside passes through, errno is the program's, a frame left by longjmp lets go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "preload/shim/guard.h"

/* Stands for a wrapper that something called: a frame of its own. */
static __attribute__((noinline)) bool wrapper_may_note(void)
{
	struct guard guard;

	if (!guard_enter(&guard))
		return false;
	guard_leave(&guard);
	return true;
}

static __attribute__((noinline)) bool driver_may_note(void)
{
	struct guard guard;

	if (!guard_enter_nested(&guard))
		return false;
	guard_leave(&guard);
	return true;
}

static __attribute__((noinline)) bool is_nested(void)
{
	return call_nested();
}

static __attribute__((noinline)) void call_inside(void)
{
	struct guard guard;

	call_enter(&guard);
	assert_true(is_nested());
	call_leave(&guard);
}

static void our_own_code_is_not_recorded(void **state)
{
	struct guard guard;

	(void)state;
	assert_true(guard_enter(&guard));
	assert_false(wrapper_may_note());
	assert_false(driver_may_note());
	guard_leave(&guard);
	assert_true(wrapper_may_note());
	assert_true(driver_may_note());
}

static void inside_a_call_only_the_driver_is_recorded(void **state)
{
	struct guard outer;

	(void)state;
	assert_false(is_nested());
	call_enter(&outer);
	assert_true(is_nested());
	assert_false(wrapper_may_note());
	assert_true(driver_may_note());
	call_inside();
	assert_true(is_nested());
	call_leave(&outer);
	assert_false(is_nested());
	assert_true(wrapper_may_note());
}

static void errno_is_that_of_the_program(void **state)
{
	struct guard guard;

	(void)state;
	errno = EXDEV;
	assert_true(guard_enter(&guard));
	errno = ENOSPC;
	guard_leave(&guard);
	assert_int_equal(errno, EXDEV);
}

static jmp_buf away;

static __attribute__((noinline)) void leave_by_longjmp(volatile char *room)
{
	struct guard own, call;

	room[0] = 1;
	call_enter(&call);
	guard_enter_nested(&own);
	longjmp(away, 1);
}

/* The frame that raised the levels lies well below the one that goes on. */
static __attribute__((noinline)) void raise_and_jump(void)
{
	volatile char room[4096];

	leave_by_longjmp(room);
}

static void a_frame_that_is_gone_holds_nothing(void **state)
{
	(void)state;
	if (setjmp(away) == 0)
		raise_and_jump();
	assert_true(wrapper_may_note());
	assert_false(is_nested());
	assert_int_equal(guard_thread.own, 0);
}

static void *other_thread(void *arg)
{
	*(bool *)arg = wrapper_may_note();
	return NULL;
}

static void each_thread_has_its_own(void **state)
{
	struct guard guard;
	pthread_t thread;
	bool may = false;

	(void)state;
	assert_true(guard_enter(&guard));
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &may), 0);
	pthread_join(thread, NULL);
	guard_leave(&guard);
	assert_true(may);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_own_code_is_not_recorded),
		cmocka_unit_test(inside_a_call_only_the_driver_is_recorded),
		cmocka_unit_test(errno_is_that_of_the_program),
		cmocka_unit_test(a_frame_that_is_gone_holds_nothing),
		cmocka_unit_test(each_thread_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
