/* SPDX-License-Identifier: Apache-2.0 */
/* `pack` on hostile lines; and whatever it takes must come through dump and pack again unchanged. */
#include "analyzer/dump.h"
#include "analyzer/pack.h"
#include "analyzer/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Packs text into a new file in memory: its descriptor, or -1. */
static int pack_text(const char *text, size_t size)
{
	char error[PACK_ERROR_MAX];
	FILE *in = size ? fmemopen((void *)(uintptr_t)text, size, "r") : NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC), result;

	if (!in || fd < 0)
		return -1;
	result = pack_stream(in, dup(fd), error);
	fclose(in);
	if (!result)
		return fd;
	if (!*error)
		abort(); /* a refusal without a word */
	close(fd);
	return -1;
}

static char *dump_text(int fd, size_t *ret_size)
{
	struct reader *reader;
	char path[64], *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (reader_open(path, &reader) || dump_trace(out, reader, false))
		abort();
	reader_free(reader);
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = pack_text((const char *)data, size), again;
	size_t first_size, second_size;
	char *first, *second;

	if (fd < 0)
		return 0;
	first = dump_text(fd, &first_size);
	again = pack_text(first, first_size);
	if (again < 0)
		abort();
	second = dump_text(again, &second_size);
	if (first_size != second_size || memcmp(first, second, first_size))
		abort();
	free(first);
	free(second);
	close(fd);
	close(again);
	return 0;
}
