/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map of addresses: what lives in which range. Ranges never overlap and carry two words that hold for
 * every byte of them (what depends on the place is given as "minus the address"), so that a range can be cut
 * anywhere. Memory is proportional to the number of ranges that live.
 */
#ifndef SPARKTRACE_LIVEMAP_H
#define SPARKTRACE_LIVEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [lo, hi) */
struct span {
	uint64_t lo, hi, a, b;
};

struct livemap_leaf;

/* A zeroed one is empty and ready. */
struct livemap {
	struct livemap_leaf **leaves; /* ascending, none empty */
	uint64_t *first;              /* lowest address of each leaf */
	size_t leaf_count, leaf_room;
	size_t count;   /* ranges */
	uint64_t bytes; /* in all of them */
	struct livemap_leaf *spare;
};

typedef void livemap_visit(void *context, const struct span *piece);

void livemap_release(struct livemap *map);

/* The range that holds `address`. */
bool livemap_find(const struct livemap *map, uint64_t address, struct span *ret_span);

/* The lowest range that ends above `address`: the one that holds it, else the next. */
bool livemap_next(const struct livemap *map, uint64_t address, struct span *ret_span);

/* Does anything live in [lo, hi)? */
bool livemap_touches(const struct livemap *map, uint64_t lo, uint64_t hi);

/*
 * Adds a range, joined with its neighbours where these touch it and carry the same words.
 * -EINVAL: empty; -EEXIST: something lives there already (cut first); -ENOMEM.
 */
int livemap_insert(struct livemap *map, const struct span *span);

/* The same, never joined: for ranges that are given back as they came. */
int livemap_insert_alone(struct livemap *map, const struct span *span);

/* Removes the range that begins at `address`: -ENOENT where none does. */
int livemap_remove(struct livemap *map, uint64_t address, struct span *ret_span);

/*
 * Removes whatever lives in [lo, hi), splitting ranges at its ends. `visit` (NULL: nobody) sees each
 * removed piece, lowest first, and may change any map but this one. -ENOMEM: a split found no room, the
 * rest of the range is still there.
 */
int livemap_cut(struct livemap *map, uint64_t lo, uint64_t hi, livemap_visit *visit, void *context);

/* Shows each piece of [lo, hi) that lives, lowest first; `visit` may not change this map. */
void livemap_each(const struct livemap *map, uint64_t lo, uint64_t hi, livemap_visit *visit, void *context);

#endif
