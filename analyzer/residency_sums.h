/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes by the stack that asked for them, and as they were at one moment: keeping that moment costs nothing until a sum
 * next changes.
 */
#ifndef SPARKTRACE_RESIDENCY_SUMS_H
#define SPARKTRACE_RESIDENCY_SUMS_H

#include <analyzer/range.h>
#include <stddef.h>

struct stack_sum {
	uint32_t stack, epoch;
	bool used;
	uint64_t now, now_more; /* for sure; what may be more */
	uint64_t then, then_more;
};

/* A zeroed one is empty and ready. Open addressing. */
struct stack_sums {
	struct stack_sum *sums;
	size_t count, room;
	uint32_t epoch; /* 0: no moment was kept */
};

void stack_sums_release(struct stack_sums *sums);

/* Adds bytes, or, as negative numbers, takes them off. 0 or -ENOMEM. */
int stack_sums_move(struct stack_sums *sums, uint32_t stack, int64_t bytes, int64_t more);

/* This is the moment. */
static inline void stack_sums_keep(struct stack_sums *sums)
{
	sums->epoch++;
}

/* A sum at the moment that was kept last. More may have been taken off it than was there: of damage it is 0. */
static inline struct range stack_sum_then(const struct stack_sums *sums, const struct stack_sum *sum)
{
	bool changed = sum->epoch == sums->epoch;
	uint64_t bytes = changed ? sum->then : sum->now;

	if (bytes > INT64_MAX)
		return range_of(0);
	return (struct range){bytes, bytes_add(bytes, changed ? sum->then_more : sum->now_more)};
}

#endif
