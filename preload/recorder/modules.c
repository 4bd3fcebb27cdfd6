/* SPDX-License-Identifier: Apache-2.0 */
#include "modules.h"
#include "clock.h"
#include "elffile.h"
#include "procfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 50 /* reading the map costs at most 1/50 of a core */

void modules_init(struct modules *modules, uint32_t pid)
{
	struct procfs_stat stat;

	*modules = (struct modules){.pid = pid};
	if (!procfs_read_stat(pid, &stat))
		modules->start_stack = stat.start_stack;
}

/* The first module that ends behind `address`. */
static uint32_t lower(const struct modules *modules, uint64_t address)
{
	uint32_t low = 0, high = modules->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (modules->all[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct module *modules_find(const struct modules *modules, uint64_t address)
{
	uint32_t at = lower(modules, address);

	return at < modules->count && modules->all[at].start <= address ? &modules->all[at] : NULL;
}

static bool make_room(struct modules *modules)
{
	uint32_t room = modules->room ? modules->room * 2 : 128;
	struct module *all;

	if (modules->count < modules->room)
		return true;
	all = realloc(modules->all, room * sizeof(*all));
	if (!all)
		return false;
	modules->all = all;
	modules->room = room;
	return true;
}

/* An object that was closed gives its addresses to the next one. */
static void remove_at(struct modules *modules, uint32_t at)
{
	free(modules->all[at].path);
	modules->count--;
	memmove(&modules->all[at], &modules->all[at + 1], (modules->count - at) * sizeof(modules->all[0]));
}

static bool is_known(const struct modules *modules, const struct procfs_map *map)
{
	const struct module *module = modules_find(modules, map->start);

	return module && module->start == map->start && module->end == map->end && module->ino == map->ino &&
	       module->offset == map->offset;
}

/* An empty slot for a mapping, in the order of addresses; what stood there before is gone. */
static struct module *make_slot(struct modules *modules, const struct procfs_map *map)
{
	uint32_t at = lower(modules, map->start);

	while (at < modules->count && modules->all[at].start < map->end)
		remove_at(modules, at);
	if (!make_room(modules))
		return NULL;
	memmove(&modules->all[at + 1], &modules->all[at], (modules->count - at) * sizeof(modules->all[0]));
	modules->count++;
	return &modules->all[at];
}

static void add(struct modules *modules, struct out *out, const struct procfs_map *map)
{
	struct module *module = make_slot(modules, map);
	uint64_t build_id = 0;

	if (!module)
		return;
	*module = (struct module){
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.ino = map->ino,
		.bias = map->start - map->offset, /* right for most objects, if the file cannot be read */
		.path = strdup(map->path),
	};
	module->elf = module->path &&
	              !elffile_look(map->path, map->ino, map->start, map->offset, &module->bias, &build_id);
	OUT_TAIL(out, module, map->path, strlen(map->path), .start = map->start, .end = map->end,
	         .offset = map->offset, .bias = module->bias, .build_id = build_id);
}

/* To be asked when the map is open: what is read of it then is of the program that was there before. */
static bool is_other_program(const struct modules *modules)
{
	struct procfs_stat stat;

	return modules->start_stack &&
	       (procfs_read_stat(modules->pid, &stat) || stat.start_stack != modules->start_stack);
}

bool modules_read(struct modules *modules, struct out *out)
{
	uint64_t before = clock_cost();
	struct procfs_map map;
	char path[40], line[4352];
	bool other;
	FILE *file;

	if (clock_now() < modules->next)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/maps", modules->pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	other = is_other_program(modules);
	while (!other && fgets(line, sizeof(line), file))
		if (!procfs_parse_map(line, &map) && map.execute && map.path[0] == '/' &&
		    !is_known(modules, &map))
			add(modules, out, &map);
	fclose(file);
	modules->cost = clock_cost() - before;
	modules->next = clock_now() + modules->cost * SHARE;
	return true;
}

void modules_release(struct modules *modules)
{
	while (modules->count)
		remove_at(modules, modules->count - 1);
	free(modules->all);
}
