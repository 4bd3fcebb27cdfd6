/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs made by hand, and their comparison. After cmocka.h. */
#ifndef SPARKTRACE_TEST_DIFF_SCENE_H
#define SPARKTRACE_TEST_DIFF_SCENE_H

#include <analyzer/diff.h>
#include <stdlib.h>

#define MIB UINT64_C(1048576)
#define GIB (UINT64_C(1024) * MIB)

#define PARTS 4

/* Two runs of the same program, until a test changes one. */
struct pair {
	struct model models[2];
	struct measure measures[2];
	struct part parts[2][PARTS];
	struct diff_options options;
	struct diff diff;
};

static inline void make_side(struct pair *pair, int side)
{
	struct measure *measure = &pair->measures[side];

	pair->models[side].device_peak = 4 * GIB;
	*measure = (struct measure){
		.path = side ? "after.zst" : "before.zst",
		.finished = true,
		.weights = 4 * GIB,
		.model = &pair->models[side],
		.scale = {.threads = 1,
	                  .largest_tensor = 256 * MIB,
	                  .mappings = 2,
	                  .page_size = 4096,
	                  .released = 512 * MIB},
		.fingerprint = {.allocator = "plain",
	                        .device = "unified",
	                        .relief = "off",
	                        .page_size = 4096,
	                        .threads = 1,
	                        .processes = 1,
	                        .heap_threshold = MIB},
		.breakdown = {pair->parts[side], 0},
	};
	for (int i = 0; i < METRIC_COUNT; i++)
		measure->values[i] = range_of(metric_rows[i].unit == METRIC_RATIO ? METRIC_RATIO_ONE : GIB);
}

static inline int pair_up(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	make_side(pair, 0);
	make_side(pair, 1);
	*state = pair;
	return 0;
}

static inline int pair_down(void **state)
{
	struct pair *pair = *state;

	diff_release(&pair->diff);
	free(pair);
	return 0;
}

static inline const struct diff *compared(struct pair *pair)
{
	diff_release(&pair->diff);
	assert_int_equal(diff_compare(&pair->measures[0], &pair->measures[1], &pair->options, &pair->diff),
	                 0);
	return &pair->diff;
}

static inline enum diff_state state_of(struct pair *pair, enum metric metric, struct range before,
                                       struct range after)
{
	pair->measures[0].values[metric] = before;
	pair->measures[1].values[metric] = after;
	return compared(pair)->peaks[metric].state;
}

static inline void part(struct pair *pair, int side, enum metric metric, enum part_kind kind, char *name,
                        uint64_t bytes)
{
	struct breakdown *breakdown = &pair->measures[side].breakdown;

	assert_true(breakdown->count < PARTS);
	breakdown->parts[breakdown->count++] = (struct part){metric, kind, name, range_of(bytes), NULL};
}

#endif
