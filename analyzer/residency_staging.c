/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency, staging: buffers that hold weights on their way to the device, from the read that fills them, or from
 * the copy out of them where nobody saw them filled, until the copy is known to be over.
 */
#include <analyzer/residency_parts.h>
#include <string.h>

#define STAGED_PINNED (UINT64_C(1) << 32)
#define STAGED_SINCE  (UINT64_C(1) << 33) /* in a host block that was asked for since the load began */
#define STAGED_WAITS  (UINT64_C(1) << 34) /* carried by realloc(), and not there yet */
#define STAGED_STACK  35                  /* the stack that asked for the block follows, 0: unknown */
#define PENDING_MAX   4096u

/* Staging is who asked for its block; a block of the load is less by it. Pinned blocks count as a whole. */
static void staged_sums(struct residency *residency, const struct span *piece, int64_t bytes)
{
	uint64_t stack = piece->a >> STAGED_STACK;

	if (piece->a & STAGED_PINNED)
		return;
	sum_move(residency, LOAD_PEAK_STAGING, stack, bytes, 0);
	if (!(piece->a & STAGED_SINCE))
		return;
	residency->staged_since += (uint64_t)bytes;
	sum_move(residency, LOAD_PEAK_HOST, stack, -bytes, 0);
}

static void staged_count(struct residency *residency, const struct span *piece, int sign)
{
	uint32_t file = (uint32_t)piece->a;
	uint64_t bytes = piece->hi - piece->lo;

	if (piece->a & STAGED_WAITS)
		return;
	staged_sums(residency, piece, sign * (int64_t)bytes);
	if (piece->a & STAGED_PINNED)
		residency->staging_pinned += (uint64_t)sign * bytes;
	if (file)
		amount_move(residency, file - 1, AMOUNT_STAGING, piece->lo + piece->b, piece->hi + piece->b,
		            sign);
	else
		kept_change(residency, &residency->total)->staging += (uint64_t)sign * bytes;
}

static void staged_removed(void *context, const struct span *piece)
{
	staged_count(context, piece, -1);
}

void staging_gone(struct residency *residency, uint64_t lo, uint64_t hi)
{
	if (livemap_touches(&residency->staged, lo, hi))
		residency_note(residency, livemap_cut(&residency->staged, lo, hi, staged_removed, residency));
}

/* File bytes (0: unknown ones) now lie in a buffer. */
void staging_fill(struct residency *residency, uint64_t lo, uint64_t hi, uint32_t file, uint64_t delta)
{
	struct span where, piece = {lo, hi, file, file ? delta : 0};
	enum region region;
	int error;

	if (residency->host_only || lo >= hi)
		return;
	region = replay_region(&residency->replay, lo, &where);
	if (lo >= CARRIED_FROM)
		piece.a |= STAGED_WAITS;
	else if (region == REGION_PINNED)
		piece.a |= STAGED_PINNED;
	else if (region == REGION_HOST)
		piece.a |= (where.a & HOST_SINCE ? STAGED_SINCE : 0) | (where.a & UINT32_MAX) << STAGED_STACK;
	staging_gone(residency, lo, hi);
	error = livemap_insert(&residency->staged, &piece);
	residency_note(residency, error);
	if (!error)
		staged_count(residency, &piece, 1);
}

static void pending_drop(struct residency *residency, size_t i)
{
	struct pending pending = residency->pending[i];
	struct span span;

	memmove(residency->pending + i, residency->pending + i + 1,
	        (--residency->pending_count - i) * sizeof(*residency->pending));
	staging_gone(residency, pending.lo, pending.hi);
	/* Pinned slots are filled again without a call that could be seen: what they held is not known any more. */
	if (livemap_find(&residency->replay.pinned, pending.lo, &span))
		content_gone(residency, pending.lo, pending.hi);
}

void staging_forget(struct residency *residency, uint64_t lo, uint64_t hi)
{
	for (size_t i = residency->pending_count; i-- > 0;)
		if (residency->pending[i].lo >= lo && residency->pending[i].lo < hi)
			pending_drop(residency, i);
	staging_gone(residency, lo, hi);
}

void staging_carry(struct residency *residency, uint64_t lo, uint64_t hi, uint64_t to)
{
	uint64_t shift = to - lo, next = lo;
	struct span piece;

	for (size_t i = 0; i < residency->pending_count; i++) {
		struct pending *pending = &residency->pending[i];

		if (pending->lo < lo || pending->lo >= hi)
			continue;
		pending->hi = bytes_min(hi, pending->hi) + shift;
		pending->lo += shift;
	}
	while (next < hi && livemap_next(&residency->staged, next, &piece) && piece.lo < hi) {
		piece.lo = bytes_max(next, piece.lo);
		piece.hi = next = bytes_min(hi, piece.hi);
		staging_gone(residency, piece.lo, piece.hi);
		staging_fill(residency, piece.lo + shift, piece.hi + shift, (uint32_t)piece.a,
		             piece.b - shift);
	}
}

/* [lo, hi) was the source of a copy: it is free again when that is over. */
void staging_copied(struct residency *residency, const struct st_ev_copy *record, uint64_t lo, uint64_t hi)
{
	struct pending *last = residency->pending + residency->pending_count;
	struct pending pending = {lo, hi, record->stream, !record->async};

	if (!livemap_touches(&residency->staged, lo, hi))
		return;
	if (residency->pending_count && last[-1].hi == lo && last[-1].stream == pending.stream &&
	    last[-1].over == pending.over) {
		last[-1].hi = hi;
		return;
	}
	if (residency->pending_count == PENDING_MAX)
		pending_drop(residency, 0);
	residency->pending[residency->pending_count++] = pending;
}

/* Synchronous copies are over once the next record comes: the instant of the copy itself still shows the buffer. */
void staging_over(struct residency *residency)
{
	for (size_t i = residency->pending_count; i-- > 0;)
		if (residency->pending[i].over)
			pending_drop(residency, i);
}

/* Events are not followed to their streams, and the default stream waits for all others. */
void staging_sync(struct residency *residency, const struct st_ev_sync *record)
{
	bool all = record->how != ST_SYNC_STREAM || !record->handle;

	if (record->how == ST_SYNC_WAIT)
		return;
	for (size_t i = residency->pending_count; i-- > 0;)
		if (all || residency->pending[i].stream == record->handle)
			pending_drop(residency, i);
}

/* A block that was there when the program was last looked at may not have been filled by then, but for what it held. */
void staging_note_filled(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct span block, held;

	if (replay_region(&residency->replay, lo, &block) != REGION_HOST ||
	    block.b == residency->replay.host_looks)
		return;
	hi = bytes_min(hi, block.hi);
	while (lo < hi) {
		bool any = livemap_next(&residency->content, lo, &held) && held.lo < hi;
		uint64_t end = any ? bytes_max(lo, held.lo) : hi;

		residency->filled += end - lo;
		lo = any ? held.hi : hi;
	}
}

void residency_looked(struct residency *residency)
{
	replay_host_looked(&residency->replay);
	residency->filled = 0;
}

uint64_t residency_fresh(const struct residency *residency)
{
	return bytes_add(residency->replay.host_fresh, residency->filled);
}
