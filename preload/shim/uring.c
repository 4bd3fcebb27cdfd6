/* SPDX-License-Identifier: Apache-2.0 */
#include "uring.h"

#include "event.h"
#include "guard.h"
#include "life.h"
#include "sys.h"
#include "text.h"

#include <stdatomic.h>
#include <string.h>

#include "banned.h"

#define DESCRIPTORS 256
#define AGAIN       8

static _Atomic uint32_t noted; /* the process whose trace says so: a fork child has a trace of its own */
static atomic_int again;

/* Said already, or there is no trace to say it in? */
static bool uring_noted(void)
{
	const struct life *life = life_get();

	return !life || atomic_load_explicit(&noted, memory_order_relaxed) == life->pid;
}

/* The guard must be up. */
static void uring_note(void)
{
	static const char text[] = "io_uring: what the program reads through it is not seen";
	const struct life *life = life_get();

	if (life && atomic_exchange(&noted, life->pid) != life->pid)
		EVENT_TAIL(coverage, text, strlen(text));
}

void uring_seen(void)
{
	struct guard guard;

	if (uring_noted() || !guard_enter(&guard))
		return;
	uring_note();
	guard_leave(&guard);
}

/* Descriptors that the kernel made out of nothing are of no type; their name tells what they are. */
static bool is_uring(int fd)
{
	static const char name[] = "anon_inode:[io_uring]";
	char buffer[32], target[sizeof(name)];
	struct text text = text_in(buffer, sizeof(buffer));
	struct stat status;

	if (sys_fstat(fd, &status) < 0 || status.st_mode & S_IFMT)
		return false;
	text_add(&text, "/proc/self/fd/");
	text_number(&text, (uint64_t)fd);
	return sys_readlink(buffer, target, sizeof(target)) == sizeof(name) - 1 &&
	       memcmp(target, name, sizeof(name) - 1) == 0;
}

static void uring_search(void)
{
	for (int fd = 0; fd < DESCRIPTORS && !uring_noted(); fd++)
		if (is_uring(fd))
			uring_note();
}

void uring_look(void)
{
	atomic_store_explicit(&again, AGAIN, memory_order_relaxed);
	uring_search();
}

void uring_look_again(void)
{
	if (likely(atomic_load_explicit(&again, memory_order_relaxed) <= 0))
		return;
	atomic_fetch_sub_explicit(&again, 1, memory_order_relaxed);
	uring_search();
}
