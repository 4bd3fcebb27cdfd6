/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for llama.cpp with its CUDA backend, which no package brings built for CUDA: it makes the calls that
 * llama.cpp makes, in the same order (its load modes, --load-mode).
 *
 *	load_gguf MODE FILE [NAME]
 *
 *	mmap	fopen, header by fread; fadvise; a shared mapping of the whole file, populated; posix_madvise; a copy and a
 *		wait per tensor, from the mapping; munmap of what is no longer needed
 *	mlock	the same, and what the CPU keeps is locked
 *	none	fseek and fread into four pinned buffers of 1 MiB, by turns, copies and events
 *	dio	the same by lseek and read from a descriptor with O_DIRECT, into four of 64 MiB
 *
 * NAME is a tensor that stays with the CPU (with mappings only): llama.cpp leaves the token embedding there.
 */
#include "victim.h"

#include <errno.h>

#define BUFFERS   4
#define SMALL     MIB
#define LARGE     (64 * MIB)
#define PAGE      ((size_t)4096)
#define GGUF_F16  1
#define ON_DEVICE 128 /* a tensor begins at a multiple of this */

struct piece {
	char name[64];
	uint64_t offset, size; /* in the file */
	CUdeviceptr to;
};

struct model {
	const char *path;
	uint64_t size; /* of the file */
	struct piece *pieces;
	uint64_t count;
	const char *kept;
	CUdeviceptr block;
};

static void must_read(FILE *file, void *to, size_t size)
{
	MUST(fread(to, 1, size, file) != size);
}

static uint64_t number_read(FILE *file, size_t bytes)
{
	uint64_t value = 0;

	must_read(file, &value, bytes);
	return value;
}

static void string_read(FILE *file, char *to, size_t room)
{
	uint64_t length = number_read(file, 8);

	MUST(length >= room);
	must_read(file, to, length);
	to[length] = '\0';
}

/* Strings and 32-bit numbers: what the test's models have. Returns the alignment, where this key tells it. */
static uint64_t key_read(FILE *file, uint64_t alignment)
{
	char name[64], text[256];
	uint64_t type;

	string_read(file, name, sizeof(name));
	type = number_read(file, 4);
	if (type == 8) {
		string_read(file, text, sizeof(text));
		return alignment;
	}
	MUST(type != 4);
	type = number_read(file, 4);
	return strcmp(name, "general.alignment") == 0 ? type : alignment;
}

static void piece_read(FILE *file, struct piece *piece)
{
	uint64_t dimensions, elements = 1;

	string_read(file, piece->name, sizeof(piece->name));
	dimensions = number_read(file, 4);
	while (dimensions--)
		elements *= number_read(file, 8);
	MUST(number_read(file, 4) != GGUF_F16);
	piece->size = elements * 2;
	piece->offset = number_read(file, 8);
}

static void model_read(struct model *model, FILE *file)
{
	uint64_t keys, alignment = 32, data;
	char magic[4];

	must_read(file, magic, sizeof(magic));
	MUST(memcmp(magic, "GGUF", 4) != 0 || number_read(file, 4) != 3);
	model->count = number_read(file, 8);
	keys = number_read(file, 8);
	while (keys--)
		alignment = key_read(file, alignment);
	model->pieces = calloc(model->count, sizeof(*model->pieces));
	for (uint64_t i = 0; i < model->count; i++)
		piece_read(file, &model->pieces[i]);
	data = ((uint64_t)ftell(file) + alignment - 1) / alignment * alignment;
	for (uint64_t i = 0; i < model->count; i++)
		model->pieces[i].offset += data;
	fseek(file, 0, SEEK_END);
	model->size = (uint64_t)ftell(file);
}

static int stays(const struct model *model, const struct piece *piece)
{
	return model->kept && strcmp(model->kept, piece->name) == 0;
}

/* One block for all tensors of the device. */
static void model_place(struct model *model)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < model->count; i++) {
		model->pieces[i].to = at;
		if (!stays(model, &model->pieces[i]))
			at += (model->pieces[i].size + ON_DEVICE - 1) / ON_DEVICE * ON_DEVICE;
	}
	MUST(cuMemAlloc(&model->block, at));
	for (uint64_t i = 0; i < model->count; i++)
		model->pieces[i].to += model->block;
}

/* What the CPU keeps is [first, second) of the mapping; the pages around it go. */
static void map_trim(char *base, uint64_t size, uint64_t first, uint64_t second)
{
	uint64_t low = first / PAGE * PAGE, high = (second + PAGE - 1) / PAGE * PAGE;

	if (low > 0)
		MUST(munmap(base, second ? low : size));
	if (second && high < size)
		MUST(munmap(base + high, size - high));
}

static void load_mapped(struct model *model, FILE *file, int lock)
{
	uint64_t first = model->size, second = 0;
	char *base;

	posix_fadvise(fileno(file), 0, 0, POSIX_FADV_SEQUENTIAL);
	base = mmap(NULL, model->size, PROT_READ, MAP_SHARED | MAP_POPULATE, fileno(file), 0);
	MUST(base == MAP_FAILED);
	posix_madvise(base, model->size, POSIX_MADV_WILLNEED);
	for (uint64_t i = 0; i < model->count; i++) {
		struct piece *piece = &model->pieces[i];

		if (!stays(model, piece)) {
			MUST(cuMemcpyHtoDAsync(piece->to, base + piece->offset, piece->size,
			                       CU_STREAM_PER_THREAD));
			MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
			continue;
		}
		first = piece->offset;
		second = piece->offset + piece->size;
		if (lock)
			MUST(mlock(base, second));
	}
	map_trim(base, model->size, first, second);
}

/* Four buffers by turns; the event says that the copy out of one is over. */
struct staging {
	char *buffers[BUFFERS];
	CUevent events[BUFFERS];
	CUstream stream;
	size_t room;
	unsigned turn;
};

static void staging_init(struct staging *staging, size_t room)
{
	staging->room = room;
	staging->turn = 0;
	MUST(cuStreamCreate(&staging->stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < BUFFERS; i++) {
		MUST(cuMemAllocHost((void **)&staging->buffers[i], room));
		MUST(cuEventCreate(&staging->events[i], CU_EVENT_DISABLE_TIMING));
	}
}

static void staging_release(struct staging *staging)
{
	for (int i = 0; i < BUFFERS; i++) {
		MUST(cuEventSynchronize(staging->events[i]));
		MUST(cuEventDestroy(staging->events[i]));
		MUST(cuMemFreeHost(staging->buffers[i]));
	}
	MUST(cuStreamDestroy(staging->stream));
}

static char *staging_next(struct staging *staging)
{
	staging->turn = (staging->turn + 1) % BUFFERS;
	MUST(cuEventSynchronize(staging->events[staging->turn]));
	return staging->buffers[staging->turn];
}

static void staging_send(struct staging *staging, CUdeviceptr to, const char *from, size_t size)
{
	MUST(cuMemcpyHtoDAsync(to, from, size, staging->stream));
	MUST(cuEventRecord(staging->events[staging->turn], staging->stream));
}

static void piece_stream(struct staging *staging, FILE *file, const struct piece *piece)
{
	MUST(fseek(file, (long)piece->offset, SEEK_SET));
	for (uint64_t done = 0; done < piece->size; done += staging->room) {
		size_t size = piece->size - done < staging->room ? piece->size - done : staging->room;
		char *buffer = staging_next(staging);

		must_read(file, buffer, size);
		staging_send(staging, piece->to + done, buffer, size);
	}
}

/* Whole pages around the wanted bytes; the last one ends where the file does. */
static void piece_direct(struct staging *staging, int fd, const struct piece *piece)
{
	uint64_t at = piece->offset / PAGE * PAGE, end = piece->offset + piece->size;

	for (; at < end; at += staging->room) {
		uint64_t stop = (end + PAGE - 1) / PAGE * PAGE, low = at > piece->offset ? at : piece->offset;
		size_t size = stop - at < staging->room ? stop - at : staging->room;
		uint64_t high = at + size < end ? at + size : end;
		char *buffer = staging_next(staging);

		MUST(lseek(fd, (off_t)at, SEEK_SET) < 0);
		MUST(read(fd, buffer, size) < (ssize_t)(high - at));
		staging_send(staging, piece->to + (low - piece->offset), buffer + (low - at), high - low);
	}
}

static void load_streamed(struct model *model, FILE *file)
{
	struct staging staging;

	staging_init(&staging, SMALL);
	for (uint64_t i = 0; i < model->count; i++)
		piece_stream(&staging, file, &model->pieces[i]);
	staging_release(&staging);
}

static void load_direct(struct model *model, FILE *file)
{
	int fd = open(model->path, O_RDONLY | O_DIRECT);
	struct staging staging;
	struct stat status;

	(void)file;
	MUST(fd < 0 || fstat(fd, &status));
	staging_init(&staging, LARGE);
	for (uint64_t i = 0; i < model->count; i++)
		piece_direct(&staging, fd, &model->pieces[i]);
	staging_release(&staging);
	close(fd);
}

static void model_load(struct model *model, const char *mode, FILE *file)
{
	if (strcmp(mode, "mmap") == 0)
		load_mapped(model, file, 0);
	else if (strcmp(mode, "mlock") == 0)
		load_mapped(model, file, 1);
	else if (strcmp(mode, "none") == 0)
		load_streamed(model, file);
	else if (strcmp(mode, "dio") == 0)
		load_direct(model, file);
	else
		exit(2);
}

static void say(const char *word, const struct model *model)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%s %llu", word,
	       (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
	if (model)
		printf(" count %llu bytes %llu sha256 -", (unsigned long long)model->count,
		       (unsigned long long)model->size);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct model model = {.path = argc > 2 ? argv[2] : "", .kept = argc > 3 ? argv[3] : NULL};
	FILE *file = fopen(model.path, "rb");

	if (!file)
		return 2;
	device_open();
	say("begin", NULL);
	model_read(&model, file);
	model_place(&model);
	model_load(&model, argv[1], file);
	fclose(file);
	say("loaded", &model);
	hold(0.06);
	MUST(cuMemFree(model.block));
	say("dropped", NULL);
	return 0;
}
