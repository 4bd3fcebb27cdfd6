/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the readers of torch archives and GGUF files: for files that the real packages wrote the
 * ranges that these packages themselves report (tests/unit/checkpoint/make.py); for hostile ones an end in bounded time
 * and memory, and no tensor outside the file.
 */
#include "tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "tests/unit/checkpoint/"
#define ROWS   64

struct row {
	unsigned long long offset, size, elements;
	char dtype[16], name[128];
	bool seen;
};

static const char *const dtype_words[] = {
#define W(n, t) t,
	ST_DTYPE(W)
#undef W
};

static int expected_read(const char *name, struct row *rows)
{
	char path[200];
	FILE *file;
	int count = 0;

	snprintf(path, sizeof(path), FOLDER "%s.expected", name);
	file = fopen(path, "r");
	assert_non_null(file);
	while (count < ROWS &&
	       fscanf(file, "%llu %llu %15s %llu %127s", &rows[count].offset, &rows[count].size,
	              rows[count].dtype, &rows[count].elements, rows[count].name) == 5)
		rows[count++].seen = false;
	fclose(file);
	return count;
}

/* Reads all of a file's table; its tensors must be those rows, each once. Returns the last code. */
static int tensors_compare(enum st_file_format format, int fd, struct row *rows, int count)
{
	struct table *table;
	struct stat now;
	int rc, i, steps = 0;

	assert_int_equal(fstat(fd, &now), 0);
	rc = table_open(format, fd, (uint64_t)now.st_size, NULL, &table);
	if (rc)
		return rc;
	while ((rc = table_next(table, &tensor)) > 0 && ++steps < 1000000) {
		if (rc == TENSOR_STEP)
			continue;
		for (i = 0; i < count && (rows[i].seen || strcmp(rows[i].name, tensor.name)); i++)
			continue;
		if (i == count)
			fail_msg("%s is none of them", tensor.name);
		rows[i].seen = true;
		assert_int_equal(tensor.offset, rows[i].offset);
		assert_int_equal(tensor.size, rows[i].size);
		assert_int_equal(tensor.elements, rows[i].elements);
		assert_string_equal(dtype_words[tensor.dtype], rows[i].dtype);
	}
	table_free(table);
	return rc;
}

static void file_check(enum st_file_format format, const char *name)
{
	struct row rows[ROWS];
	int count = expected_read(name, rows), i, fd;
	char path[200];

	snprintf(path, sizeof(path), FOLDER "%s", name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_true(count > 0);
	assert_int_equal(tensors_compare(format, fd, rows, count), TENSOR_END);
	for (i = 0; i < count; i++)
		if (!rows[i].seen)
			fail_msg("%s: %s did not come", name, rows[i].name);
	close(fd);
}

static void test_torch(void **state)
{
	static const char *const names[] = {"state.pt", "training.pt", "views.pt", "module.pt",
	                                    "protocol5.pt"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		file_check(ST_FILE_TORCH, names[i]);
}

static void test_gguf(void **state)
{
	(void)state;
	file_check(ST_FILE_GGUF, "tiny.gguf");
}

/* Before 1.6 torch.save() wrote no archive. */
static void test_old_torch(void **state)
{
	struct row rows[1];
	int fd = open(FOLDER "old.pt", O_RDONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(tensors_compare(ST_FILE_TORCH, fd, rows, 0), -EINVAL);
	close(fd);
}

/* --- hostile ones ---------------------------------------------------------------------------- */

static unsigned char *whole_file(const char *name, size_t *ret_size)
{
	char path[200];
	struct stat now;
	unsigned char *bytes;
	int fd;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &now), 0);
	bytes = malloc((size_t)now.st_size);
	assert_int_equal(read(fd, bytes, (size_t)now.st_size), now.st_size);
	close(fd);
	*ret_size = (size_t)now.st_size;
	return bytes;
}

/* Each byte once as something else, and the file cut at each length. */
static void bytes_spoil(enum st_file_format format, const char *name, size_t from)
{
	static const unsigned char spoilt[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '(', 't', 'q'};
	size_t size, i, k;
	unsigned char *bytes = whole_file(name, &size);
	int fd = memory_file(bytes, size), tensors;

	for (i = from; i < size; i++) {
		for (k = 0; k < sizeof(spoilt); k++) {
			assert_int_equal(pwrite(fd, &spoilt[k], 1, (off_t)i), 1);
			read_through(format, fd, size, &tensors, NULL);
		}
		assert_int_equal(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
	}
	for (i = size; i-- > from;) {
		assert_int_equal(ftruncate(fd, (off_t)i), 0);
		read_through(format, fd, i, &tensors, NULL);
	}
	close(fd);
	free(bytes);
}

static void test_spoilt_torch(void **state)
{
	(void)state;
	bytes_spoil(ST_FILE_TORCH, "state.pt", 0);
	bytes_spoil(ST_FILE_TORCH, "protocol5.pt", 0);
}

static void test_spoilt_gguf(void **state)
{
	size_t size;
	unsigned char *bytes = whole_file("tiny.gguf", &size);
	int fd, tensors;
	size_t i;

	(void)state;
	/* Its first 400 bytes are the pairs in front of the tokens; the tokens themselves are all alike. */
	for (i = 0; i < 400; i++) {
		unsigned char was = bytes[i];

		bytes[i] = 0xff;
		fd = memory_file(bytes, size);
		read_through(ST_FILE_GGUF, fd, size, &tensors, NULL);
		close(fd);
		bytes[i] = was;
	}
	for (i = 0; i < 60000; i += 97) {
		fd = memory_file(bytes, i);
		assert_true(read_through(ST_FILE_GGUF, fd, i, &tensors, NULL) < 0);
		close(fd);
	}
	free(bytes);
}

/* What the pickle does not tell the archive still does. */
static void test_nameless(void **state)
{
	size_t size, i;
	unsigned char *bytes = whole_file("state.pt", &size);
	int fd, tensors;
	const char *note;

	(void)state;
	for (i = 0; memcmp(bytes + i, "ccollections\n", 13); i++)
		assert_true(i < size);
	bytes[i] = 0xfe;
	fd = memory_file(bytes, size);
	assert_int_equal(read_through(ST_FILE_TORCH, fd, size, &tensors, &note), TENSOR_END);
	assert_int_equal(tensors, 4);
	assert_non_null(note);
	assert_string_equal(tensor.name, "data/3");
	close(fd);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torch),       cmocka_unit_test(test_gguf),
		cmocka_unit_test(test_old_torch),   cmocka_unit_test(test_spoilt_torch),
		cmocka_unit_test(test_spoilt_gguf), cmocka_unit_test(test_nameless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
