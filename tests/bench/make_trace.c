/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a long trace, for the speed of reading it: make_trace FILE EVENTS
 *
 * A load, as real ones are: 1 GiB of tensors, copied from a mapped weight file to the device. Then steps that go on for
 * long: the program maps and unmaps, allocates and frees on host and device, copies batches to the device and
 * waits for it, over and over, while what lives at one time stays the same: 1024 mappings, 4096 device blocks, 1024 host
 * blocks. Every event comes 2 us after the last one and from one of 256 stacks; a sample of the pool every 10 ms, as near
 * the edge.
 */
#include "preload/recorder/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB         (UINT64_C(1) << 20)
#define STEP_NS     2000
#define SAMPLE_EACH 5000 /* events */
#define STACKS      256
#define FRAMES      16
#define MAPPINGS    1024
#define BLOCKS      4096
#define HOSTS       1024
#define TENSORS     64
#define WEIGHTS_AT  (UINT64_C(0x7f00) << 32)
#define MAPS_AT     (UINT64_C(0x7e00) << 32)
#define DEVICE_AT   (UINT64_C(0x7d00) << 32)
#define HOSTS_AT    (UINT64_C(0x7c00) << 32)

static struct trace *trace;
static uint64_t position, now = 1000000000;

static void die(const char *what, int error)
{
	fprintf(stderr, "make_trace: %s: %s\n", what, strerror(-error));
	exit(2);
}

static void append(struct st_record *record)
{
	int error;

	record->time = now;
	record->seq = record->thread ? ST_SEQ_MAGIC | position : 0;
	position += (uint64_t)record->words * 8;
	error = trace_append(trace, record);
	if (error)
		die("append", error);
}

#define HEAD(kind_, more)                           \
	.r.kind = ST_KIND_##kind_, .r.thread = 100, \
	.r.words = (uint16_t)(sizeof(struct st_ev_##kind_) / 8 + (more))
#define APPEND(kind_, ...) append(&(struct st_ev_##kind_){HEAD(kind_, 0), __VA_ARGS__}.r)

static uint64_t stack_of(uint64_t i)
{
	return i * 7 % STACKS + 1;
}

static void put_stacks(void)
{
	struct {
		struct st_ev_stack stack;
		uint64_t frames[FRAMES];
	} record = {.stack = {HEAD(stack, FRAMES)}};

	for (uint64_t i = 1; i <= STACKS; i++) {
		record.stack.id = i;
		for (uint64_t frame = 0; frame < FRAMES; frame++)
			record.frames[frame] = 0x400000 + (frame * STACKS + i % (1 + frame * frame)) * 64;
		append(&record.stack.r);
	}
}

static void put_sample(uint64_t i)
{
	struct st_ev_sample sample;

	memset(&sample, 0xff, sizeof(sample));
	sample.r = (struct st_record){.kind = ST_KIND_sample, .words = sizeof(sample) / 8};
	sample.reason = ST_MOMENT_TIMER;
	sample.mem_total = UINT64_C(120) << 30;
	sample.mem_free = (UINT64_C(40) << 30) + i * 4096 % (64 * MIB);
	sample.mem_available = sample.mem_free + (UINT64_C(30) << 30);
	sample.cached = UINT64_C(31) << 30;
	sample.rss_anon = 2000 * MIB;
	sample.rss_file = 1500 * MIB;
	append(&sample.r);
}

static void put_load(void)
{
	const uint64_t bytes = 16 * MIB;

	APPEND(map, .addr = WEIGHTS_AT, .size = TENSORS * bytes, .prot = 3, .flags = 2, .file = 1,
	       .stack = 1);
	for (uint64_t i = 0; i < TENSORS; i++, now += STEP_NS) {
		uint64_t block = WEIGHTS_AT / 2 + i * bytes;

		APPEND(device_alloc, .addr = block, .size = bytes, .asked = bytes, .device = ST_UNKNOWN,
		       .stack = 2);
		APPEND(copy, .dst = block, .src = WEIGHTS_AT + i * bytes, .size = bytes, .how = ST_COPY_H2D,
		       .stack = 3);
	}
	APPEND(unmap, .addr = WEIGHTS_AT, .size = TENSORS * bytes, .stack = 4);
}

static void put_beginning(void)
{
	struct {
		struct st_ev_file file;
		char path[32];
	} file = {.file = {HEAD(file, 4), .id = 1, .dev = 1, .ino = 1, .size = TENSORS * 16 * MIB,
	                   .format = ST_FILE_SAFETENSORS},
	          .path = "/data/model.safetensors"};

	APPEND(process, .pid = 100, .page_size = 4096, .pool = ST_POOL_UMA, .cpus = 20);
	put_stacks();
	append(&file.file.r);
	APPEND(open, .file = 1, .stack = 1);
	put_load();
}

/* The i-th event; one that takes the place of an older one is preceded by the end of that. */
static void put_event(uint64_t i)
{
	uint64_t n = i / 8, map = MAPS_AT + n % MAPPINGS * 16 * MIB,
		 block = DEVICE_AT + n % BLOCKS * 16 * MIB, host = HOSTS_AT + n % HOSTS * 16 * MIB,
		 sizes[] = {MIB, 3 * MIB, 16 * MIB, 65536};

	switch (i % 8) {
	case 0:
		APPEND(unmap, .addr = map, .size = 16 * MIB, .stack = stack_of(n));
		break;
	case 1:
		APPEND(map, .addr = map, .size = 16 * MIB, .prot = 3, .flags = 0x22,
		       .stack = stack_of(n + 1));
		break;
	case 2:
		APPEND(device_free, .addr = block, .stack = stack_of(n + 2));
		break;
	case 3:
		APPEND(device_alloc, .addr = block, .size = sizes[n % 4], .asked = sizes[n % 4],
		       .device = ST_UNKNOWN, .stack = stack_of(n + 3));
		break;
	case 4:
		APPEND(free, .addr = host);
		break;
	case 5:
		APPEND(alloc, .addr = host, .size = sizes[n % 3], .stack = stack_of(n + 4));
		break;
	case 6:
		APPEND(copy, .dst = block, .src = host, .size = sizes[n % 3], .how = ST_COPY_H2D,
		       .stack = stack_of(n + 5));
		break;
	default:
		APPEND(sync, .how = ST_SYNC_STREAM);
		break;
	}
}

int main(int argc, char **argv)
{
	struct st_file_head head = {.major = ST_FORMAT_MAJOR, .minor = ST_FORMAT_MINOR, .pid = 100};
	uint64_t count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	int error;

	if (!count) {
		fprintf(stderr, "usage: make_trace FILE EVENTS\n");
		return 2;
	}
	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	remove(argv[1]);
	error = trace_create(argv[1], &head, NULL, &trace);
	if (error)
		die(argv[1], error);
	put_beginning();
	for (uint64_t i = 0; i < count; i++, now += STEP_NS) {
		if (i % SAMPLE_EACH == 0)
			put_sample(i);
		put_event(i);
	}
	error = trace_finish(trace, 0);
	if (error)
		die(argv[1], error);
	trace_free(trace);
	return 0;
}
