/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/touches.h>

#include <stdlib.h>

#define TOUCHES_MAX 65536u           /* pairs of file and stack; more than any loader makes */
#define FREE        (UINT32_MAX - 1) /* as a file: no touch yet */

static struct touch *slot_of(struct touch *touches, size_t room, uint32_t file, uint32_t stack)
{
	size_t i = (size_t)(((uint64_t)file << 32 | stack) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);

	while (touches[i].file != FREE && (touches[i].file != file || touches[i].stack != stack))
		i = (i + 1) & (room - 1);
	return &touches[i];
}

static bool touches_grow(struct touches *touches)
{
	size_t room = touches->room ? touches->room * 2 : 64;
	struct touch *moved = calloc(room, sizeof(*moved));

	if (!moved)
		return false;
	for (size_t i = 0; i < room; i++)
		moved[i].file = FREE;
	for (size_t i = 0; i < touches->room; i++) {
		const struct touch *old = &touches->touches[i];

		if (old->file != FREE)
			*slot_of(moved, room, old->file, old->stack) = *old;
	}
	free(touches->touches);
	touches->touches = moved;
	touches->room = room;
	return true;
}

void touches_release(struct touches *touches)
{
	free(touches->touches);
	*touches = (struct touches){0};
}

static struct touch *touch_drop(struct touches *touches)
{
	touches->dropped++;
	return NULL;
}

struct touch *touches_get(struct touches *touches, uint32_t file, uint32_t stack)
{
	struct touch *touch;

	if (!touches->room && !touches_grow(touches))
		return touch_drop(touches);
	touch = slot_of(touches->touches, touches->room, file, stack);
	if (touch->file != FREE)
		return touch;
	if (touches->count == TOUCHES_MAX ||
	    ((touches->count + 1) * 4 > touches->room * 3 && !touches_grow(touches)))
		return touch_drop(touches);
	touch = slot_of(touches->touches, touches->room, file, stack);
	*touch = (struct touch){.file = file, .stack = stack};
	touches->count++;
	return touch;
}

static int touch_compare(const void *left, const void *right)
{
	const struct touch *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

void touches_sort(struct touches *touches)
{
	size_t count = 0;

	for (size_t i = 0; i < touches->room; i++)
		if (touches->touches[i].file != FREE)
			touches->touches[count++] = touches->touches[i];
	if (count)
		qsort(touches->touches, count, sizeof(*touches->touches), touch_compare);
	touches->room = 0;
}
