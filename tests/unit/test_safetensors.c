/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the reader of safetensors headers: right ranges for good files of several writers, and for
 * every hostile header an error at a byte, in bounded time and memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file with this header and so many bytes of data, sparse. */
static int make_file(const char *header, uint64_t length, uint64_t data)
{
	int fd = memfd_create("header", 0);
	unsigned char size[8];
	int i;

	for (i = 0; i < 8; i++)
		size[i] = (unsigned char)(length >> (8 * i));
	assert_int_equal(write(fd, size, 8), 8);
	assert_int_equal(write(fd, header, strlen(header)), strlen(header));
	assert_int_equal(ftruncate(fd, (off_t)(8 + strlen(header) + data)), 0);
	return fd;
}

static struct file_tensor tensor;

/* Tensors read before the end or the error. */
static int read_all(const char *header, uint64_t data, int *ret_count)
{
	int fd = make_file(header, strlen(header), data), rc;
	struct safetensors *reader = NULL;

	*ret_count = 0;
	rc = safetensors_open(fd, 8 + strlen(header) + data, NULL, &reader);
	while (!rc && (rc = safetensors_next(reader, &tensor)) == 1) {
		++*ret_count;
		rc = 0;
	}
	if (reader)
		safetensors_free(reader);
	close(fd);
	return rc;
}

static void test_good(void **state)
{
	static const char header[] =
		" {\"__metadata__\":{\"format\":\"pt\",\"x\":\"{\\\"a\\\":[1,2]}\"},"
		"\"model.a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
		"\"\\u00e9\\\"\\\\\":{\"shape\":[],\"data_offsets\":[12,16],\"dtype\":\"F32\",\"later\":{"
		"\"a\":[null,true,-1.5e3]}},"
		"\"none\":{\"dtype\":\"F64\",\"shape\":[0,5],\"data_offsets\":[16,16]},"
		"\"new\":{\"dtype\":\"Q9_Z\",\"shape\":[7],\"data_offsets\":[16,20]},"
		"\"half\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[20,24]}} \n  ";
	static const struct {
		const char *name;
		uint64_t offset, size, elements;
		enum st_dtype dtype;
	} wanted[] = {
		{"model.a", 0, 12, 6, ST_DTYPE_BF16}, {"\u00e9\"\\", 12, 4, 1, ST_DTYPE_F32},
		{"none", 16, 0, 0, ST_DTYPE_F64},     {"new", 16, 4, 7, ST_DTYPE_OTHER},
		{"half", 20, 4, 8, ST_DTYPE_F4},
	};
	int fd = make_file(header, strlen(header), 24);
	struct safetensors *reader;
	size_t i;

	(void)state;
	assert_int_equal(safetensors_header(fd, 8 + strlen(header) + 24), 8 + strlen(header));
	assert_int_equal(safetensors_open(fd, 8 + strlen(header) + 24, NULL, &reader), 0);
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		assert_int_equal(safetensors_next(reader, &tensor), 1);
		assert_string_equal(tensor.name, wanted[i].name);
		assert_int_equal(tensor.offset, 8 + strlen(header) + wanted[i].offset);
		assert_int_equal(tensor.size, wanted[i].size);
		assert_int_equal(tensor.elements, wanted[i].elements);
		assert_int_equal(tensor.dtype, wanted[i].dtype);
	}
	assert_int_equal(safetensors_next(reader, &tensor), 0);
	safetensors_free(reader);
	close(fd);
}

/* Pieces of the header end in the middle of names and numbers. */
static void test_long(void **state)
{
	size_t size = 16u << 20, used;
	char *header = malloc(size);
	int i, count;

	(void)state;
	used = (size_t)snprintf(header, size, "{");
	for (i = 0; i < 100000; i++)
		used += (size_t)snprintf(
			header + used, size - used,
			"%s\"model.layers.%d.self_attn.q_proj.weight\":{\"dtype\":\"U8\",\"shape\":[4],"
			"\"data_offsets\":[%d,%d]}",
			i ? "," : "", i, i * 4, i * 4 + 4);
	snprintf(header + used, size - used, "}");
	assert_int_equal(read_all(header, 400000, &count), 0);
	assert_int_equal(count, 100000);
	assert_string_equal(tensor.name, "model.layers.99999.self_attn.q_proj.weight");
	free(header);
}

static void test_name_is_cut(void **state)
{
	char header[8192];
	int count;

	(void)state;
	snprintf(header, sizeof(header),
	         "{\"%05000d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 7);
	assert_int_equal(read_all(header, 1, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(strlen(tensor.name), TENSOR_NAME - 1);
}

#define T(offsets) "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" offsets "}"

/* Header, bytes of data, tensors that are right before the error. */
static const struct {
	const char *header;
	uint64_t data;
	int count;
} hostile[] = {
	{"{", 4, 0},
	{"\xff\xff", 4, 0},
	{"[]", 4, 0},
	{"{\"a\"", 4, 0},
	{"{\"a\":", 4, 0},
	{"{\"a\":{}}", 4, 0},
	{"{\"a\":" T("[0,4]"), 4, 1},                          /* never closed */
	{"{\"a\":" T("[0,4]") "}x", 4, 1},                     /* something behind it */
	{"{\"a\":" T("[0,4]") ",\"b\":" T("[0,4]") "}", 4, 1}, /* two tensors over one range */
	{"{\"a\":" T("[0,4]") "}", 9, 1},                      /* trailing bytes */
	{"{\"a\":" T("[0,4]") "}", 2, 0},                      /* two bytes short */
	{"{\"a\":" T("[4,0]") "}", 4, 0},
	{"{\"a\":" T("[0]") "}", 4, 0},
	{"{\"a\":" T("[0,4,8]") "}", 4, 0},
	{"{\"a\":" T("[0,-4]") "}", 4, 0},
	{"{\"a\":" T("[0,18446744073709551619]") "}", 4, 0},
	{"{\"a\":" T("\"[0,4]\"") "}", 4, 0},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, 0}, /* 16 bytes, not 4 */
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2,18446744073709551614],\"data_offsets\":[0,4]}}", 4, 0},
	{"{\"a\":{\"dtype\":\"F64\",\"shape\":[2,9223372036854775806],\"data_offsets\":[0,4]}}", 4, 0},
	{"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, 0}, /* half a byte too much */
	{"{\"a\":{\"dtype\":5,\"shape\":[4],\"data_offsets\":[0,4]}}", 4, 0},
	{"{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, 0},
	{"{\"a\\x\":" T("[0,4]") "}", 4, 0},
	{"{\"a\\u12g4\":" T("[0,4]") "}", 4, 0},
	{"{\"a\nb\":" T("[0,4]") "}", 4, 0},
	{"{,}", 4, 0},
	{"{\"a\":" T("[0,4]") ",}", 4, 1},
};

static void test_hostile(void **state)
{
	size_t i;
	int count, rc;

	(void)state;
	for (i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		rc = read_all(hostile[i].header, hostile[i].data, &count);
		if (rc != -EINVAL || count != hostile[i].count)
			fail_msg("%s: %d after %d", hostile[i].header, rc, count);
	}
}

static void test_nested(void **state)
{
	char header[100001];
	int count;

	(void)state;
	memset(header, '[', sizeof(header) - 1);
	header[sizeof(header) - 1] = '\0';
	memcpy(header, "{\"__metadata__\":", 16);
	assert_int_equal(read_all(header, 4, &count), -EINVAL);
	memset(header + 16, '{', sizeof(header) - 17);
	assert_int_equal(read_all(header, 4, &count), -EINVAL);
}

/* The length in front of the header. */
static void test_lengths(void **state)
{
	static const uint64_t lengths[] = {0, 1, 3, 100, 100000001, UINT64_MAX, UINT64_MAX - 7};
	struct safetensors *reader;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int fd = make_file("{}", lengths[i], 0);

		assert_int_equal(safetensors_open(fd, 10, NULL, &reader), -EINVAL);
		close(fd);
	}
	{
		int fd = memfd_create("empty", 0);

		assert_int_equal(safetensors_open(fd, 0, NULL, &reader), -EINVAL);
		close(fd);
	}
}

/* The file shrinks while it is read. */
static void test_cut_while_read(void **state)
{
	char header[70000];
	struct safetensors *reader;
	int fd;

	(void)state;
	memset(header, ' ', sizeof(header));
	header[sizeof(header) - 1] = '\0';
	fd = make_file(header, strlen(header), 0);
	assert_int_equal(safetensors_open(fd, 8 + strlen(header), NULL, &reader), 0);
	assert_int_equal(ftruncate(fd, 40000), 0);
	assert_int_equal(safetensors_next(reader, &tensor), -EIO);
	safetensors_free(reader);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),           cmocka_unit_test(test_long),
		cmocka_unit_test(test_name_is_cut),    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_nested),         cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_cut_while_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
