/* SPDX-License-Identifier: Apache-2.0 */
/* Objects behind opaque handles: a handle is the address of its object in one large sparse array. */
#include "tests/simcuda/driver/sim.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define OBJECTS_MAX (1u << 18)

static struct sim_object *objects;
static size_t object_count; /* slots ever used */
static size_t object_low;   /* no free slot lies below */

static bool objects_init(void)
{
	long at;

	if (objects)
		return true;
	at = sim_syscall(SYS_mmap, 0, OBJECTS_MAX * sizeof(*objects), PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0 && at > -4096)
		return false;
	objects = (struct sim_object *)at;
	return true;
}

struct sim_object *object_new(enum sim_object_kind kind)
{
	size_t i = object_low;

	if (!objects_init())
		return NULL;
	while (i < object_count && objects[i].kind != SIM_FREE)
		i++;
	if (i == OBJECTS_MAX)
		return NULL;
	if (i == object_count)
		object_count++;
	object_low = i + 1;
	memset(&objects[i], 0, sizeof(objects[i]));
	objects[i].kind = kind;
	return &objects[i];
}

struct sim_object *object_get(const void *handle, enum sim_object_kind kind)
{
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)objects;

	if (!objects || offset >= object_count * sizeof(*objects) || offset % sizeof(*objects))
		return NULL;
	return objects[offset / sizeof(*objects)].kind == kind ? &objects[offset / sizeof(*objects)] : NULL;
}

void object_free(struct sim_object *object)
{
	size_t index = (size_t)(object - objects);

	object->kind = SIM_FREE;
	if (index < object_low)
		object_low = index;
}

struct sim_object *object_next(struct sim_object *after, enum sim_object_kind kind)
{
	struct sim_object *end = objects + object_count;

	for (struct sim_object *object = after ? after + 1 : objects; object && object < end; object++)
		if (object->kind == kind)
			return object;
	return NULL;
}
