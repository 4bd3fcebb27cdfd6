/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/residency_sums.h>
#include <errno.h>
#include <stdlib.h>

#define ROOM_FIRST 32

void stack_sums_release(struct stack_sums *sums)
{
	free(sums->sums);
	*sums = (struct stack_sums){0};
}

static struct stack_sum *slot_of(struct stack_sum *slots, size_t room, uint32_t stack)
{
	size_t i = (size_t)(stack * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);

	while (slots[i].used && slots[i].stack != stack)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int sums_grow(struct stack_sums *sums)
{
	size_t room = sums->room ? sums->room * 2 : ROOM_FIRST;
	struct stack_sum *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < sums->room; i++)
		if (sums->sums[i].used)
			*slot_of(slots, room, sums->sums[i].stack) = sums->sums[i];
	free(sums->sums);
	sums->sums = slots;
	sums->room = room;
	return 0;
}

int stack_sums_move(struct stack_sums *sums, uint32_t stack, int64_t bytes, int64_t more)
{
	struct stack_sum *sum;
	int error = sums->count * 4 >= sums->room * 3 ? sums_grow(sums) : 0;

	if (error)
		return error;
	sum = slot_of(sums->sums, sums->room, stack);
	if (!sum->used) {
		/* It was 0 at the moment that was kept. */
		*sum = (struct stack_sum){.stack = stack, .epoch = sums->epoch, .used = true};
		sums->count++;
	} else if (sum->epoch != sums->epoch) {
		sum->epoch = sums->epoch;
		sum->then = sum->now;
		sum->then_more = sum->now_more;
	}
	sum->now += (uint64_t)bytes;
	sum->now_more += (uint64_t)more;
	return 0;
}
