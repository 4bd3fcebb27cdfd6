/* SPDX-License-Identifier: Apache-2.0 */
/* mmap, munmap, mremap, mprotect. Of `mmap` and `mmap64` a caller binds the one it was compiled with. */
#include "anon.h"
#include "event.h"
#include "export.h"
#include "guard.h"
#include "load.h"
#include "maps.h"
#include "pages.h"
#include "real.h"
#include "relief.h"
#include "relief_drop.h"
#include "stack.h"

#include <stdarg.h>
#include <sys/mman.h>

#include "banned.h"

/* Mapping over something, or taking it away: what is lost there is looked at first. */
static void note_loss(const void *addr, size_t size)
{
	uintptr_t start = (uintptr_t)addr;
	struct guard guard;

	if (!maps_count() || !guard_enter(&guard))
		return;
	anon_note(page_down(start), page_up(start + size), ST_MOMENT_UNMAP);
	guard_leave(&guard);
}

static void remember(uintptr_t start, size_t size, int prot, int flags, const struct file *file, off_t offset)
{
	struct mapping mapping = {
		.start = start,
		.end = page_up(start + size),
		.offset = (uint64_t)offset,
		.file = file->id,
		.writable = prot & PROT_WRITE,
	};

	if (flags & MAP_FIXED)
		maps_cut(mapping.start, mapping.end);
	if ((flags & MAP_TYPE) == MAP_PRIVATE && file_weights(file))
		maps_add(&mapping);
}

/* `asked` is the program's, `prot` what the kernel was asked for instead: they differ where it was relieved. */
static void note_map(void *addr, size_t size, int asked, int prot, int flags, int fd, off_t offset)
{
	struct file file = {.id = 0};

	if (addr == MAP_FAILED) {
		if (errno == ENOMEM)
			load_refused(size);
		return;
	}
	if (!(flags & MAP_ANONYMOUS) && fd >= 0 && file_of(fd, &file) && file_weights(&file))
		load_seen(TOUCH_INSIDE, &file);
	if (prot != asked)
		prot = relief_add((uintptr_t)addr, size, asked, &file, offset);
	else if (relief_any() && relief_concerns(addr, size))
		relief_stale((uintptr_t)addr, size);
	remember((uintptr_t)addr, size, prot, flags, &file, offset);
	EVENT(map, .addr = (uintptr_t)addr, .size = size, .prot = (unsigned)prot, .flags = (unsigned)flags,
	      .file = file.id, .offset = (uint64_t)offset, .stack = stack_id());
}

EXPORT void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	int given = prot;
	struct guard guard;
	void *p;

	if (unlikely(flags & MAP_FIXED))
		note_loss(addr, size);
	if (relief_on(RELIEF_READONLY) && guard_enter(&guard)) {
		given = relief_prot(prot, flags, fd);
		guard_leave(&guard);
	}
	p = real()->mmap(addr, size, given, flags, fd, offset);
	if (guard_enter(&guard)) {
		if (event_wanted())
			note_map(p, size, prot, given, flags, fd, offset);
		else if (unlikely(given != prot) && p != MAP_FAILED) /* the recording has ended meanwhile */
			real()->mprotect(p, size, prot);
		guard_leave(&guard);
	}
	return p;
}

EXPORT void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
	__attribute__((alias("mmap")));

/* What is remembered there goes before the call: afterwards another thread may have mapped something new. */
static uint64_t note_unmap(uintptr_t start, size_t size, struct drop *drop)
{
	uintptr_t end = page_up(start + size);
	unsigned cursor = 0, before = maps_count();
	struct mapping part;
	bool no_copies;

	if (!event_wanted())
		return 0;
	if (before && start == page_down(start)) {
		no_copies = anon_note(start, end, ST_MOMENT_UNMAP);
		if (before == 1 && maps_next(start, end, &cursor, &part))
			load_ended(part.end - part.start);
		if (relief_on(RELIEF_DROP))
			drop_look(drop, start, end, no_copies);
		maps_cut(start, end);
	}
	return EVENT(unmap, .addr = start, .size = size, .stack = stack_id());
}

static int unmap(void *addr, size_t size)
{
	return relief_any() && relief_concerns(addr, size) ? relief_munmap(addr, size)
	                                                   : real()->munmap(addr, size);
}

EXPORT int munmap(void *addr, size_t size)
{
	struct drop drop;
	struct guard guard;
	uint64_t seq;
	int r;

	drop.count = 0;
	if (!guard_enter(&guard))
		return unmap(addr, size);
	seq = note_unmap((uintptr_t)addr, size, &drop);
	guard_leave(&guard);
	r = unmap(addr, size);
	if (unlikely(drop.count && r == 0) && guard_enter(&guard)) {
		drop_unmapped(&drop);
		guard_leave(&guard);
	}
	if (unlikely(r && seq) && guard_enter(&guard)) {
		EVENT(revoke, .target = event_target(seq));
		guard_leave(&guard);
	}
	return r;
}

/* Remembered mappings on their way to another place; more than so many at once are forgotten. */
struct move {
	struct mapping parts[8];
	unsigned count;
};

static void move_take(struct move *move, uintptr_t old, size_t old_size)
{
	uintptr_t end = page_up(old + old_size);
	unsigned cursor = 0;

	move->count = 0;
	if (!maps_count())
		return;
	while (move->count < 8 && maps_next(old, end, &cursor, &move->parts[move->count]))
		move->count++;
	maps_cut(old, end);
}

/* Puts them down at the new place (the old one when the call failed); the last one takes up what was added. */
static void move_put(struct move *move, uintptr_t old, size_t old_size, uintptr_t new, size_t new_size)
{
	uintptr_t end = page_up(old + old_size), limit = page_up(new + new_size);

	maps_cut(new, limit);
	for (unsigned i = 0; i < move->count; i++) {
		struct mapping *part = &move->parts[i];
		bool last = part->end == end;

		part->start += new - old;
		part->end += new - old;
		if (last || part->end > limit)
			part->end = limit;
		if (part->start < part->end)
			maps_add(part);
	}
}

static void note_remap(struct move *move, void *old, size_t old_size, void *new, size_t new_size, int flags)
{
	bool failed = new == MAP_FAILED;

	if (move->count)
		move_put(move, (uintptr_t)old, old_size, (uintptr_t)(failed ? old : new),
		         failed ? old_size : new_size);
	if (!failed)
		EVENT(remap, .addr = (uintptr_t)old, .size = old_size, .new_addr = (uintptr_t) new,
		      .new_size = new_size, .flags = (unsigned)flags, .stack = stack_id());
}

EXPORT void *mremap(void *old, size_t old_size, size_t new_size, int flags, ...)
{
	struct guard guard;
	struct move move;
	void *target = NULL, *new;
	va_list more;

	if (flags & MREMAP_FIXED) {
		va_start(more, flags);
		target = va_arg(more, void *);
		va_end(more);
		note_loss(target, new_size);
	}
	if (relief_any() && relief_concerns(old, old_size))
		relief_leave(old, old_size);
	note_loss(old, old_size);
	move_take(&move, (uintptr_t)old, old_size);
	new = real()->mremap(old, old_size, new_size, flags, target);
	if (relief_any() && new != MAP_FAILED && relief_concerns(new, new_size))
		relief_stale((uintptr_t) new, new_size); /* of what lay at the target */
	if (guard_enter(&guard)) {
		if (event_wanted())
			note_remap(&move, old, old_size, new, new_size, flags);
		guard_leave(&guard);
	}
	return new;
}

static int protect(void *addr, size_t size, int prot)
{
	if (relief_any() && relief_concerns(addr, size))
		return relief_mprotect(addr, size, prot);
	return real()->mprotect(addr, size, prot);
}

EXPORT int mprotect(void *addr, size_t size, int prot)
{
	int r = protect(addr, size, prot);
	uintptr_t start = (uintptr_t)addr;
	struct guard guard;

	if (r == 0 && guard_enter(&guard)) {
		if (maps_count() && (prot & PROT_WRITE))
			maps_writable(start, page_up(start + size));
		EVENT(protect, .addr = start, .size = size, .prot = (unsigned)prot);
		guard_leave(&guard);
	}
	return r;
}
