/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole report, or all that `check` measures, on hostile records. Each byte of the input is a field: from a few
 * values that fit together (the same identifiers, addresses and sizes again) and such as overflow, so that events meet
 * each other's blocks, files and stacks. The first byte chooses the options, and whether there are two traces, of one
 * run; an input of odd length is measured.
 */
#include "analyzer/event.h"
#include "analyzer/measure.h"
#include "analyzer/options.h"
#include "analyzer/report.h"
#include "analyzer/report_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#define RECORDS   500
#define BLOCK_MAX (1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
	uint64_t now;
};

static const char *const texts[] = {
	"/models/a-00001-of-00003.safetensors",
	"/models/a-00002-of-00003.safetensors",
	"layers.0.weight",
	"_ZN2at6native8_to_copyERKNS_6TensorE",
	"safetensors 0.7.0 /site-packages/safetensors",
	"load_file /site-packages/safetensors/torch.py",
	"main.<locals>.f /home/user/train.py",
	"/site-packages/safetensors/_rust.so",
	"PySafeSlice",
	"quantize",
	"cmdline=python x.py",
	"env.LD_PRELOAD=x.so",
	"bitsandbytes 0.50 /site-packages/bitsandbytes",
	"/site-packages/bitsandbytes/x.so",
	"",
	"transformers 5.0 /site-packages/transformers",
	"/site-packages/torch/lib/libc10.so",
	"io_uring: what the program reads through it is not seen",
};

static uint8_t take(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

static uint64_t take_value(struct input *input)
{
	uint64_t b = take(input);

	if (b < 32)
		return b;
	if (b < 96)
		return b * 0x10000;
	if (b < 128)
		return (b - 96) * 4096;
	if (b < 192)
		return UINT64_C(1) << (b - 128);
	return b < 224 ? UINT64_MAX - (b - 192) : UINT64_C(0x7f0000000000) + (b - 224) * 0x1000;
}

/* Words of the tail. */
static size_t put_tail(struct input *input, const struct event_kind *kind, uint64_t *words)
{
	const char *text = texts[take(input) % (sizeof(texts) / sizeof(texts[0]))];
	size_t count = take(input) % 8;

	if (kind->tail == EVENT_TAIL_TEXT) {
		memcpy(words, text, strlen(text));
		return (strlen(text) + 7) / 8;
	}
	for (size_t i = 0; kind->tail == EVENT_TAIL_WORDS && i < count; i++)
		words[i] = take(input) % 2 ? take_value(input) : (uint64_t)take(input) << 32 | take(input);
	return kind->tail == EVENT_TAIL_WORDS ? count : 0;
}

static size_t put_record(struct input *input, uint64_t *words)
{
	const struct event_kind *kind = &event_kinds[take(input) % event_kind_count];
	struct st_record *record = (void *)words;
	uint8_t head = take(input);

	input->now += head & 128 ? head : -(uint64_t)(head & 15);
	*record = (struct st_record){.seq = head & 64 ? 0 : ST_SEQ_MAGIC | 8,
	                             .time = input->now,
	                             .thread = head & 48 ? head & 48 : take(input),
	                             .kind = kind->number};
	for (size_t i = sizeof(*record) / 8; i < kind->words; i++)
		words[i] = take_value(input);
	record->words = (uint16_t)(kind->words + put_tail(input, kind, words + kind->words));
	return record->words;
}

static int put_trace(int fd, struct input *input)
{
	static uint64_t block[BLOCK_MAX / 8];
	static unsigned char frame[ZSTD_COMPRESSBOUND(BLOCK_MAX)];
	const uint32_t skip[2] = {ST_SKIPPABLE_MAGIC, sizeof(struct st_file_head)};
	const struct st_ev_block first = {.r = {.kind = ST_KIND_block, .words = sizeof(first) / 8}};
	struct st_file_head head = {.major = ST_FORMAT_MAJOR, .pid = 1};
	size_t words = sizeof(first) / 8, packed;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	memset(block, 0, sizeof(block));
	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	memcpy(block, &first, sizeof(first));
	for (int i = 0; i < RECORDS && input->at < input->end && words < BLOCK_MAX / 8 - 256; i++)
		words += put_record(input, block + words);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	packed = ZSTD_compress2(zstd, frame, sizeof(frame), block, words * 8);
	ZSTD_freeCCtx(zstd);
	return write(fd, skip, sizeof(skip)) == sizeof(skip) &&
	       write(fd, &head, sizeof(head)) == sizeof(head) && write(fd, frame, packed) == (ssize_t)packed;
}

static void set_options(uint8_t choice, struct options *ret_options)
{
	char *argv[] = {"report",
	                "--files",
	                "--tensors",
	                choice & 1 ? "--at=peak" : "--at=10us",
	                choice & 2 ? "--json" : "--uma",
	                NULL};
	int first;

	if (options_parse(5, argv, ret_options, &first))
		abort();
	ret_options->together = true;
}

/* Returns the descriptor of a trace of its own, -1: none. */
static int make_trace(const uint8_t *data, size_t size, char *ret_path, size_t path_size)
{
	struct input input = {data, data + size, 1000};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	snprintf(ret_path, path_size, "/proc/self/fd/%d", fd);
	if (put_trace(fd, &input))
		return fd;
	close(fd);
	return -1;
}

static void measure(char *const *paths, int count)
{
	struct measures measures;

	if (!measures_read(paths, count, &measures))
		measures_release(&measures);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char first[64], second[64], *both[] = {first, second};
	size_t half = size / 2;
	struct options options;
	int a, b = -1;

	if (!size || !freopen("/dev/null", "w", stdout))
		return 0;
	set_options(*data, &options);
	if (*data & 4) {
		a = make_trace(data + 1, half ? half - 1 : 0, first, sizeof(first));
		b = make_trace(data + half, size - half, second, sizeof(second));
	} else {
		a = make_trace(data + 1, size - 1, first, sizeof(first));
	}
	if (a >= 0 && size % 2)
		measure(both, b >= 0 ? 2 : 1);
	else if (a >= 0 && b >= 0)
		report_operands(both, 2, &options);
	else if (a >= 0)
		report_single(first, &options, NULL);
	close(a);
	close(b);
	return 0;
}
