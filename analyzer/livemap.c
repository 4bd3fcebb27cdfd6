/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two levels: leaves of sorted ranges, and above them one sorted array of the leaves. A search is two
 * binary searches over addresses that lie side by side; an insertion moves half a leaf and, once in 32, the
 * upper array. With a hundred thousand ranges that array still fits a second-level cache.
 */
#include <analyzer/livemap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAF 32u

struct livemap_leaf {
	uint32_t count;
	uint64_t lo[LEAF], hi[LEAF], a[LEAF], b[LEAF];
};

/* A place: slot `slot` of leaf `leaf`. Past the last range: leaf == leaf_count. */
struct place {
	size_t leaf;
	uint32_t slot;
};

void livemap_release(struct livemap *map)
{
	for (size_t i = 0; i < map->leaf_count; i++)
		free(map->leaves[i]);
	free(map->leaves);
	free(map->first);
	free(map->spare);
	*map = (struct livemap){0};
}

/* How many of `count` ascending values are <= address. No branch depends on the values. */
static size_t count_upto(const uint64_t *value, size_t count, uint64_t address)
{
	const uint64_t *base = value;

	if (!count)
		return 0;
	while (count > 1) {
		size_t half = count / 2;

		base = base[half] <= address ? base + half : base;
		count -= half;
	}
	return (size_t)(base - value) + (*base <= address);
}

/* Where a range that begins at `address` stands, or would stand, and whether one does. */
static struct place place_from(const struct livemap *map, uint64_t address)
{
	size_t upto = count_upto(map->first, map->leaf_count, address);
	struct place place = {upto ? upto - 1 : 0, 0};

	if (upto)
		place.slot = (uint32_t)count_upto(map->leaves[place.leaf]->lo, map->leaves[place.leaf]->count,
		                                  address);
	return place;
}

/* The first range that ends above address. */
static struct place place_ending_above(const struct livemap *map, uint64_t address)
{
	struct place place = place_from(map, address);

	if (place.leaf == map->leaf_count)
		return place;
	if (place.slot && map->leaves[place.leaf]->hi[place.slot - 1] > address)
		place.slot--;
	if (place.slot == map->leaves[place.leaf]->count)
		place = (struct place){place.leaf + 1, 0};
	return place;
}

static bool place_get(const struct livemap *map, struct place place, struct span *ret_span)
{
	const struct livemap_leaf *leaf;

	if (place.leaf >= map->leaf_count)
		return false;
	leaf = map->leaves[place.leaf];
	*ret_span = (struct span){leaf->lo[place.slot], leaf->hi[place.slot], leaf->a[place.slot],
	                          leaf->b[place.slot]};
	return true;
}

bool livemap_next(const struct livemap *map, uint64_t address, struct span *ret_span)
{
	return map->count && place_get(map, place_ending_above(map, address), ret_span);
}

bool livemap_find(const struct livemap *map, uint64_t address, struct span *ret_span)
{
	struct span span;

	if (!livemap_next(map, address, &span) || span.lo > address)
		return false;
	*ret_span = span;
	return true;
}

bool livemap_touches(const struct livemap *map, uint64_t lo, uint64_t hi)
{
	struct span span;

	return livemap_next(map, lo, &span) && span.lo < hi;
}

static int leaves_grow(struct livemap *map)
{
	size_t room = map->leaf_room ? map->leaf_room * 2 : 16;
	void *leaves, *first;

	if (map->leaf_count < map->leaf_room)
		return 0;
	leaves = realloc(map->leaves, room * sizeof(*map->leaves));
	if (!leaves)
		return -ENOMEM;
	map->leaves = leaves;
	first = realloc(map->first, room * sizeof(*map->first));
	if (!first)
		return -ENOMEM;
	map->first = first;
	map->leaf_room = room;
	return 0;
}

/* A new, empty leaf at place `at` of the upper array; the caller fills it and sets first[at]. */
static int leaf_add(struct livemap *map, size_t at)
{
	struct livemap_leaf *leaf;
	size_t behind = map->leaf_count - at;
	int error = leaves_grow(map);

	if (error)
		return error;
	leaf = map->spare ? map->spare : malloc(sizeof(*leaf));
	if (!leaf)
		return -ENOMEM;
	map->spare = NULL;
	leaf->count = 0;
	memmove(map->leaves + at + 1, map->leaves + at, behind * sizeof(*map->leaves));
	memmove(map->first + at + 1, map->first + at, behind * sizeof(*map->first));
	map->leaves[at] = leaf;
	map->leaf_count++;
	return 0;
}

static void leaf_drop(struct livemap *map, size_t at)
{
	size_t behind = map->leaf_count - at - 1;

	if (map->spare)
		free(map->leaves[at]);
	else
		map->spare = map->leaves[at];
	memmove(map->leaves + at, map->leaves + at + 1, behind * sizeof(*map->leaves));
	memmove(map->first + at, map->first + at + 1, behind * sizeof(*map->first));
	map->leaf_count--;
}

/* Moves `count` ranges between (or within) leaves. */
static void slots_move(struct livemap_leaf *to, uint32_t at, struct livemap_leaf *from, uint32_t begin,
                       uint32_t count)
{
	size_t bytes = count * sizeof(uint64_t);

	memmove(to->lo + at, from->lo + begin, bytes);
	memmove(to->hi + at, from->hi + begin, bytes);
	memmove(to->a + at, from->a + begin, bytes);
	memmove(to->b + at, from->b + begin, bytes);
}

/* Halves a full leaf and corrects the place that the caller holds. */
static int leaf_split(struct livemap *map, struct place *place)
{
	struct livemap_leaf *left, *right;
	uint32_t keep = LEAF / 2;
	int error = leaf_add(map, place->leaf + 1);

	if (error)
		return error;
	/* Ascending insertion at the very end is the usual case: then the left leaf stays nearly full. */
	if (place->slot == LEAF && place->leaf + 2 == map->leaf_count)
		keep = LEAF - 1;
	left = map->leaves[place->leaf];
	right = map->leaves[place->leaf + 1];
	slots_move(right, 0, left, keep, LEAF - keep);
	right->count = LEAF - keep;
	left->count = keep;
	map->first[place->leaf + 1] = right->lo[0];
	if (place->slot > keep)
		*place = (struct place){place->leaf + 1, place->slot - keep};
	return 0;
}

static int span_put(struct livemap *map, struct place place, const struct span *span)
{
	struct livemap_leaf *leaf;
	int error = 0;

	if (place.leaf == map->leaf_count)
		error = leaf_add(map, place.leaf);
	else if (map->leaves[place.leaf]->count == LEAF)
		error = leaf_split(map, &place);
	if (error)
		return error;
	leaf = map->leaves[place.leaf];
	slots_move(leaf, place.slot + 1, leaf, place.slot, leaf->count - place.slot);
	leaf->lo[place.slot] = span->lo;
	leaf->hi[place.slot] = span->hi;
	leaf->a[place.slot] = span->a;
	leaf->b[place.slot] = span->b;
	leaf->count++;
	map->first[place.leaf] = leaf->lo[0];
	map->count++;
	map->bytes += span->hi - span->lo;
	return 0;
}

/* Joins a thinned leaf with the one behind it, so that leaves stay about a quarter full at least. */
static void leaf_join(struct livemap *map, size_t at)
{
	struct livemap_leaf *left, *right;

	if (at + 1 >= map->leaf_count)
		return;
	left = map->leaves[at];
	right = map->leaves[at + 1];
	if (left->count + right->count > LEAF * 3 / 4)
		return;
	slots_move(left, left->count, right, 0, right->count);
	left->count += right->count;
	leaf_drop(map, at + 1);
}

static void span_drop(struct livemap *map, struct place place)
{
	struct livemap_leaf *leaf = map->leaves[place.leaf];

	map->count--;
	map->bytes -= leaf->hi[place.slot] - leaf->lo[place.slot];
	leaf->count--;
	slots_move(leaf, place.slot, leaf, place.slot + 1, leaf->count - place.slot);
	if (!leaf->count) {
		leaf_drop(map, place.leaf);
		return;
	}
	map->first[place.leaf] = leaf->lo[0];
	if (leaf->count < LEAF / 4)
		leaf_join(map, place.leaf);
}

/* Is [lo, hi) free, given the place of its first byte? The range before it is the slot before. */
static bool place_is_free(const struct livemap *map, struct place place, const struct span *span)
{
	const struct livemap_leaf *leaf;

	if (place.leaf >= map->leaf_count)
		return true;
	leaf = map->leaves[place.leaf];
	if (place.slot && leaf->hi[place.slot - 1] > span->lo)
		return false;
	if (place.slot < leaf->count)
		return leaf->lo[place.slot] >= span->hi;
	return place.leaf + 1 >= map->leaf_count || map->first[place.leaf + 1] >= span->hi;
}

int livemap_insert_alone(struct livemap *map, const struct span *span)
{
	struct place place = place_from(map, span->lo);

	if (span->lo >= span->hi)
		return -EINVAL;
	if (!place_is_free(map, place, span))
		return -EEXIST;
	return span_put(map, place, span);
}

static bool span_continues(const struct span *before, const struct span *span)
{
	return before->hi == span->lo && before->a == span->a && before->b == span->b;
}

/* Takes neighbours that continue `span`, which belongs at `place`, out of the map and into it. True: any. */
static bool span_absorb(struct livemap *map, struct place place, struct span *span)
{
	struct place before = {place.leaf, place.slot - 1}, behind = place;
	uint64_t lo = span->lo, hi = span->hi;
	struct span other;

	if (place.leaf < map->leaf_count && place.slot == map->leaves[place.leaf]->count)
		behind = (struct place){place.leaf + 1, 0};
	/* The one behind first: without it the place of the other is still the same. */
	if (place_get(map, behind, &other) && span_continues(span, &other)) {
		span->hi = other.hi;
		span_drop(map, behind);
	}
	if (place.slot && place_get(map, before, &other) && span_continues(&other, span)) {
		span->lo = other.lo;
		span_drop(map, before);
	}
	return span->lo != lo || span->hi != hi;
}

int livemap_insert(struct livemap *map, const struct span *span)
{
	struct place place = place_from(map, span->lo);
	struct span joined = *span;

	if (span->lo >= span->hi)
		return -EINVAL;
	if (!place_is_free(map, place, span))
		return -EEXIST;
	if (span_absorb(map, place, &joined))
		place = place_from(map, joined.lo);
	return span_put(map, place, &joined);
}

int livemap_remove(struct livemap *map, uint64_t address, struct span *ret_span)
{
	struct place place = place_from(map, address);

	if (place.leaf >= map->leaf_count || !place.slot)
		return -ENOENT;
	place.slot--;
	if (map->leaves[place.leaf]->lo[place.slot] != address)
		return -ENOENT;
	place_get(map, place, ret_span);
	span_drop(map, place);
	return 0;
}

/* Takes [piece->lo, piece->hi), which lies in the one range at `place`, out of it. */
static int span_cut(struct livemap *map, struct place place, const struct span *piece)
{
	struct livemap_leaf *leaf = map->leaves[place.leaf];
	struct span whole, right;
	int error = 0;

	place_get(map, place, &whole);
	if (piece->lo == whole.lo && piece->hi == whole.hi) {
		span_drop(map, place);
		return 0;
	}
	if (piece->lo == whole.lo) {
		leaf->lo[place.slot] = piece->hi;
		map->first[place.leaf] = leaf->lo[0];
		map->bytes -= piece->hi - piece->lo;
		return 0;
	}
	leaf->hi[place.slot] = piece->lo;
	map->bytes -= whole.hi - piece->lo;
	if (piece->hi == whole.hi)
		return 0;
	right = (struct span){piece->hi, whole.hi, whole.a, whole.b};
	error = span_put(map, (struct place){place.leaf, place.slot + 1}, &right);
	if (error) { /* as if nothing had been cut */
		leaf->hi[place.slot] = whole.hi;
		map->bytes += whole.hi - piece->lo;
	}
	return error;
}

int livemap_cut(struct livemap *map, uint64_t lo, uint64_t hi, livemap_visit *visit, void *context)
{
	while (map->count && lo < hi) {
		struct place place = place_ending_above(map, lo);
		struct span piece;
		int error;

		if (!place_get(map, place, &piece) || piece.lo >= hi)
			break;
		piece.lo = piece.lo < lo ? lo : piece.lo;
		piece.hi = piece.hi > hi ? hi : piece.hi;
		error = span_cut(map, place, &piece);
		if (error)
			return error;
		if (visit)
			visit(context, &piece);
		lo = piece.hi;
	}
	return 0;
}

void livemap_each(const struct livemap *map, uint64_t lo, uint64_t hi, livemap_visit *visit, void *context)
{
	struct span piece;

	while (lo < hi && livemap_next(map, lo, &piece) && piece.lo < hi) {
		piece.lo = piece.lo < lo ? lo : piece.lo;
		piece.hi = piece.hi > hi ? hi : piece.hi;
		visit(context, &piece);
		lo = piece.hi;
	}
}
