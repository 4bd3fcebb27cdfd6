/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a baseline: which of the two forms it has, and the file as text. */
#include <analyzer/baseline_parts.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sparktrace/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZSTD_MAGIC UINT32_C(0xfd2fb528)

static int complain(const char *path, const char *words)
{
	fprintf(stderr, "sparktrace-analyze: %s: %s\n", path, words);
	return -EINVAL;
}

/* A trace begins with a skippable frame, or, damaged, perhaps with a block. */
static bool is_trace(int fd)
{
	uint32_t magic = 0;

	if (pread(fd, &magic, sizeof(magic), 0) != sizeof(magic))
		return false;
	return magic == ZSTD_MAGIC || (magic & ~UINT32_C(15)) == (ST_SKIPPABLE_MAGIC & ~UINT32_C(15));
}

/* One run only: with several it would not be clear which is meant. */
static int read_trace(const char *path, struct measures *ret_baseline)
{
	char *operand = (char *)(uintptr_t)path; /* operands are those of main(), which are not const */
	struct measures measures = {0};
	int error = measures_read(&operand, 1, &measures);

	if (error)
		return error;
	if (measures.count != 1) {
		measures_release(&measures);
		return complain(path, "a baseline is one run");
	}
	*ret_baseline = measures;
	return 0;
}

/* All of it, however it comes (a pipe has no size): at most one byte more than may be. */
static int read_text(int fd, char **ret_text, size_t *ret_size)
{
	char *text = malloc(BASELINE_BYTES_MAX + 1);
	size_t size = 0;
	ssize_t got;

	if (!text)
		return -ENOMEM;
	while ((got = read(fd, text + size, BASELINE_BYTES_MAX + 1 - size)) > 0)
		size += (size_t)got;
	if (got < 0) {
		free(text);
		return -errno;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

static int take_text(const struct baseline_text *text, struct measures *ret_baseline)
{
	struct measures measures = {.runs = calloc(1, sizeof(struct measure)), .count = 1};
	int error;

	if (!measures.runs)
		return -ENOMEM;
	error = baseline_parse(text, measures.runs);
	if (error)
		measures_release(&measures);
	else
		*ret_baseline = measures;
	return error;
}

static int read_file(int fd, const char *path, struct measures *ret_baseline)
{
	struct baseline_text text = {.path = path};
	char *bytes = NULL;
	int error = read_text(fd, &bytes, &text.size);

	if (error) {
		complain(path, strerror(-error));
		return error;
	}
	text.text = bytes;
	error = text.size > BASELINE_BYTES_MAX ? complain(path, "too large for a baseline (1 MiB at most)")
	                                       : take_text(&text, ret_baseline);
	free(bytes);
	return error;
}

int baseline_read(const char *path, struct measures *ret_baseline)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	struct stat st;

	if (fd < 0) {
		error = -errno;
		if (error != -ENOENT)
			complain(path, strerror(-error));
		return error;
	}
	if (is_trace(fd) || (!fstat(fd, &st) && S_ISDIR(st.st_mode)))
		error = read_trace(path, ret_baseline);
	else
		error = read_file(fd, path, ret_baseline);
	close(fd);
	return error;
}

struct range baseline_unnamed(const struct measure *baseline, enum metric metric, const char *name)
{
	const struct breakdown *breakdown = &baseline->breakdown;
	uint64_t smallest = UINT64_MAX, total = baseline->values[metric].hi, named = 0;

	if (metric_rows[metric].unit == METRIC_RATIO &&
	    __builtin_mul_overflow(total, baseline->weights / METRIC_RATIO_ONE + 1, &total))
		total = UINT64_MAX;
	for (size_t i = 0; i < breakdown->count; i++)
		if (breakdown->parts[i].metric == metric) {
			named++;
			smallest = bytes_min(smallest, breakdown->parts[i].bytes.hi);
		}
	if (named < BASELINE_PARTS)
		smallest = bytes_max(BASELINE_PART_LEAST, total / 100);
	return (struct range){0, strlen(name) > BASELINE_NAME_MAX ? total : bytes_min(smallest, total)};
}
