/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency, what only a what-if asks: which anonymous pages the program wrote itself, which files are done with,
 * what weights lie in the heap, and which buffers they go through.
 */
#include <analyzer/residency_parts.h>

#define SOURCE_PINNED UINT64_C(1)

enum judged { JUDGED_UNDER_WAY, JUDGED_DOUBT };

static uint64_t size_class(uint64_t size)
{
	uint64_t slot = 1;

	while (slot < size && slot < UINT64_C(1) << 50)
		slot *= 2;
	return size ? slot : 0;
}

void held_mapped_copy(struct residency *residency, uint64_t size)
{
	residency->held.slots |= size_class(size);
	residency->held.largest = bytes_max(residency->held.largest, size);
}

static bool stack_known(const struct source_stacks *stacks, uint64_t stack)
{
	for (unsigned i = 0; stacks && i < stacks->count; i++)
		if (stacks->stacks[i] == stack)
			return true;
	return false;
}

/* Pinned blocks of the loader are its own before the first copy out of them: who asks for them is known by then. */
void held_pinned(struct residency *residency, const struct st_ev_pinned_alloc *record)
{
	if (!record->result && stack_known(residency->source_stacks, record->stack))
		held_source(residency, record->addr, COPY_PINNED);
}

static void stack_note(struct residency *residency, uint64_t stack)
{
	struct source_stacks *stacks = &residency->held.stacks;

	if (stack && stacks->count < SOURCE_STACKS && !stack_known(stacks, stack))
		stacks->stacks[stacks->count++] = (uint32_t)stack;
}

static uint64_t *source_sum(struct held *held, const struct span *piece)
{
	return piece->a & SOURCE_PINNED ? &held->pinned_sources : &held->heap_sources;
}

void held_source(struct residency *residency, uint64_t address, enum copy_source source)
{
	struct held *held = &residency->held;
	const struct livemap *map =
		source == COPY_PINNED ? &residency->replay.pinned : &residency->replay.host;
	struct span block;
	int error;

	if ((source != COPY_PINNED && source != COPY_HOST) ||
	    livemap_touches(&held->sources, address, address + 1) || !livemap_find(map, address, &block))
		return;
	if (source == COPY_PINNED)
		stack_note(residency, block.a);
	block.a = source == COPY_PINNED ? SOURCE_PINNED : 0;
	block.b = 0;
	error = livemap_insert_alone(&held->sources, &block);
	residency_note(residency, error);
	if (!error)
		*source_sum(held, &block) += block.hi - block.lo;
}

static void source_removed(void *context, const struct span *piece)
{
	struct residency *residency = context;

	*source_sum(&residency->held, piece) -= piece->hi - piece->lo;
}

void held_gone(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct livemap *sources = &residency->held.sources;

	if (livemap_touches(sources, lo, hi))
		residency_note(residency, livemap_cut(sources, lo, hi, source_removed, residency));
}

static void written_removed(void *context, const struct span *piece)
{
	struct residency *residency = context;

	residency->held.doubt -= piece->a ? piece->hi - piece->lo : 0;
}

void held_unwritten(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct livemap *written = &residency->held.written;

	if (livemap_touches(written, lo, hi))
		residency_note(residency, livemap_cut(written, lo, hi, written_removed, residency));
}

/* Pages found for the first time, all of which an earlier pass judged alike. */
static void written_insert(struct residency *residency, uint64_t lo, uint64_t hi, bool doubt)
{
	struct span piece = {lo, hi, doubt, 0};
	int error = livemap_insert(&residency->held.written, &piece);

	residency_note(residency, error);
	if (!error && doubt)
		residency->held.doubt += hi - lo;
}

/* The same by what an earlier pass knew of them: found when their copy was under way, or perhaps so. */
static void written_judge(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct span known;

	while (lo < hi && !residency->replay.error) {
		bool any = residency->judged && livemap_next(residency->judged, lo, &known) && known.lo < hi;
		uint64_t end = any ? bytes_max(lo, known.lo) : hi;

		if (lo < end)
			written_insert(residency, lo, end, false);
		lo = end;
		if (!any)
			break;
		end = bytes_min(hi, known.hi);
		if (lo < end && known.a == JUDGED_DOUBT)
			written_insert(residency, lo, end, true);
		lo = bytes_max(lo, end);
	}
}

/* Only what is not there yet. */
static void written_add(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct span there;

	while (lo < hi && !residency->replay.error) {
		bool any = livemap_next(&residency->held.written, lo, &there) && there.lo < hi;
		uint64_t end = any ? bytes_max(there.lo, lo) : hi;

		written_judge(residency, lo, end);
		lo = any ? there.hi : hi;
	}
}

/* An anonymous page that no copy has touched was written by the program. */
void held_scanned(struct residency *residency, const struct weight *weight, const struct span *found)
{
	uint64_t mask = residency->replay.page_size - 1, lo = found->lo;
	struct span copied;

	while (lo < found->hi && !residency->replay.error) {
		bool any = livemap_next(&weight->loaded, lo + found->b, &copied) &&
		           copied.lo < found->hi + found->b;
		uint64_t end = any ? bytes_max(lo, (copied.lo - found->b) & ~mask) : found->hi;

		written_add(residency, lo, end);
		lo = any ? bytes_max(end, (copied.hi - found->b + mask) & ~mask) : end;
	}
}

/*
 * What a scan found was no write of the program's if this copy was under way by then; where nobody knows when it began,
 * it may have been one. The next pass knows of it from the start.
 */
void held_copied(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct held *held = &residency->held;
	bool known = held->began != ST_UNKNOWN;
	struct span there;

	if (residency->judged || (known && held->began > held->scanned))
		return;
	while (lo < hi && !residency->replay.error && livemap_next(&held->written, lo, &there) &&
	       there.lo < hi) {
		struct span piece = {bytes_max(lo, there.lo), bytes_min(hi, there.hi),
		                     known ? JUDGED_UNDER_WAY : JUDGED_DOUBT, 0};

		held_unwritten(residency, piece.lo, piece.hi);
		residency_note(residency, livemap_cut(&held->judged, piece.lo, piece.hi, NULL, NULL));
		residency_note(residency, livemap_insert(&held->judged, &piece));
		lo = piece.hi;
	}
}

uint64_t held_read_word(const struct residency *residency, uint64_t address)
{
	struct span where;

	if (address >= CARRIED_FROM)
		return 0;
	switch (replay_region(&residency->replay, address, &where)) {
	case REGION_HOST:
		return where.a & HOST_SINCE
		               ? CONTENT_HEAP
		               : CONTENT_HEAP | CONTENT_OLD | (where.a & UINT32_MAX) << CONTENT_STACK;
	case REGION_NONE:
	case REGION_MAPPING:
		return CONTENT_LOOSE;
	case REGION_PINNED:
	case REGION_DEVICE:
		break;
	}
	return 0;
}

void held_content(struct residency *residency, const struct span *piece, int sign)
{
	uint64_t bytes = (uint64_t)sign * (piece->hi - piece->lo);

	if (piece->a & CONTENT_OLD) {
		residency->held.heap_old += bytes;
		if (residency->host_only)
			sum_move(residency, LOAD_PEAK_HOST, piece->a >> CONTENT_STACK, (int64_t)bytes, 0);
	}
	residency->held.heap += piece->a & CONTENT_HEAP ? bytes : 0;
	residency->held.loose += piece->a & CONTENT_LOOSE ? bytes : 0;
}

void held_touched(struct residency *residency, uint32_t index, uint64_t time)
{
	if (index < residency->done_count && time >= residency->done_times[index] &&
	    !residency->weights[index].done)
		residency->held.leaving = index + 1;
}

void held_leave(struct residency *residency)
{
	struct held *held = &residency->held;
	struct weight *weight = &residency->weights[held->leaving - 1];

	held->leaving = 0;
	weight->done = true;
	held->finished += weight->kept.now.anon;
	held->finished_possible += weight->kept.now.anon_possible;
}
