/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. */
#ifndef SPARKTRACE_ARRAY_H
#define SPARKTRACE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Makes room for one element of `size` bytes more than `count` in the array that the pointer at `array` names; *room is
 * for how many there is. 0 or -ENOMEM, the array unchanged then.
 */
static inline int array_reserve(void *array, size_t size, size_t count, size_t *room)
{
	void **elements = array;
	size_t more = *room ? *room * 2 : 16;
	void *moved;

	if (count < *room)
		return 0;
	moved = realloc(*elements, more * size);
	if (!moved)
		return -ENOMEM;
	*elements = moved;
	*room = more;
	return 0;
}

#endif
