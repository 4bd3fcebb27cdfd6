/* SPDX-License-Identifier: Apache-2.0 */
/* Measures made by hand, for tests of baselines and checks. What they point to is not freed with them. */
#ifndef SPARKTRACE_TESTS_MEASURES_H
#define SPARKTRACE_TESTS_MEASURES_H

#include <analyzer/baseline.h>
#include <analyzer/check.h>
#include <sparktrace/format.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* A load of 1 GiB of weights on one thread, 4 tensors, one mapping: to the device, past nothing. */
static inline struct measure measure_example(void)
{
	static char allocator[] = "block", relief[] = "off";
	struct measure m = {
		.path = "run.zst",
		.scale = {.threads = 1,
	                  .largest_tensor = 16 * MIB,
	                  .mappings = 1,
	                  .page_size = 4096,
	                  .weights = GIB},
		.fingerprint = {.allocator = allocator,
	                        .device = "simulated",
	                        .relief = relief,
	                        .heap_threshold = MIB,
	                        .threads = 1,
	                        .page_size = 4096,
	                        .processes = 1},
		.weights = GIB,
		.finished = true,
	};

	m.values[METRIC_DEVICE] = m.values[METRIC_MAPPED] = m.values[METRIC_MODELLED] = range_of(GIB);
	m.values[METRIC_FACTOR] = range_of(METRIC_RATIO_ONE);
	m.values[METRIC_POOL] = range_of(GIB);
	return m;
}

static inline struct check_options options_none(void)
{
	return (struct check_options){.budget = ST_UNKNOWN, .fit = ST_UNKNOWN};
}

#endif
