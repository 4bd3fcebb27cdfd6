/* SPDX-License-Identifier: Apache-2.0 */
/* A trace made record by record, read back through the product's own writer and reader, and its model. */
#ifndef SPARKTRACE_TEST_SCENE_H
#define SPARKTRACE_TEST_SCENE_H

#include <analyzer/model.h>
#include <analyzer/reader.h>
#include <preload/recorder/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "records.h"

struct scene {
	char path[200];
	struct trace *trace;
	struct model *model;
};

static inline int scene_up(void **state)
{
	static unsigned number;
	struct st_file_head head = {.major = ST_FORMAT_MAJOR, .minor = ST_FORMAT_MINOR, .pid = 1};
	struct scene *scene = calloc(1, sizeof(*scene));
	const char *folder = getenv("T");

	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	snprintf(scene->path, sizeof(scene->path), "%s/scene.%d.%u", folder ? folder : "/tmp", (int)getpid(),
	         number++);
	unlink(scene->path);
	record_now = (struct st_record){.thread = 1};
	*state = scene;
	return trace_create(scene->path, &head, NULL, &scene->trace);
}

static inline int scene_down(void **state)
{
	struct scene *scene = *state;

	model_free(scene->model);
	trace_free(scene->trace);
	unlink(scene->path);
	free(scene);
	return 0;
}

/* Each record is one second after the one before. */
static inline void play(struct scene *scene, const struct st_record *record)
{
	assert_int_equal(trace_append(scene->trace, record), 0);
	record_now.time += UINT64_C(1000000000);
}

/* `closed`: the recorder came to write the trailer. */
static inline const struct model *scene_model(struct scene *scene, bool closed)
{
	struct model_options options = {0};
	struct reader *reader;

	assert_int_equal(closed ? trace_finish(scene->trace, 0) : trace_flush(scene->trace), 0);
	assert_int_equal(reader_open(scene->path, &reader), 0);
	assert_int_equal(model_build(reader, &options, &scene->model), 0);
	reader_free(reader);
	return scene->model;
}

static inline void play_file(struct scene *scene, uint64_t id, const char *path, uint64_t size)
{
	play(scene, RECORD_FILE(id, path, size));
}

static inline void play_tensor(struct scene *scene, uint64_t file, const char *name, uint64_t offset,
                               uint64_t size)
{
	play(scene, RECORD_TENSOR(file, name, offset, size));
}

#define MAP(addr_, size_, prot_, ...) \
	play(scene,                   \
	     RECORD(map, .addr = (addr_), .size = (size_), .prot = (prot_), .flags = MAP_PRIV, __VA_ARGS__))
#define UNMAP(addr_, size_) play(scene, RECORD(unmap, .addr = (addr_), .size = (size_)))
#define ALLOC(addr_, size_, ...) \
	play(scene, RECORD(device_alloc, .addr = (addr_), .size = (size_), __VA_ARGS__))
#define FREE(addr_) play(scene, RECORD(device_free, .addr = (addr_)))
#define COPY(dst_, src_, size_, ...) \
	play(scene,                  \
	     RECORD(copy, .dst = (dst_), .src = (src_), .size = (size_), .how = ST_COPY_H2D, __VA_ARGS__))
#define READ(file_, offset_, size_, addr_)                                                               \
	play(scene, RECORD(read, .file = (file_), .offset = (offset_), .size = (size_), .addr = (addr_), \
	                   .how = ST_READ_PREAD))
#define EXIT(status_) play(scene, RECORD(exit, .how = ST_EXIT_EXITED, .status = (status_)))
#define SCAN(addr_, size_, from_, to_)                                                                   \
	play(scene, record_tail(RECORD(anon, .addr = (addr_), .size = (size_), .bytes = (to_) - (from_), \
	                               .complete = 1),                                                   \
	                        (uint64_t[]){from_, to_}, 16))

/* A sample that knows of the pool and of the program; everything else is unknown. */
static inline void play_sample(struct scene *scene, uint64_t free, uint64_t cached, uint64_t rss,
                               uint64_t others)
{
	struct st_ev_sample sample;

	memset(&sample, 0xff, sizeof(sample));
	sample.r = (struct st_record){
		.time = record_now.time, .kind = ST_KIND_sample, .words = sizeof(sample) / 8};
	sample.mem_total = 24 * GIB;
	sample.mem_free = free;
	sample.mem_available = free + cached;
	sample.percpu_free = 0;
	sample.cached = cached;
	sample.buffers = sample.sreclaimable = sample.shmem = 0;
	sample.rss_anon = rss;
	sample.rss_shmem = sample.sim_device = 0;
	sample.other_anon = others;
	sample.recorder = MIB;
	play(scene, &sample.r);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_up, scene_down)

#endif
