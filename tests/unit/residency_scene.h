/* SPDX-License-Identifier: Apache-2.0 */
/* Two weight files, one of them with tensors, and short words for what a program does with them. */
#ifndef SPARKTRACE_TEST_RESIDENCY_H
#define SPARKTRACE_TEST_RESIDENCY_H

#include <analyzer/residency.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "records.h"

#define A_FILE  7 /* 256 MiB: tensors t0 (96 MiB) and t1 (96 MiB) and t2 (64 MiB) */
#define B_FILE  8 /* 64 MiB, no tensors known */
#define MAPPED  (100 * GIB)
#define DEVICE  (200 * GIB)
#define BUFFER  (300 * GIB)
#define DEVICE2 (400 * GIB)

struct scene {
	struct catalog catalog;
	struct residency residency;
};

static inline int scene_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	catalog_record(&scene->catalog, RECORD_FILE(A_FILE, "/m/a.safetensors", 256 * MIB));
	catalog_record(&scene->catalog, RECORD_FILE(B_FILE, "/m/b.safetensors", 64 * MIB));
	catalog_record(&scene->catalog, RECORD_TENSOR(A_FILE, "t2", 192 * MIB, 64 * MIB));
	catalog_record(&scene->catalog, RECORD_TENSOR(A_FILE, "t0", 0, 96 * MIB));
	catalog_record(&scene->catalog, RECORD_TENSOR(A_FILE, "t1", 96 * MIB, 96 * MIB));
	catalog_record(&scene->catalog, RECORD_TENSOR(A_FILE, "t1", 96 * MIB, 96 * MIB)); /* a repetition */
	catalog_sort(&scene->catalog);
	residency_init(&scene->residency, &scene->catalog, NULL);
	scene->residency.loading = true;
	*state = scene;
	return 0;
}

static inline int scene_down(void **state)
{
	struct scene *scene = *state;

	residency_release(&scene->residency);
	catalog_release(&scene->catalog);
	free(scene);
	return 0;
}

static inline void play(struct scene *scene, const struct st_record *record)
{
	assert_int_equal(residency_record(&scene->residency, record), 0);
}

#define MAP(addr_, size_, prot_, ...) \
	play(scene,                   \
	     RECORD(map, .addr = (addr_), .size = (size_), .prot = (prot_), .flags = MAP_PRIV, __VA_ARGS__))
#define ALLOC(addr_, size_) play(scene, RECORD(device_alloc, .addr = (addr_), .size = (size_)))
#define COPY(dst_, src_, size_, ...) \
	play(scene,                  \
	     RECORD(copy, .dst = (dst_), .src = (src_), .size = (size_), .how = ST_COPY_H2D, __VA_ARGS__))
#define MOVE(dst_, src_, size_) \
	play(scene, RECORD(copy, .dst = (dst_), .src = (src_), .size = (size_), .how = ST_COPY_D2D))
#define READ(file_, offset_, size_, addr_)                                                               \
	play(scene, RECORD(read, .file = (file_), .offset = (offset_), .size = (size_), .addr = (addr_), \
	                   .how = ST_READ_PREAD))
#define SYNC()              play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT))
#define UNMAP(addr_, size_) play(scene, RECORD(unmap, .addr = (addr_), .size = (size_)))

static inline const struct amounts *total(const struct scene *scene)
{
	return &scene->residency.total.now;
}

static inline struct amounts tensor(const struct scene *scene, size_t i)
{
	return scene->residency.tensors[i].now;
}

static inline void scan(struct scene *scene, uint64_t addr, uint64_t size, const uint64_t *pairs,
                        size_t count)
{
	play(scene, record_tail(RECORD(anon, .addr = addr, .size = size, .complete = 1), pairs,
	                        count * sizeof(*pairs)));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_up, scene_down)

#endif
