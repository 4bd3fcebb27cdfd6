/* SPDX-License-Identifier: Apache-2.0 */
#include "relief_drop.h"

#include "event.h"
#include "pages.h"
#include "sys.h"

#include <stdatomic.h>

#include "banned.h"

#define COPIES 1024 /* that wait for a sync; further ones are not given back */
#define RUNS   64   /* files that are read at the same time */
#define STEP   (UINT64_C(8) << 20)

/* A slot belongs to whoever made it BUSY; nobody waits for it. */
enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_SET };

static struct copy_slot {
	_Atomic uint32_t state; /* enum slot_state */
	uintptr_t start, end;
	uint64_t stream;
} copies[COPIES];

static _Atomic unsigned waiting; /* slots that are SET */

/* What was read of a file without a gap and not given back yet. */
static struct run {
	_Atomic uint32_t state;
	uint32_t file;
	uint64_t start, end;
} runs[RUNS];

static bool slot_take(_Atomic uint32_t *state, uint32_t from)
{
	return atomic_load_explicit(state, memory_order_relaxed) == from &&
	       atomic_compare_exchange_strong(state, &from, SLOT_BUSY);
}

static void note(uint32_t file, uint64_t offset, uint64_t size, uintptr_t addr, long error)
{
	EVENT(relief, .what = ST_RELIEF_DROPPED, .file = file, .offset = offset, .size = size, .addr = addr,
	      .result = (uint64_t)-error);
}

/* --- copies out of mappings ------------------------------------------------------------------ */

/* Whole pages of mappings that never were writable: the others may hold copies, which would only go to swap. */
static void range_drop(uintptr_t start, uintptr_t end)
{
	struct mapping part;
	unsigned cursor = 0;

	start = page_up(start);
	end = page_down(end);
	while (start < end && maps_next(start, end, &cursor, &part))
		if (!part.writable)
			note(part.file, part.offset, part.end - part.start, part.start,
			     sys_madvise((void *)part.start, part.end - part.start, MADV_PAGEOUT));
}

static void copy_remember(uintptr_t start, uintptr_t end, uint64_t stream)
{
	for (unsigned i = 0; i < COPIES; i++) {
		struct copy_slot *slot = &copies[i];

		if (!slot_take(&slot->state, SLOT_FREE))
			continue;
		slot->start = start;
		slot->end = end;
		slot->stream = stream;
		atomic_fetch_add(&waiting, 1);
		atomic_store_explicit(&slot->state, SLOT_SET, memory_order_release);
		return;
	}
}

void drop_copied(uintptr_t addr, uint64_t size, bool async, uint64_t stream)
{
	struct mapping part;
	unsigned cursor = 0;

	if (!maps_next(addr, addr + size, &cursor, &part))
		return;
	if (async)
		copy_remember(addr, addr + size, stream);
	else
		range_drop(addr, addr + size);
}

static void copy_over(struct copy_slot *slot, enum st_sync_how how, uint64_t handle)
{
	uintptr_t start, end;

	if (!slot_take(&slot->state, SLOT_SET))
		return;
	start = slot->start;
	end = slot->end;
	if (how == ST_SYNC_STREAM && slot->stream != handle) {
		atomic_store_explicit(&slot->state, SLOT_SET, memory_order_release);
		return;
	}
	atomic_fetch_sub(&waiting, 1);
	atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
	range_drop(start, end);
}

void drop_synced(enum st_sync_how how, uint64_t handle)
{
	if ((how != ST_SYNC_STREAM && how != ST_SYNC_CONTEXT) || !atomic_load(&waiting))
		return;
	for (unsigned i = 0; i < COPIES; i++)
		copy_over(&copies[i], how, handle);
}

/* --- reads ----------------------------------------------------------------------------------- */

/* The run of a file, BUSY; else a free one; else NULL: not given back. */
static struct run *run_take(uint32_t file)
{
	for (unsigned i = 0; i < RUNS; i++) {
		if (!slot_take(&runs[i].state, SLOT_SET))
			continue;
		if (runs[i].file == file)
			return &runs[i];
		atomic_store_explicit(&runs[i].state, SLOT_SET, memory_order_release);
	}
	for (unsigned i = 0; i < RUNS; i++)
		if (slot_take(&runs[i].state, SLOT_FREE))
			return &runs[i];
	return NULL;
}

/* The page in which it begins was used up to there before. */
static void run_drop(struct run *run, int fd)
{
	uint64_t first = page_down(run->start);

	if (run->end > run->start)
		note(run->file, run->start, run->end - run->start, 0,
		     sys_call4(SYS_fadvise64, fd, (long)first, (long)(run->end - first),
		               POSIX_FADV_DONTNEED));
	run->start = run->end;
}

/* What lies before a gap goes at once, the rest in steps; a file that was read to its end needs no run any more. */
void drop_read(int fd, const struct file *file, uint64_t offset, uint64_t size)
{
	struct run *run = run_take(file->id);
	bool over = offset + size >= file->size;

	if (!run)
		return;
	if (run->file != file->id || run->end != offset) {
		run_drop(run, fd);
		*run = (struct run){.state = SLOT_BUSY, .file = file->id, .start = offset};
	}
	run->end = offset + size;
	if (over || run->end - run->start >= STEP)
		run_drop(run, fd);
	if (over)
		run->start = run->end = 0;
	atomic_store_explicit(&run->state, over ? SLOT_FREE : SLOT_SET, memory_order_release);
}

/* --- mappings that end ----------------------------------------------------------------------- */

static bool file_mapped(uint32_t file, uintptr_t start, uintptr_t end)
{
	struct mapping part;
	unsigned cursor = 0;

	while (maps_next(start, end, &cursor, &part))
		if (part.file == file)
			return true;
	return false;
}

/* While they are still there the pages can be given back here and now. */
void drop_look(struct drop *drop, uintptr_t start, uintptr_t end, bool no_copies)
{
	unsigned cursor = 0;

	drop->count = 0;
	while (drop->count < 8 && maps_next(start, end, &cursor, &drop->parts[drop->count])) {
		const struct mapping *part = &drop->parts[drop->count++];

		if (no_copies && !file_mapped(part->file, 0, start) &&
		    !file_mapped(part->file, end, UINTPTR_MAX))
			sys_madvise((void *)part->start, part->end - part->start, MADV_PAGEOUT);
	}
}

void drop_unmapped(const struct drop *drop)
{
	for (unsigned i = 0; i < drop->count; i++) {
		const struct mapping *part = &drop->parts[i];

		if (!file_mapped(part->file, 0, UINTPTR_MAX))
			note(part->file, part->offset, part->end - part->start, part->start, 0);
	}
}
