/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency, what realloc() carries along. It is recorded as a release before the call and an allocation after it, by one
 * thread, with no event of that thread in between. A release may as well be free(): only the thread's next event tells.
 *
 * So what a released block held waits for that event at an address that no program has. There it counts nowhere: in
 * between it is neither staging nor memory of the heap, and in no peak twice. For replay the block is gone at once, since
 * its old address may be given to another thread before the allocation is noted.
 *
 * Invariant: of a thread at most one block waits, from its release to the thread's next event. Of more threads than
 * there is room for some are forgotten: what those blocks held is then unknown, as after free().
 */
#include <analyzer/reader_order.h>
#include <analyzer/residency_parts.h>

/* Blocks are smaller than that: see replay. */
static uint64_t carried_at(const struct residency *residency, const struct carried *carried)
{
	return CARRIED_FROM + ((uint64_t)(carried - residency->carried) << 48);
}

static struct carried *carried_of(struct residency *residency, uint32_t thread)
{
	for (int i = 0; i < CARRIED_MAX; i++)
		if (residency->carried[i].bytes && residency->carried[i].thread == thread)
			return &residency->carried[i];
	return NULL;
}

static void carried_drop(struct residency *residency, struct carried *carried)
{
	uint64_t lo = carried_at(residency, carried), hi = lo + carried->bytes;

	content_gone(residency, lo, hi);
	staging_forget(residency, lo, hi);
	carried->bytes = 0;
	residency->carried_count--;
}

static struct carried *carried_take(struct residency *residency)
{
	struct carried *carried;

	for (int i = 0; i < CARRIED_MAX; i++)
		if (!residency->carried[i].bytes)
			return &residency->carried[i];
	carried = &residency->carried[residency->carried_turn++ % CARRIED_MAX];
	carried_drop(residency, carried);
	return carried;
}

static bool is_second_half(const struct st_record *record)
{
	return record->kind == ST_KIND_alloc && ((const struct st_ev_alloc *)record)->how == ST_HOST_REALLOC;
}

void carry_over(struct residency *residency, const struct st_record *record)
{
	struct carried *carried = carried_of(residency, record->thread);

	if (carried && kind_is_event(record->kind) && !is_second_half(record))
		carried_drop(residency, carried);
}

/* The block that begins there. One that reaches to where others wait is damage, and carries nothing. */
static bool block_at(const struct residency *residency, uint64_t address, struct span *ret_block)
{
	return livemap_find(&residency->replay.host, address, ret_block) && ret_block->lo == address &&
	       ret_block->hi <= CARRIED_FROM;
}

void carry_free(struct residency *residency, const struct st_ev_free *record)
{
	struct carried *carried;
	struct span block;
	bool source;

	if (!block_at(residency, record->addr, &block) || replay_is_revoked(&residency->replay, &record->r))
		return;
	source = livemap_touches(&residency->held.sources, block.lo, block.hi);
	if (!source && !livemap_touches(&residency->content, block.lo, block.hi) &&
	    !livemap_touches(&residency->staged, block.lo, block.hi))
		return;
	carried = carried_take(residency);
	*carried = (struct carried){record->r.thread, source, block.hi - block.lo};
	residency->carried_count++;
	content_carry(residency, block.lo, block.hi, carried_at(residency, carried));
	staging_carry(residency, block.lo, block.hi, carried_at(residency, carried));
}

void carry_alloc(struct residency *residency, const struct st_ev_alloc *record)
{
	struct carried *carried = carried_of(residency, record->r.thread);
	struct span block;

	if (!carried) /* any other allocation has ended its wait */
		return;
	if (block_at(residency, record->addr, &block)) {
		uint64_t lo = carried_at(residency, carried),
			 bytes = bytes_min(carried->bytes, block.hi - block.lo);

		/* Whatever seemed to be there has been copied over. */
		content_gone(residency, block.lo, block.lo + bytes);
		staging_gone(residency, block.lo, block.lo + bytes);
		block_waits_no_more(residency, block.lo, block.lo + bytes);
		content_carry(residency, lo, lo + bytes, block.lo);
		staging_carry(residency, lo, lo + bytes, block.lo);
		if (carried->source)
			held_source(residency, block.lo, COPY_HOST);
	}
	carried_drop(residency, carried);
}
