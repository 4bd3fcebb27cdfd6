/* SPDX-License-Identifier: Apache-2.0 */
/* Files, tensors and stacks that differ. */
#include "diff_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t certain(struct change change)
{
	int64_t least = change.lo > 0 ? change.lo : change.hi < 0 ? change.hi : 0;

	return least < 0 ? -(uint64_t)least : (uint64_t)least;
}

/* What is known to have changed by most bytes; what grew before what shrank by as much. */
static int compare_parts(const void *a, const void *b)
{
	const struct diff_part *left = a, *right = b;
	uint64_t l = certain(left->change), r = certain(right->change);
	const struct growth *x = left->growth, *y = right->growth;

	if (l != r)
		return l > r ? -1 : 1;
	if ((left->change.lo > 0) != (right->change.lo > 0))
		return left->change.lo > 0 ? -1 : 1;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Where files and tensors are on the device is the program's doing; all else moves with its peak. */
static uint64_t scheduling_of(const struct diff *diff, const struct growth *growth)
{
	bool stays = growth->metric == METRIC_DEVICE && growth->kind != PART_STACK;

	return stays ? 0 : diff->scheduling[growth->metric];
}

static void sort_in(const struct diff *diff, struct diff_parts *parts, const struct growth *growth)
{
	struct change before = diff_value(growth->before), after = diff_value(growth->after);
	uint64_t scheduling = scheduling_of(diff, growth);
	struct diff_part part = {.growth = growth, .change = diff_change(before, after)};

	/* What is missing may have been a release of just this part. */
	if (diff->before->unproven || diff->after->unproven)
		part.change = CHANGE_UNKNOWN;
	part.state = diff_state(
		part.change, diff_noise(diff_metric_class(growth->metric), METRIC_BYTES, before, scheduling));
	if (part.state == DIFF_SAME)
		parts->small += part.change.lo || part.change.hi;
	else if (scheduling && diff->peaks[growth->metric].state == DIFF_SAME)
		parts->moved++; /* threads decide which part is there when all of it is highest */
	else if (part.state == DIFF_CANNOT_TELL)
		parts->unclear++;
	else
		parts->parts[parts->count++] = part;
}

static int compare(const struct diff *diff, struct diff_parts *parts, const struct breakdown *before,
                   const struct breakdown *after)
{
	size_t count;
	int error = breakdown_compare(before, after, &parts->growths, &count);

	if (error)
		return error;
	parts->parts = calloc(count + 1, sizeof(*parts->parts));
	if (!parts->parts)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sort_in(diff, parts, &parts->growths[i]);
	if (parts->count)
		qsort(parts->parts, parts->count, sizeof(*parts->parts), compare_parts);
	return 0;
}

static int make_run(const struct measure *measure, struct breakdown *ret_breakdown)
{
	size_t count = measure->total ? measure->total->part_count : 1;
	const struct model **models = calloc(count + 1, sizeof(*models));
	int error;

	if (!models)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		models[i] = diff_model(measure, i);
	error = breakdown_make_run(models, count, ret_breakdown);
	free(models);
	return error;
}

int diff_breakdowns(struct diff *diff)
{
	struct diff_parts *run = &diff->run;
	int error = compare(diff, &diff->load, &diff->before->breakdown, &diff->after->breakdown);

	error = error ? error : make_run(diff->before, &run->before);
	error = error ? error : make_run(diff->after, &run->after);
	return error ? error : compare(diff, run, &run->before, &run->after);
}

void diff_parts_release(struct diff_parts *parts)
{
	free(parts->growths);
	free(parts->parts);
	breakdown_release(&parts->before);
	breakdown_release(&parts->after);
}
