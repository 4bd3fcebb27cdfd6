/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a safetensors file of BF16 tensors with real pages and cheap content, or drops files from the
 * page cache.
 *
 *	make_safetensors [-c] FILE TENSORS MIB	MIB of data in all, in TENSORS equal tensors; -c: left uncached
 *	make_safetensors -d FILE...		written back and dropped from the cache
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 20)

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void file_drop(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die(path);
	close(fd);
}

/* The 8 bytes of length and the JSON, padded with spaces so that the data begin at a multiple of 8. */
static void header_write(FILE *file, unsigned long tensors, uint64_t bytes)
{
	char *text;
	size_t length;
	FILE *memory = open_memstream(&text, &length);
	uint64_t stored;

	fprintf(memory, "{\"__metadata__\":{\"format\":\"pt\"}");
	for (unsigned long i = 0; i < tensors; i++)
		fprintf(memory,
		        ",\"model.layers.%lu.weight\":{\"dtype\":\"BF16\",\"shape\":[%" PRIu64
		        "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
		        i, bytes / 2, i * bytes, (i + 1) * bytes);
	fprintf(memory, "}");
	fflush(memory);
	fprintf(memory, "%*s", (int)(-length & 7), "");
	fclose(memory);
	stored = length;
	fwrite(&stored, sizeof(stored), 1, file);
	fwrite(text, 1, length, file);
	free(text);
}

/* Small numbers, different on every page, so that a byte in the wrong place is seen. */
static void data_write(FILE *file, uint64_t bytes)
{
	static uint16_t chunk[CHUNK / 2];
	uint32_t state = 1;

	for (uint64_t done = 0; done < bytes; done += CHUNK) {
		size_t size = bytes - done < CHUNK ? bytes - done : CHUNK;

		for (size_t i = 0; i < size / 2; i++) {
			state = state * 1664525u + 1013904223u;
			chunk[i] = (uint16_t)(0x3c00u | state >> 23);
		}
		fwrite(chunk, 1, size, file);
	}
}

static void file_make(const char *path, unsigned long tensors, uint64_t bytes)
{
	FILE *file = fopen(path, "wbe");

	if (!file)
		die(path);
	header_write(file, tensors, bytes / tensors);
	data_write(file, bytes);
	if (fclose(file))
		die(path);
}

int main(int argc, char **argv)
{
	int option, cold = 0, drop = 0;

	while ((option = getopt(argc, argv, "cd")) != -1) {
		cold |= option == 'c';
		drop |= option == 'd';
	}
	argv += optind;
	argc -= optind;
	if (!drop && (argc != 3 || atol(argv[1]) < 1 || atol(argv[2]) < 1)) {
		fprintf(stderr, "usage: make_safetensors [-c] FILE TENSORS MIB | -d FILE...\n");
		return 2;
	}
	if (!drop)
		file_make(argv[0], strtoul(argv[1], NULL, 10), strtoull(argv[2], NULL, 10) << 20);
	for (int i = 0; i < (drop ? argc : cold); i++)
		file_drop(argv[i]);
	return 0;
}
