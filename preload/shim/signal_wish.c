/* SPDX-License-Identifier: Apache-2.0 */
#include "signal_wish.h"

#include <stdatomic.h>
#include <string.h>

#include "banned.h"

/* So many changes may happen while one reader copies one of them. */
#define SLOTS 64

static struct sigaction slots[SLOTS]; /* all SIG_DFL */
static _Atomic uint32_t last;         /* number that was given out last */
static _Atomic uint32_t current;

uint32_t wish_number(void)
{
	return atomic_load_explicit(&current, memory_order_acquire);
}

static uint32_t read_numbered(struct sigaction *ret_wish)
{
	uint32_t number;

	do {
		number = wish_number();
		memcpy(ret_wish, &slots[number % SLOTS], sizeof(*ret_wish));
		atomic_thread_fence(memory_order_acquire);
	} while (number != atomic_load_explicit(&current, memory_order_relaxed));
	return number;
}

void wish_read(struct sigaction *ret_wish)
{
	read_numbered(ret_wish);
}

static uint32_t write_numbered(const struct sigaction *wish)
{
	uint32_t number = atomic_fetch_add(&last, 1) + 1;

	memcpy(&slots[number % SLOTS], wish, sizeof(*wish));
	return number;
}

void wish_set(const struct sigaction *wish, struct sigaction *ret_old)
{
	uint32_t number = write_numbered(wish);
	uint32_t before = atomic_exchange(&current, number);

	if (ret_old)
		memcpy(ret_old, &slots[before % SLOTS], sizeof(*ret_old));
}

void wish_take(struct sigaction *ret_wish)
{
	uint32_t number = read_numbered(ret_wish);

	while ((ret_wish->sa_flags & SA_RESETHAND) && ret_wish->sa_handler != SIG_DFL) {
		struct sigaction reset = *ret_wish;
		uint32_t fresh;

		reset.sa_handler = SIG_DFL;
		fresh = write_numbered(&reset);
		if (atomic_compare_exchange_strong(&current, &number, fresh))
			return;
		number = read_numbered(ret_wish);
	}
}
