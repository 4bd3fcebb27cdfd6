/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency, anonymous copies of weight pages. A scan gives them exactly. Between scans a copy straight out
 * of a private writable mapping predicts them, on a shared pool: the driver breaks copy-on-write for each page
 * that it takes. Anonymous pages of a mapping only become more while it lives, so the last scan of a
 * mapping, known from an earlier pass, tells how much of a prediction came true.
 */
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ANON_POSSIBLE (UINT64_C(1) << 32) /* predicted only */

static struct mapping *anon_mapping(const struct residency *residency, const struct span *piece)
{
	return &residency->replay.mappings[(uint32_t)piece->a];
}

static void anon_count(struct residency *residency, const struct span *piece, int sign)
{
	struct mapping *mapping = anon_mapping(residency, piece);
	bool possible = piece->a & ANON_POSSIBLE;
	uint64_t bytes = piece->hi - piece->lo;
	struct weight *weight = &residency->weights[mapping->weight];

	sum_move(residency, LOAD_PEAK_ANON, mapping->stack, possible ? 0 : sign * (int64_t)bytes,
	         possible ? sign * (int64_t)bytes : 0);
	amount_move(residency, mapping->weight, possible ? AMOUNT_ANON_POSSIBLE : AMOUNT_ANON,
	            piece->lo + piece->b, piece->hi + piece->b, sign);
	if (sign > 0)
		*(possible ? &residency->anon_possible_made : &residency->anon_made) += bytes;
	if (!possible)
		mapping->anon_counted =
			sign > 0 ? mapping->anon_counted + bytes : bytes_sub(mapping->anon_counted, bytes);
	if (weight->done)
		*(possible ? &residency->held.finished_possible : &residency->held.finished) +=
			(uint64_t)sign * bytes;
	weight->anon_peak =
		bytes_max(weight->anon_peak, weight->kept.now.anon + weight->kept.now.anon_possible);
}

static void anon_insert(struct residency *residency, const struct span *piece)
{
	int error = piece->lo < piece->hi ? livemap_insert(&residency->anon, piece) : 0;

	residency_note(residency, error);
	if (!error && piece->lo < piece->hi)
		anon_count(residency, piece, 1);
}

/* A prediction that a scan replaces was never made. */
static void anon_replaced(void *context, const struct span *piece)
{
	struct residency *residency = context;
	uint64_t *made = piece->a & ANON_POSSIBLE ? &residency->anon_possible_made : &residency->anon_made;

	anon_count(residency, piece, -1);
	*made -= piece->hi - piece->lo;
}

static void anon_removed(void *context, const struct span *piece)
{
	struct residency *residency = context;

	anon_count(residency, piece, -1);
	if (!(piece->a & ANON_POSSIBLE))
		anon_mapping(residency, piece)->anon_gone += piece->hi - piece->lo;
}

void breaks_gone(struct residency *residency, uint64_t lo, uint64_t hi)
{
	if (livemap_touches(&residency->anon, lo, hi))
		residency_note(residency, livemap_cut(&residency->anon, lo, hi, anon_removed, residency));
	held_unwritten(residency, lo, hi);
}

/* A new mapping: what the last scan of it will find, where an earlier pass saw one. */
void breaks_mapped(struct residency *residency, struct mapping *mapping)
{
	size_t lo = 0, hi = residency->cap_count;

	if (!residency->caps_known)
		return;
	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (residency->caps[middle].serial < mapping->serial)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo < residency->cap_count && residency->caps[lo].serial == mapping->serial)
		mapping->anon_final = residency->caps[lo].bytes;
}

/* How many of `bytes` predicted ones are known to have come true; *ret_possible: how many may have. */
static uint64_t anon_certain(const struct residency *residency, const struct mapping *mapping, uint64_t bytes,
                             uint64_t *ret_possible)
{
	*ret_possible = bytes;
	if (mapping->anon_final == UINT64_MAX || residency->projected)
		return 0;
	*ret_possible = 0;
	return bytes_min(bytes, bytes_sub(mapping->anon_final, mapping->anon_counted + mapping->anon_gone));
}

static void anon_predict_gap(struct residency *residency, const struct span *map, uint64_t lo, uint64_t hi)
{
	uint32_t slot = (uint32_t)((map->a >> 8) - 1);
	uint64_t possible,
		certain = anon_certain(residency, &residency->replay.mappings[slot], hi - lo, &possible);
	struct span sure = {lo, lo + certain, slot, map->b};
	struct span perhaps = {sure.hi, sure.hi + possible, slot | ANON_POSSIBLE, map->b};

	anon_insert(residency, &sure);
	anon_insert(residency, &perhaps);
}

/* [lo, hi), which lies in the piece `map` of a private writable mapping, was copied to the device. */
void breaks_predict(struct residency *residency, const struct span *map, uint64_t lo, uint64_t hi)
{
	uint64_t mask = residency->replay.page_size - 1;
	struct span span;

	if (residency->pool == ST_POOL_DISCRETE && !residency->projected)
		return;
	lo = bytes_max(lo & ~mask, map->lo);
	hi = bytes_min((hi + mask) & ~mask, map->hi);
	held_copied(residency, lo, hi);
	while (lo < hi && !residency->replay.error) {
		bool there = livemap_next(&residency->anon, lo, &span) && span.lo < hi;
		uint64_t gap = there ? span.lo : hi;

		if (gap > lo)
			anon_predict_gap(residency, map, lo, gap);
		lo = there ? bytes_max(span.hi, gap) : hi;
	}
}

/* The anonymous pages [lo, hi) that a scan found; there may be several mappings in its range. */
static void anon_found(struct residency *residency, uint32_t file, uint64_t lo, uint64_t hi)
{
	struct span map, piece;

	while (lo < hi && livemap_next(&residency->replay.maps, lo, &map) && map.lo < hi) {
		const struct mapping *mapping = replay_mapping(&residency->replay, &map);

		piece = (struct span){bytes_max(lo, map.lo), bytes_min(hi, map.hi), (map.a >> 8) - 1, map.b};
		lo = piece.hi;
		if (!mapping || (file != CATALOG_NONE && mapping->weight != file))
			continue;
		residency_note(residency,
		               livemap_cut(&residency->anon, piece.lo, piece.hi, anon_replaced, residency));
		anon_insert(residency, &piece);
		held_scanned(residency, &residency->weights[mapping->weight], &piece);
	}
}

/* For the next pass: what the scans of each mapping have found so far. */
static void cap_keep(struct residency *residency, struct mapping *mapping)
{
	uint64_t bytes = mapping->anon_counted + mapping->anon_gone;

	if (residency->caps_known)
		return;
	if (!mapping->cap) {
		if (residency->cap_count == residency->cap_room) {
			size_t room = residency->cap_room ? residency->cap_room * 2 : 16;
			void *caps = realloc(residency->caps, room * sizeof(*residency->caps));

			if (!caps) {
				residency_note(residency, -ENOMEM);
				return;
			}
			residency->caps = caps;
			residency->cap_room = room;
		}
		mapping->cap = (uint32_t)++residency->cap_count;
		residency->caps[mapping->cap - 1] = (struct anon_cap){mapping->serial, 0};
	}
	residency->caps[mapping->cap - 1].bytes = bytes_max(residency->caps[mapping->cap - 1].bytes, bytes);
}

static void caps_keep(struct residency *residency, uint64_t lo, uint64_t hi)
{
	struct span map;

	while (lo < hi && livemap_next(&residency->replay.maps, lo, &map) && map.lo < hi) {
		struct mapping *mapping = replay_mapping(&residency->replay, &map);

		if (mapping)
			cap_keep(residency, mapping);
		lo = map.hi;
	}
}

/*
 * Pairs of first and end address follow. Without pairs (a record written by hand) the bytes lie at the front.
 * A complete scan replaces what was thought of its range, a cut one only adds to it.
 */
void breaks_scan(struct residency *residency, const struct st_ev_anon *record)
{
	const uint64_t *pair = (const uint64_t *)(record + 1);
	size_t words = record->r.words - sizeof(*record) / sizeof(uint64_t);
	uint64_t lo = record->addr, hi = bytes_add(lo, record->size);
	uint32_t file = record->file ? catalog_weight(residency->catalog, record->file) : CATALOG_NONE;

	if (record->complete && !residency->projected)
		residency_note(residency, livemap_cut(&residency->anon, lo, hi, anon_replaced, residency));
	if (words < 2)
		anon_found(residency, file, lo, bytes_min(hi, bytes_add(lo, record->bytes)));
	for (size_t i = 0; i + 1 < words; i += 2)
		anon_found(residency, file, bytes_max(pair[i], lo), bytes_min(pair[i + 1], hi));
	residency->held.scanned = record->r.time;
	if (record->complete)
		caps_keep(residency, lo, hi);
}

struct anon_taking {
	struct residency *residency;
	struct anon_moved *moved;
	size_t room;
};

static void anon_took(void *context, const struct span *piece)
{
	struct anon_taking *taking = context;
	struct anon_moved *moved = taking->moved;

	anon_count(taking->residency, piece, -1);
	if (moved->count == taking->room) {
		size_t room = taking->room ? taking->room * 2 : 16;
		void *pieces = realloc(moved->pieces, room * sizeof(*moved->pieces));

		if (!pieces) {
			residency_note(taking->residency, -ENOMEM);
			return;
		}
		moved->pieces = pieces;
		taking->room = room;
	}
	moved->pieces[moved->count++] = *piece;
}

void breaks_take(struct residency *residency, uint64_t lo, uint64_t hi, struct anon_moved *ret_moved)
{
	struct anon_taking taking = {residency, ret_moved, 0};

	*ret_moved = (struct anon_moved){0};
	if (livemap_touches(&residency->anon, lo, hi))
		residency_note(residency, livemap_cut(&residency->anon, lo, hi, anon_took, &taking));
}

void breaks_put(struct residency *residency, struct anon_moved *moved, uint64_t shift)
{
	for (size_t i = 0; i < moved->count; i++) {
		struct span piece = moved->pieces[i], map;
		uint64_t *made =
			piece.a & ANON_POSSIBLE ? &residency->anon_possible_made : &residency->anon_made;

		piece.lo += shift;
		piece.hi += shift;
		piece.b -= shift;
		if (!livemap_find(&residency->replay.maps, piece.lo, &map) || map.hi < piece.hi ||
		    (uint32_t)piece.a != (uint32_t)((map.a >> 8) - 1))
			continue;
		breaks_gone(residency, piece.lo, piece.hi);
		anon_insert(residency, &piece);
		*made -= piece.hi - piece.lo;
	}
	free(moved->pieces);
}
