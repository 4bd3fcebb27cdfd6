/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals of bytes. A value that is known has lo == hi; RANGE_UNKNOWN is what nothing is known of,
 * and a `hi` of UINT64_MAX (change: INT64_MIN, INT64_MAX) means that no bound is known on that side. Sums
 * saturate there, so unknown stays unknown.
 */
#ifndef SPARKTRACE_RANGE_H
#define SPARKTRACE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t lo, hi;
};

/* The same with a sign: the change of something since the start. */
struct change {
	int64_t lo, hi;
};

#define RANGE_UNKNOWN  ((struct range){0, UINT64_MAX})
#define CHANGE_UNKNOWN ((struct change){INT64_MIN, INT64_MAX})

static inline struct range range_of(uint64_t value)
{
	return (struct range){value, value};
}

static inline bool range_is_exact(struct range range)
{
	return range.lo == range.hi;
}

/* No upper bound is known. */
static inline bool range_is_open(struct range range)
{
	return range.hi == UINT64_MAX;
}

static inline bool change_is_known(struct change change)
{
	return change.lo != INT64_MIN && change.hi != INT64_MAX;
}

static inline uint64_t bytes_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t bytes_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t bytes_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t bytes_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline struct range range_add(struct range a, struct range b)
{
	return (struct range){bytes_add(a.lo, b.lo), bytes_add(a.hi, b.hi)};
}

/* a - b, never below 0; what has no upper bound keeps none. */
static inline struct range range_sub(struct range a, struct range b)
{
	return (struct range){bytes_sub(a.lo, b.hi), range_is_open(a) ? UINT64_MAX : bytes_sub(a.hi, b.lo)};
}

/* The larger of two quantities, as far as that is known. */
static inline struct range range_max(struct range a, struct range b)
{
	return (struct range){bytes_max(a.lo, b.lo), bytes_max(a.hi, b.hi)};
}

/* The range that holds both. */
static inline struct range range_hull(struct range a, struct range b)
{
	return (struct range){bytes_min(a.lo, b.lo), bytes_max(a.hi, b.hi)};
}

/* A range of bytes moved by a signed one, never below 0. Callers leave unknown changes out. */
static inline struct range range_move(struct range a, struct change by)
{
	uint64_t lo = by.lo < 0 ? bytes_sub(a.lo, -(uint64_t)by.lo) : bytes_add(a.lo, (uint64_t)by.lo);
	uint64_t hi = by.hi < 0 ? bytes_sub(a.hi, -(uint64_t)by.hi) : bytes_add(a.hi, (uint64_t)by.hi);

	return (struct range){lo, hi};
}

#endif
