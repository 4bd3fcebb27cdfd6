/* SPDX-License-Identifier: Apache-2.0 */
#include "python_code.h"

#include "event.h"
#include "hash.h"
#include "python_line.h"
#include "python_text.h"

#include <stdatomic.h>

#include "banned.h"

#define SLOTS     4096u /* a power of two */
#define PROBES    16u
#define LINES     4096u
#define NAME_MOST 240u
#define TEXT_MOST 1200u

/*
 * Known functions, by a 64-bit hash, in the way of the known stacks (stack.c): the place is the identifier; empty (0),
 * being defined by some thread, or DEFINED.
 *
 * An address alone says little: a code object is freed, and the next one comes to lie there. 3.12 and later number
 * them. For 3.11 the name, the file and the first line are looked at each time.
 */
#define DEFINED UINT64_C(1)
static _Atomic uint64_t slots[SLOTS];
static _Atomic bool any;

/* Lines found before: identifier and unit above, line below. Whoever comes later overwrites. */
static _Atomic uint64_t lines[LINES];

#define UNIT_BITS 18
#define LINE_BITS 32
_Static_assert(SLOTS < 1u << (64 - UNIT_BITS - LINE_BITS), "identifier, unit and line share a word");

bool python_code_read(struct peek *seen, const struct python_layout *layout, uintptr_t type,
                      uintptr_t address, struct python_code *ret_code)
{
	const char *at = (const char *)address;
	uintptr_t its_type;

	if (address % sizeof(address) || !peek_range(seen, address, layout->code_bytes))
		return false;
	memcpy(&its_type, at + PYTHON_OBJECT_TYPE, sizeof(its_type));
	if (its_type != type)
		return false;
	ret_code->address = address;
	ret_code->version = 0;
	memcpy(&ret_code->units, at + PYTHON_OBJECT_SIZE, sizeof(ret_code->units));
	memcpy(&ret_code->name, at + layout->code_name, sizeof(ret_code->name));
	memcpy(&ret_code->file, at + layout->code_file, sizeof(ret_code->file));
	memcpy(&ret_code->lines, at + layout->code_lines, sizeof(ret_code->lines));
	memcpy(&ret_code->first_line, at + layout->code_first_line, sizeof(ret_code->first_line));
	memcpy(&ret_code->traceable, at + layout->code_traceable, sizeof(ret_code->traceable));
	if (layout->code_version != PYTHON_NONE)
		memcpy(&ret_code->version, at + layout->code_version, sizeof(ret_code->version));
	return true;
}

/* 0: it has no name. */
static uint64_t code_hash(struct peek *seen, const struct python_layout *layout,
                          const struct python_code *code)
{
	uint64_t hash =
		hash_mix(hash_mix(1, code->address), (uint64_t)code->first_line << 32 | code->version);

	if (!code->version) {
		hash = python_text_hash(seen, layout, code->file, hash);
		hash = hash ? python_text_hash(seen, layout, code->name, hash_mix(hash, code->lines)) : 0;
	}
	return hash ? (hash & ~DEFINED) | 2 : 0;
}

static bool code_define(struct peek *seen, const struct python_layout *layout, const struct python_code *code,
                        unsigned slot)
{
	char buffer[TEXT_MOST];
	struct text text = text_in(buffer, NAME_MOST);

	if (!python_text_add(seen, layout, code->name, '_', &text))
		return false;
	text.end = buffer + sizeof(buffer) - 1;
	text_byte(&text, ' ');
	if (!python_text_add(seen, layout, code->file, ' ', &text))
		return false;
	return EVENT_TAIL(code, buffer, text_length(&text), .id = slot + 1, .line = code->first_line);
}

/* The identifier, 0: not there, and then *ret_slot is the place for it, SLOTS when there is none. */
static uint32_t slot_find(uint64_t hash, unsigned *ret_slot)
{
	*ret_slot = SLOTS;
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned slot = (unsigned)((hash >> 32) + i) % SLOTS;
		uint64_t there = atomic_load_explicit(&slots[slot], memory_order_acquire);

		if (there == (hash | DEFINED))
			return slot + 1;
		if (there == 0) {
			*ret_slot = slot;
			return 0;
		}
	}
	return 0;
}

static uint32_t code_id(struct peek *seen, const struct python_layout *layout, const struct python_code *code)
{
	uint64_t hash = code_hash(seen, layout, code);

	for (unsigned i = 0; hash && i < PROBES; i++) {
		uint64_t empty = 0;
		unsigned slot;
		uint32_t id = slot_find(hash, &slot);
		bool written;

		if (id || slot == SLOTS)
			return id;
		if (!atomic_compare_exchange_strong(&slots[slot], &empty, hash))
			continue;
		atomic_store_explicit(&any, true, memory_order_relaxed);
		written = code_define(seen, layout, code, slot);
		atomic_store_explicit(&slots[slot], written ? hash | DEFINED : 0, memory_order_release);
		return written ? slot + 1 : 0;
	}
	return 0;
}

uint64_t python_code_word(struct peek *seen, const struct python_layout *layout,
                          const struct python_code *code, uint32_t unit)
{
	uint64_t id = code_id(seen, layout, code), key = id << UNIT_BITS | unit;
	_Atomic uint64_t *known = &lines[hash_mix(1, key) >> 20 & (LINES - 1)];
	uint64_t there = atomic_load_explicit(known, memory_order_relaxed);
	bool keeps = id && unit < 1u << UNIT_BITS;
	uint32_t line;

	if (keeps && there >> LINE_BITS == key)
		return id << 32 | (uint32_t)there;
	line = python_line(seen, code->lines, code->first_line, unit);
	if (keeps)
		atomic_store_explicit(known, key << LINE_BITS | line, memory_order_relaxed);
	return id << 32 | line;
}

void python_code_reset(void)
{
	if (!atomic_exchange(&any, false))
		return;
	for (unsigned i = 0; i < SLOTS; i++)
		atomic_store_explicit(&slots[i], 0, memory_order_relaxed);
	for (unsigned i = 0; i < LINES; i++)
		atomic_store_explicit(&lines[i], 0, memory_order_relaxed);
}
