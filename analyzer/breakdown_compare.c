/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of two runs side by side. */
#include "breakdown.h"
#include "breakdown_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_ALIKE 2

static int compare_growths(const void *a, const void *b)
{
	const struct growth *left = a, *right = b;
	uint64_t l = bytes_sub(left->after.hi, left->before.hi),
		 r = bytes_sub(right->after.hi, right->before.hi);

	if (l != r)
		return l > r ? -1 : 1;
	/* Neither grew, or both by as much: the one that shrank by less. */
	l = bytes_sub(left->before.hi, left->after.hi);
	r = bytes_sub(right->before.hi, right->after.hi);
	if (l != r)
		return l < r ? -1 : 1;
	if (left->metric != right->metric)
		return left->metric < right->metric ? -1 : 1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* --- stacks that only one of them has ------------------------------------------------------------------- */

static int compare_innermost(const struct growth *a, const struct growth *b)
{
	size_t left = content_innermost(a->name, FRAMES_ALIKE),
	       right = content_innermost(b->name, FRAMES_ALIKE);
	size_t least = left < right ? left : right;
	int order = memcmp(a->name, b->name, least);

	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	return order ? order : (left > right) - (left < right);
}

static bool is_gone(const struct growth *growth)
{
	return !growth->after.hi;
}

/* Of the same innermost frames those of before first, then those of after, each with most bytes first. */
static int compare_single(const void *a, const void *b)
{
	const struct growth *left = a, *right = b;
	int order = compare_innermost(left, right);
	uint64_t l = bytes_max(left->before.hi, left->after.hi),
		 r = bytes_max(right->before.hi, right->after.hi);

	if (order)
		return order;
	if (is_gone(left) != is_gone(right))
		return is_gone(left) ? -1 : 1;
	if (l != r)
		return l > r ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* Makes one of each pair among `singles`; how many are left. */
static size_t pair_stacks(struct growth *singles, size_t count)
{
	size_t kept = 0;

	for (size_t first = 0, middle, end; first < count; first = end) {
		size_t pairs, i;

		for (end = first + 1; end < count && !compare_innermost(&singles[first], &singles[end]);)
			end++;
		for (middle = first; middle < end && is_gone(&singles[middle]);)
			middle++;
		pairs = middle - first < end - middle ? middle - first : end - middle;
		for (i = 0; i < pairs; i++)
			singles[middle + i].before = singles[first + i].before;
		for (i = first + pairs; i < end; i++)
			singles[kept++] = singles[i];
	}
	return kept;
}

/* Those that only one run has go to the end of the array and become fewer there. */
static size_t match_stacks(struct growth *growths, size_t count)
{
	size_t both = 0;

	for (size_t i = 0; i < count; i++) {
		struct growth growth = growths[i];

		if (growth.kind == PART_STACK && (!growth.before.hi || !growth.after.hi))
			continue;
		growths[i] = growths[both];
		growths[both++] = growth;
	}
	if (count > both)
		qsort(growths + both, count - both, sizeof(*growths), compare_single);
	return both + pair_stacks(growths + both, count - both);
}

/* --- all of them ---------------------------------------------------------------------------------------- */

/* Of one of them, or of both. */
static struct growth growth_of(const struct part *before, const struct part *after)
{
	struct growth growth = {.before = range_of(0), .after = range_of(0)};

	if (before) {
		growth.metric = before->metric;
		growth.kind = before->kind;
		growth.name = before->name;
		growth.detail = before->detail;
		growth.before = before->bytes;
	}
	if (after) {
		growth.metric = after->metric;
		growth.kind = after->kind;
		growth.name = after->name;
		growth.detail = after->detail ? after->detail : growth.detail;
		growth.after = after->bytes;
	}
	return growth;
}

int breakdown_compare(const struct breakdown *before, const struct breakdown *after,
                      struct growth **ret_growths, size_t *ret_count)
{
	struct growth *growths = calloc(before->count + after->count + 1, sizeof(*growths));
	size_t count = 0, b = 0, a = 0;

	if (!growths)
		return -ENOMEM;
	/* Both are in the order of their names. */
	while (b < before->count || a < after->count) {
		const struct part *old = b < before->count ? &before->parts[b] : NULL;
		const struct part *new = a < after->count ? &after->parts[a] : NULL;
		int order = !old ? 1 : !new ? -1 : part_order(old->metric, old->kind, old->name, new);

		growths[count++] = growth_of(order <= 0 ? old : NULL, order >= 0 ? new : NULL);
		b += order <= 0;
		a += order >= 0;
	}
	count = match_stacks(growths, count);
	if (count)
		qsort(growths, count, sizeof(*growths), compare_growths);
	*ret_growths = growths;
	*ret_count = count;
	return 0;
}
