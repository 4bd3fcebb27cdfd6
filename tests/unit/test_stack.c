/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the call stacks: that both walks find a known chain of callers, that a frame pointer which is none
 * ends the walk instead of the program, and that a stack is written once, before its identifier is used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/skip.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/shim/guard.h"
#include "preload/shim/life.h"
#include "preload/shim/stack.h"
#include "preload/shim/touch.h"
#include "preload/shim/unwind.h"

#define CHAIN 5 /* functions that call one another, outermost last */

typedef void walker(struct walk *walk);

static uintptr_t found[64];
static unsigned room = 64;
static uintptr_t expected[CHAIN];

/* Asking for its address makes the compiler give a function a frame pointer; the barrier prevents a tail call. */
#define KEEP_FRAME() __asm__ volatile("" ::"r"(__builtin_frame_address(0)) : "memory")

/* Each link remembers the address behind its own call, as the walk must report it. */
#define LINK(n, call)                                                       \
	static __attribute__((noinline)) struct walk link_##n(walker *take) \
	{                                                                   \
		struct walk walk;                                           \
		expected[n] = (uintptr_t)__builtin_return_address(0);       \
		walk = call;                                                \
		KEEP_FRAME();                                               \
		return walk;                                                \
	}

static __attribute__((noinline)) struct walk take_walk(walker *take)
{
	struct walk walk = {.frame = found, .room = room};

	take(&walk);
	KEEP_FRAME();
	return walk;
}

LINK(0, take_walk(take))
LINK(1, link_0(take))
LINK(2, link_1(take))
LINK(3, link_2(take))
LINK(4, link_3(take))

/* The chain's return addresses, one behind the other, somewhere near the start of the walk. */
static bool holds_chain(const struct walk *walk)
{
	for (unsigned i = 0; i + CHAIN <= walk->count; i++)
		if (memcmp(&walk->frame[i], expected, sizeof(expected)) == 0)
			return i <= 4;
	return false;
}

static void frame_pointers_lead_to_the_callers(void **state)
{
	struct walk walk = link_4(frame_walk);

	(void)state;
	assert_true(holds_chain(&walk));
}

/* On aarch64 libunwind before 1.8.3 loses its way, and nobody tells which version it is. */
static void need_libunwind(void)
{
#ifdef __aarch64__
	skip_because("libunwind before 1.8.3 loses its way on aarch64, and is not used there");
#endif
	if (!libunwind_open())
		skip_because("no libunwind.so.8 here");
}

static void libunwind_finds_the_callers(void **state)
{
	struct walk walk;

	(void)state;
	need_libunwind();
	walk = link_4(libunwind_walk);
	assert_true(holds_chain(&walk));
}

/* A lock that another thread held at the fork stays held in the child. */
static void a_child_of_a_walk_does_without_libunwind(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	need_libunwind();
	unwind_enter();
	pid = fork();
	if (pid == 0) {
		stack_reset();
		_exit(libunwind_open() ? 1 : 0);
	}
	unwind_leave();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pid = fork();
	if (pid == 0) {
		stack_reset();
		_exit(libunwind_open() ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct walk walk_three(walker *take)
{
	struct walk walk;

	room = 3;
	walk = link_4(take);
	room = 64;
	return walk;
}

static void a_long_stack_is_cut(void **state)
{
	struct walk walk = walk_three(frame_walk);

	(void)state;
	assert_int_equal(walk.count, 3);
	assert_true(walk.cut);
	need_libunwind();
	walk = walk_three(libunwind_walk);
	assert_int_equal(walk.count, 3);
	assert_true(walk.cut);
}

/* Calls frame_walk with `value` where its caller's frame pointer should be. */
static __attribute__((noinline)) void walk_with(struct walk *walk, uintptr_t value)
{
#if defined(__x86_64__)
	__asm__ volatile("pushq %%rbp\n\tmovq %1, %%rbp\n\tcall *%2\n\tpopq %%rbp"
	                 : "+D"(walk)
	                 : "r"(value), "a"(&frame_walk)
	                 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
#elif defined(__aarch64__)
	register struct walk *x0 __asm__("x0") = walk;
	register uintptr_t x20 __asm__("x20") = value;
	register walker *x21 __asm__("x21") = &frame_walk;

	__asm__ volatile("mov x19, x29\n\tmov x29, %1\n\tblr %2\n\tmov x29, x19"
	                 : "+r"(x0)
	                 : "r"(x20), "r"(x21)
	                 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
	                   "x14", "x15", "x16", "x17", "x18", "x19", "x30", "memory", "cc");
#endif
}

static void a_wild_frame_pointer_ends_the_walk(void **state)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t hole = (uintptr_t)mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t wild[] = {8,
	                          here - 4096,
	                          here + 3,
	                          UINTPTR_MAX & ~UINT64_C(15),
	                          hole + 65536,
	                          here + (1 << 30),
	                          0x7ffffffff000,
	                          UINT64_C(1) << 63,
	                          here + 4096 + 8};

	(void)state;
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		struct walk walk = {.frame = found, .room = 64};

		walk_with(&walk, wild[i]);
		assert_int_equal(walk.count, 1);
		assert_true(walk.cut);
	}
}

/* A stack above everything that is mapped high: the next frame lies in a hole above the stack in use. */
static struct walk on_other_stack;
static uintptr_t above;

static void walk_there(void)
{
	on_other_stack = (struct walk){.frame = found, .room = 64};
	walk_with(&on_other_stack, above);
}

static void a_coroutine_stack_is_not_left(void **state)
{
	const size_t size = 1 << 20;
	char *area = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucontext_t back, there;

	(void)state;
	assert_int_equal(munmap(area + size, size), 0);
	above = (uintptr_t)area + size + 4096;
	assert_int_equal(getcontext(&there), 0);
	there.uc_stack.ss_sp = area;
	there.uc_stack.ss_size = size;
	there.uc_link = &back;
	makecontext(&there, walk_there, 0);
	assert_int_equal(swapcontext(&back, &there), 0);
	assert_int_equal(on_other_stack.count, 1);
	assert_true(on_other_stack.cut);
}

static void addresses_outside_code_are_dropped(void **state)
{
	uintptr_t frame[] = {(uintptr_t)&malloc, (uintptr_t)&frame_walk, 4711, (uintptr_t)&malloc};
	struct walk walk = {.frame = frame, .count = 4, .room = 4};

	(void)state;
	frame_check(&walk);
	assert_int_equal(walk.count, 2);
	assert_true(walk.cut);
}

static __attribute__((noinline)) void take_own(struct walk *walk)
{
	stack_take(walk);
	__asm__ volatile("" ::: "memory");
}

static void frames_of_our_own_are_left_out(void **state)
{
	struct walk walk = {.frame = found, .room = 64};
	uintptr_t first;

	(void)state;
	stack_own(&walk, &walk);
	take_own(&walk);
	first = walk.frame[0];
	assert_true(walk.count > 3);
	walk = (struct walk){.frame = found, .room = 64};
	stack_own((void *)first, (void *)(first + 1));
	take_own(&walk);
	assert_ptr_not_equal(walk.frame[0], first);
	stack_own(&walk, &walk);
}

/* The stack records in the ring, and whether `id` is defined by exactly one of them. */
static unsigned defined(uint32_t id)
{
	struct st_ring *ring = life_get()->ring;
	unsigned char *data = st_ring_data(ring);
	unsigned count = 0;

	for (uint64_t at = 0; at < atomic_load(&ring->head);) {
		const struct st_ev_stack *stack = (const void *)(data + at);

		assert_int_equal(stack->r.seq, ST_SEQ_MAGIC | at);
		count += stack->r.kind == ST_KIND_stack && stack->id == id;
		at += stack->r.words * 8;
	}
	return count;
}

static __attribute__((noinline)) uint32_t id_here(void)
{
	struct guard guard;
	uint32_t id;

	if (!guard_enter(&guard))
		return 0;
	id = stack_id();
	guard_leave(&guard);
	return id;
}

static volatile int three = 3; /* nothing is unrolled: each round is the same call */

static void a_stack_is_written_once(void **state)
{
	uint32_t same[3] = {0}, other;

	(void)state;
	for (int i = 0; i < three; i++)
		same[i] = id_here();
	other = id_here();
	assert_int_not_equal(same[0], 0);
	assert_int_equal(same[0], same[1]);
	assert_int_equal(same[0], same[2]);
	assert_int_not_equal(other, same[0]);
	assert_int_equal(defined(same[0]), 1);
	assert_int_equal(defined(other), 1);
}

static void a_child_defines_its_stacks_again(void **state)
{
	uint32_t id = 0;

	(void)state;
	for (int i = 0; i < three; i++) {
		id = id_here();
		stack_reset();
	}
	assert_int_equal(defined(id), 3);
}

#define THREADS 4

static void *many_ids(void *arg)
{
	uint32_t *ret_id = arg;

	for (int i = 0; i < 1000; i++)
		*ret_id = id_here();
	return NULL;
}

static void threads_agree_on_a_stack(void **state)
{
	pthread_t thread[THREADS];
	uint32_t id[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, many_ids, &id[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(defined(id[i]), 1);
	}
}

static int recording_start(void **state)
{
	struct guard guard;

	(void)state;
	if (!guard_enter(&guard))
		return -1;
	shim_touch(TOUCH_OPEN);
	guard_leave(&guard);
	stack_own(&guard, &guard); /* here the test itself is what the library is elsewhere */
	return life_get()->ring ? 0 : -1;
}

static int recording_end(void **state)
{
	(void)state;
	return unlink(life_get()->ring->path);
}

/* The settings are read once, early: before the shim's own constructor. */
static __attribute__((constructor(101))) void settings_set(void)
{
	const char *folder = getenv("T");

	setenv("SPARKTRACE_RING_DIR", folder ? folder : "/tmp", 1);
	setenv("SPARKTRACE_QUIET", "1", 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_pointers_lead_to_the_callers),
		cmocka_unit_test(libunwind_finds_the_callers),
		cmocka_unit_test(a_child_of_a_walk_does_without_libunwind),
		cmocka_unit_test(a_long_stack_is_cut),
		cmocka_unit_test(a_wild_frame_pointer_ends_the_walk),
		cmocka_unit_test(a_coroutine_stack_is_not_left),
		cmocka_unit_test(addresses_outside_code_are_dropped),
		cmocka_unit_test(frames_of_our_own_are_left_out),
		cmocka_unit_test(a_stack_is_written_once),
		cmocka_unit_test(a_child_defines_its_stacks_again),
		cmocka_unit_test(threads_agree_on_a_stack),
	};

	return cmocka_run_group_tests(tests, recording_start, recording_end);
}
