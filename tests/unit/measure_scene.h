/* SPDX-License-Identifier: Apache-2.0 */
/* A trace made record by record, measured as `check` does. */
#ifndef SPARKTRACE_TEST_MEASURE_SCENE_H
#define SPARKTRACE_TEST_MEASURE_SCENE_H

#include <analyzer/measure.h>
#include <string.h>
#include "scene.h"

#define MAPPED UINT64_C(0x7f0000000000)
#define HEAP   UINT64_C(0x7c0000000000)
#define DEVICE UINT64_C(0x7d0000000000)
#define PINNED UINT64_C(0x7b0000000000)

#define HOST(addr_, size_, ...) play(scene, RECORD(alloc, .addr = (addr_), .size = (size_), __VA_ARGS__))
#define HOST_FREE(addr_)        play(scene, RECORD(free, .addr = (addr_)))
#define PIN(addr_, size_, ...) \
	play(scene, RECORD(pinned_alloc, .addr = (addr_), .size = (size_), __VA_ARGS__))
#define PROCESS(pool_)                                                                                \
	play(scene, RECORD(process, .pid = 1, .pool = (pool_), .page_size = 4096, .rank = ST_UNKNOWN, \
	                   .world = ST_UNKNOWN))
#define INFO(text_)     play(scene, record_tail(RECORD(info), text_, strlen(text_)))
#define COVERAGE(text_) play(scene, record_tail(RECORD(coverage), text_, strlen(text_)))
#define MARK(text_)     play(scene, record_tail(RECORD(mark), text_, strlen(text_)))
#define SYNC()          play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT))

#define FILE_SIZE GIB

static inline void begin_load(struct scene *scene)
{
	PROCESS(ST_POOL_UMA);
	play_sample(scene, 20 * GIB, 0, 100 * MIB, 0);
	play_file(scene, 1, "/m/w.safetensors", FILE_SIZE);
	play_tensor(scene, 1, "a", 0, 256 * MIB);
	play_tensor(scene, 1, "b", 256 * MIB, 768 * MIB);
}

/* Ends the trace and measures it. */
static inline const struct measure *measured(struct scene *scene, struct measures *ret_measures)
{
	char *paths[] = {scene->path};

	assert_int_equal(trace_finish(scene->trace, 0), 0);
	assert_int_equal(measures_read(paths, 1, ret_measures), 0);
	assert_int_equal(ret_measures->count, 1);
	return ret_measures->runs;
}

static inline void assert_value(const struct measure *measure, enum metric metric, uint64_t lo, uint64_t hi)
{
	if (measure->values[metric].lo != lo || measure->values[metric].hi != hi)
		print_error("%s\n", metric_rows[metric].name);
	assert_int_equal(measure->values[metric].lo, lo);
	assert_int_equal(measure->values[metric].hi, hi);
}

static inline void assert_exact(const struct measure *measure, enum metric metric, uint64_t value)
{
	assert_value(measure, metric, value, value);
}

/* The bytes of a part of a peak, by file, tensor or stack; UINT64_MAX: there is none. */
static inline struct range part_of(const struct model *model, enum load_peak peak, enum load_part_kind kind,
                                   uint32_t which)
{
	for (size_t i = 0; i < model->load_part_count; i++) {
		const struct load_part *part = &model->load_parts[i];

		if (part->peak == peak && part->kind == kind && part->which == which)
			return part->bytes;
	}
	return (struct range){UINT64_MAX, UINT64_MAX};
}

#define assert_part(model_, peak_, kind_, which_, bytes_)                                           \
	do {                                                                                        \
		struct range part_ = part_of(model_, LOAD_PEAK_##peak_, LOAD_PART_##kind_, which_); \
		assert_int_equal(part_.lo, bytes_);                                                 \
		assert_int_equal(part_.hi, bytes_);                                                 \
	} while (0)
#define assert_no_part(model_, peak_, kind_, which_) \
	assert_int_equal(part_of(model_, LOAD_PEAK_##peak_, LOAD_PART_##kind_, which_).lo, UINT64_MAX)

#endif
