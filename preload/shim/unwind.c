/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind.h"

#include "peek.h"
#include "real.h"
#include "sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "banned.h"

typedef int backtrace_function(void **frames, int room);

static _Atomic(backtrace_function *) backtrace_tables;

/*
 * Threads that may hold a lock of libunwind or of the loader's list of objects, which libunwind walks. A fork child
 * inherits such a lock as it is, with nobody to release it, and would wait for ever at its first walk.
 */
static _Atomic unsigned inside;
static _Atomic bool locked;

void unwind_enter(void)
{
	atomic_fetch_add(&inside, 1);
}

void unwind_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

bool libunwind_forked(void)
{
	if (atomic_exchange(&inside, 0))
		atomic_store(&locked, true);
	return atomic_load(&locked);
}

/*
 * libunwind reads from the pipe that it has none of (nopipe.h), which is a place to be cancelled at: the thread would
 * end in the middle of malloc, where no thread ever does, and with libunwind's lock.
 */
static int tables_walk(backtrace_function *function, void **frames, int most)
{
	int state, count;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	unwind_enter();
	count = function(frames, most);
	unwind_leave();
	pthread_setcancelstate(state, NULL);
	return count;
}

/*
 * Never a dependency of the library: in the global scope its _Unwind_* would stand in for libgcc's under every
 * C++ exception of the program. The first call sets libunwind up, so it is made here and not in a
 * wrapper of malloc.
 */
bool libunwind_open(void)
{
	backtrace_function *function = NULL;
	void *library, *frame[4];

	if (atomic_load(&locked))
		return false;
	library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	if (library)
		function = (backtrace_function *)real()->dlsym(library, "unw_backtrace");
	if (!function) {
		dlerror();
		return false;
	}
	tables_walk(function, frame, 4);
	atomic_store_explicit(&backtrace_tables, function, memory_order_release);
	return true;
}

#define ROOM_FOR_TABLES 65536u

bool stack_is_small(void)
{
	stack_t own;

	return sys_call3(SYS_sigaltstack, 0, (long)&own, 0) == 0 && (own.ss_flags & SS_ONSTACK) &&
	       own.ss_size < ROOM_FOR_TABLES;
}

void libunwind_walk(struct walk *walk)
{
	backtrace_function *function = atomic_load_explicit(&backtrace_tables, memory_order_acquire);
	int count = tables_walk(function, (void **)walk->frame, (int)walk->room);

	walk->frames = false;
	walk->count = count > 0 ? (unsigned)count : 0;
	walk->cut = walk->count == walk->room;
	while (walk->count && !walk->frame[walk->count - 1])
		walk->count--;
}

/* x86_64: rbp points at the caller's rbp and the return address; aarch64: x29 at the caller's x29 and x30. */
struct frame {
	uintptr_t next;
	uintptr_t back;
};

#define FRAME_ALIGN 16
#define PROBE_PAGE  4096u
#define MAIN_STACK  (UINT64_C(64) << 20) /* nothing else is mapped that close below the first stack's end */

/* Takes the signature of pointer authentication off; the hint does nothing where there is none. */
static inline uintptr_t unsign(uintptr_t back)
{
#ifdef __aarch64__
	register uintptr_t x30 __asm__("x30") = back;

	__asm__("hint #7" : "+r"(x30));
	return x30;
#else
	return back;
#endif
}

/* Threads may run on any stack (of coroutines, of signals), whose bounds nobody tells without a lock or an allocation. */
static bool readable(uintptr_t address)
{
	return sys_readable(address & ~(uintptr_t)7);
}

/* Between the stack pointer and the end of the process's first stack everything is mapped. */
static bool on_main_stack(uintptr_t here, uintptr_t address)
{
	uintptr_t end = getauxval(AT_EXECFN);

	return here < end && end - here < MAIN_STACK && address > here &&
	       address < end - sizeof(struct frame);
}

static bool frame_follows(uintptr_t here, uintptr_t next)
{
	if (next <= here || next % FRAME_ALIGN)
		return false;
	return next / PROBE_PAGE == here / PROBE_PAGE || on_main_stack(here, next) || readable(next);
}

__attribute__((noinline)) void frame_walk(struct walk *walk)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	walk->frames = true;
	walk->count = 0;
	walk->cut = false;
	for (;;) {
		const struct frame *frame = (const struct frame *)here;

		if (walk->count == walk->room) {
			walk->cut = true;
			return;
		}
		walk->frame[walk->count++] = unsign(frame->back);
		if (!frame->next)
			return;
		if (!frame_follows(here, frame->next)) {
			walk->cut = true;
			return;
		}
		here = frame->next;
	}
}

void frame_check(struct walk *walk)
{
	struct dl_find_object found;

	for (unsigned i = 0; i < walk->count; i++) {
		if (_dl_find_object((void *)walk->frame[i], &found) == 0)
			continue;
		walk->count = i;
		walk->cut = true;
	}
}
