/* SPDX-License-Identifier: Apache-2.0 */
/* Residency, what the peaks of a load consist of: who asked for it, and what each file and tensor had of it then. */
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>

void sum_move(struct residency *residency, enum load_peak peak, uint64_t stack, int64_t bytes, int64_t more)
{
	if (!residency->survey)
		residency_note(residency,
		               stack_sums_move(&residency->sums[peak], (uint32_t)stack, bytes, more));
}

void block_move(struct residency *residency, enum region region, const struct span *piece, int sign)
{
	int64_t bytes = sign * (int64_t)(piece->hi - piece->lo);

	if (region == REGION_PINNED)
		sum_move(residency, LOAD_PEAK_STAGING, piece->a, bytes, 0);
	else if (region == REGION_HOST && piece->a & HOST_SINCE)
		sum_move(residency, LOAD_PEAK_HOST, piece->a, bytes, 0);
}

static void awaited_removed(void *context, const struct span *piece)
{
	sum_move(context, LOAD_PEAK_HOST, piece->a, (int64_t)(piece->hi - piece->lo), 0);
}

void block_waits_no_more(struct residency *residency, uint64_t lo, uint64_t hi)
{
	if (livemap_touches(&residency->awaited, lo, hi))
		residency_note(residency,
		               livemap_cut(&residency->awaited, lo, hi, awaited_removed, residency));
}

/*
 * Where in host blocks weights are read, of all blocks in one map: the block's serial number, then the place in it in units
 * of 64 bytes. Whoever reads into a block does so from beginning to end, in any order: pieces that touch become one.
 */
#define FILL_UNIT   6
#define FILL_PLACES ((UINT64_C(1) << HOST_SERIAL) - 1)

static uint64_t fill_key(const struct span *block, uint64_t address)
{
	return (block->a >> HOST_SERIAL) << HOST_SERIAL |
	       bytes_min(FILL_PLACES, (address - block->lo) >> FILL_UNIT);
}

static uint64_t fill_address(const struct span *block, uint64_t key)
{
	return bytes_min(block->hi, block->lo + ((key & FILL_PLACES) << FILL_UNIT));
}

/* What of the block will be read into is no other memory until then. */
static void block_await(struct residency *residency, const struct span *block)
{
	uint64_t key = fill_key(block, block->lo);
	struct span fill;

	if (residency->host_only || !residency->known_fills)
		return;
	for (; livemap_next(residency->known_fills, key, &fill) && (fill.lo ^ key) <= FILL_PLACES;
	     key = fill.hi) {
		struct span piece = {fill_address(block, fill.lo), fill_address(block, fill.hi),
		                     (uint32_t)block->a, 0};
		int error = livemap_insert(&residency->awaited, &piece);

		residency_note(residency, error);
		if (!error)
			sum_move(residency, LOAD_PEAK_HOST, piece.a, -(int64_t)(piece.hi - piece.lo), 0);
	}
}

/* In the survey: for the pass that measures. */
static void fill_note(struct residency *residency, const struct span *block, uint64_t lo, uint64_t hi)
{
	uint64_t unit = UINT64_C(1) << FILL_UNIT;
	struct span fill = {.lo = fill_key(block, lo),
	                    .hi = fill_key(block, bytes_min(hi, block->hi) + unit - 1)};
	struct span there;

	/* Most buffers are filled over and over again. */
	if (livemap_find(&residency->fills, fill.lo, &there) && there.hi >= fill.hi)
		return;
	residency_note(residency, livemap_cut(&residency->fills, fill.lo, fill.hi, NULL, NULL));
	residency_note(residency, livemap_insert(&residency->fills, &fill));
}

void block_filled(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct span block;

	if (!residency->survey)
		block_waits_no_more(residency, lo, hi);
	else if (replay_region(&residency->replay, lo, &block) == REGION_HOST)
		fill_note(residency, &block, lo, hi);
}

void block_asked(struct residency *residency, enum region region, const struct livemap *map, uint64_t address)
{
	struct span block;

	if (!livemap_find(map, address, &block) || block.lo != address)
		return;
	block_move(residency, region, &block, 1);
	if (region == REGION_HOST)
		block_await(residency, &block);
}

void mapped_move(struct residency *residency, struct weight *weight, const struct mapping *mapping,
                 int64_t bytes)
{
	if (weight->mapped_epoch != residency->mapped_epoch) {
		weight->mapped_epoch = residency->mapped_epoch;
		weight->mapped_then = weight->mapped;
	}
	weight->mapped =
		bytes < 0 ? bytes_sub(weight->mapped, -(uint64_t)bytes) : weight->mapped + (uint64_t)bytes;
	weight->mapped_peak = bytes_max(weight->mapped_peak, weight->mapped);
	sum_move(residency, LOAD_PEAK_MAPPED, mapping->stack, bytes, 0);
}

void residency_keep_peak(struct residency *residency, enum load_peak peak)
{
	stack_sums_keep(&residency->sums[peak]);
	switch (peak) {
	case LOAD_PEAK_DEVICE:
		residency_keep(residency, POINT_DEVICE_PEAK);
		break;
	case LOAD_PEAK_STAGING:
		residency->staging_epoch++;
		break;
	case LOAD_PEAK_ANON:
		residency->anon_epoch++;
		break;
	case LOAD_PEAK_MAPPED:
		residency->mapped_epoch++;
		break;
	case LOAD_PEAK_HOST:
	case LOAD_PEAK_COUNT:
		break;
	}
}

uint64_t kept_staging(const struct residency *residency, const struct kept *kept)
{
	return kept->staging_epoch == residency->staging_epoch ? kept->staging : kept->now.staging;
}

struct range kept_anon(const struct residency *residency, const struct kept *kept)
{
	if (kept->anon_epoch == residency->anon_epoch)
		return (struct range){kept->anon, bytes_add(kept->anon, kept->anon_possible)};
	return (struct range){kept->now.anon, bytes_add(kept->now.anon, kept->now.anon_possible)};
}

uint64_t kept_mapped(const struct residency *residency, const struct weight *weight)
{
	return weight->mapped_epoch == residency->mapped_epoch ? weight->mapped_then : weight->mapped;
}

struct range residency_host(const struct residency *residency)
{
	uint64_t staged = residency->staged_since + residency->awaited.bytes;
	uint64_t blocks = bytes_sub(residency->replay.host_since, staged);

	if (residency->host_only)
		blocks = bytes_add(blocks, residency->held.heap_old);
	return (struct range){blocks, bytes_add(blocks, residency->replay.arenas)};
}

/* --- device bytes by stack ------------------------------------------------------------------------ */

static struct holding *holding_slot(struct holding *holdings, size_t room, uint32_t stack)
{
	size_t i = (size_t)(stack * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);

	while (holdings[i].stack != stack && holdings[i].kept.epoch[0] != UINT32_MAX)
		i = (i + 1) & (room - 1);
	return &holdings[i];
}

/* A free slot has an epoch that no point reaches. */
static int holdings_grow(struct residency *residency)
{
	size_t room = residency->holding_room ? residency->holding_room * 2 : 64;
	struct holding *holdings = calloc(room, sizeof(*holdings));

	if (!holdings)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++)
		holdings[i] = (struct holding){.stack = UINT32_MAX, .kept.epoch[0] = UINT32_MAX};
	for (size_t i = 0; i < residency->holding_room; i++)
		if (residency->holdings[i].kept.epoch[0] != UINT32_MAX)
			*holding_slot(holdings, room, residency->holdings[i].stack) = residency->holdings[i];
	free(residency->holdings);
	residency->holdings = holdings;
	residency->holding_room = room;
	return 0;
}

void holding_move(struct residency *residency, uint32_t stack, int64_t bytes)
{
	struct holding *holding;
	int error = 0;

	if (residency->survey)
		return;
	if (residency->holding_count * 4 >= residency->holding_room * 3)
		error = holdings_grow(residency);
	residency_note(residency, error);
	if (error)
		return;
	holding = holding_slot(residency->holdings, residency->holding_room, stack);
	if (holding->kept.epoch[0] == UINT32_MAX) {
		*holding = (struct holding){.stack = stack};
		residency->holding_count++;
	}
	kept_change(residency, &holding->kept)->device += (uint64_t)bytes;
}
