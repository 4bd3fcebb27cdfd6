/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"
#include "clock.h"
#include "elffile.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_MAX  (1u << 20) /* addresses; beyond it a program makes code, and names would be wrong anyway */
#define PASS_SHARE 50         /* passes through one symbol table cost at most 1/50 of a core */

void symbols_init(struct symbols *symbols, uint32_t pid)
{
	*symbols = (struct symbols){0};
	modules_init(&symbols->modules, pid);
}

void symbols_release(struct symbols *symbols)
{
	modules_release(&symbols->modules);
	free(symbols->known);
	free(symbols->waiting);
}

/* --- the set --------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct symbols *symbols, uint64_t address)
{
	uint32_t slot = (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (symbols->known_room - 1);

	while (symbols->known[slot] && symbols->known[slot] != address)
		slot = (slot + 1) & (symbols->known_room - 1);
	return slot;
}

static bool grow_known(struct symbols *symbols)
{
	uint32_t old_room = symbols->known_room, i;
	uint64_t *old = symbols->known;

	if (symbols->known_count * 2 < old_room)
		return true;
	if (old_room >= KNOWN_MAX * 2)
		return false;
	symbols->known = calloc(old_room ? old_room * 2 : 4096, sizeof(*old));
	if (!symbols->known) {
		symbols->known = old;
		return false;
	}
	symbols->known_room = old_room ? old_room * 2 : 4096;
	for (i = 0; i < old_room; i++)
		if (old[i])
			symbols->known[slot_of(symbols, old[i])] = old[i];
	free(old);
	return true;
}

static bool push_waiting(struct symbols *symbols, uint64_t address)
{
	uint32_t room = symbols->waiting_room ? symbols->waiting_room * 2 : 1024;
	uint64_t *waiting;

	if (symbols->waiting_count == symbols->waiting_room) {
		waiting = realloc(symbols->waiting, room * sizeof(*waiting));
		if (!waiting)
			return false;
		symbols->waiting = waiting;
		symbols->waiting_room = room;
	}
	symbols->waiting[symbols->waiting_count++] = address;
	return true;
}

void symbols_add(struct symbols *symbols, const uint64_t *addresses, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t address = addresses[i];
		uint32_t slot;

		if (address < 4096 || !grow_known(symbols))
			continue;
		slot = slot_of(symbols, address);
		if (symbols->known[slot] || !push_waiting(symbols, address))
			continue;
		symbols->known[slot] = address;
		symbols->known_count++;
		symbols->ask_modules |= !modules_find(&symbols->modules, address - 1);
	}
}

void symbols_place(struct symbols *symbols, struct out *out)
{
	if (symbols->ask_modules && modules_read(&symbols->modules, out))
		symbols->ask_modules = false;
}

/* --- naming ---------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	uint64_t left = ((const struct elffile_name *)a)->address,
		 right = ((const struct elffile_name *)b)->address;

	return (left > right) - (left < right);
}

/* Takes the addresses of one module out of those that wait. A return address belongs to the call before it. */
static size_t take_waiting(struct symbols *symbols, const struct module *module, struct elffile_name *names)
{
	size_t count = 0;
	uint32_t i = 0;

	while (i < symbols->waiting_count) {
		uint64_t address = symbols->waiting[i];

		if (address - 1 < module->start || address - 1 >= module->end) {
			i++;
			continue;
		}
		names[count++] = (struct elffile_name){.address = address - 1 - module->bias};
		symbols->waiting[i] = symbols->waiting[--symbols->waiting_count];
	}
	qsort(names, count, sizeof(*names), by_address);
	return count;
}

static void name_module(struct symbols *symbols, struct module *module, struct out *out)
{
	struct elffile_name *names = malloc(symbols->waiting_count * sizeof(*names));
	uint64_t before = clock_cost();
	size_t count, i;

	if (!names)
		return;
	count = take_waiting(symbols, module, names);
	if (module->elf)
		elffile_name(module->path, module->ino, names, count);
	for (i = 0; i < count; i++) {
		if (!names[i].name)
			continue;
		OUT_TAIL(out, symbol, names[i].name, strlen(names[i].name),
		         .address = names[i].address + 1 + module->bias,
		         .offset = names[i].address + 1 - names[i].start);
		free(names[i].name);
	}
	free(names);
	module->pass_cost = clock_cost() - before;
	module->pass_next = clock_now() + module->pass_cost * PASS_SHARE;
}

bool symbols_work(struct symbols *symbols, struct out *out, bool hurry)
{
	uint64_t now = clock_now();
	uint32_t i;

	for (i = 0; i < symbols->waiting_count; i++) {
		struct module *module = modules_find(&symbols->modules, symbols->waiting[i] - 1);

		if (!module || (!hurry && now < module->pass_next))
			continue;
		name_module(symbols, module, out);
		return symbols->waiting_count > 0;
	}
	return false;
}
