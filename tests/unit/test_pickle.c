/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the reader of pickles, and of the archives around them, against what no torch.save() wrote: nothing is
 * run, memory and time are bounded, and a storage that no tensor is known of is still there under its own name.
 */
#include "tables.h"

#include <stdio.h>

/* --- pickles, each in an archive of one storage of 64 bytes ----------------------------------- */

struct archive {
	unsigned char bytes[1 << 20];
	size_t size, directory_size;
	unsigned char directory[1024];
	unsigned entries;
};

static void number_put(unsigned char *bytes, uint64_t number, size_t count)
{
	while (count--) {
		*bytes++ = (unsigned char)number;
		number >>= 8;
	}
}

static void entry_put(struct archive *archive, const char *name, const void *data, size_t size)
{
	unsigned char local[30] = "PK\3\4", *entry = archive->directory + archive->directory_size;
	size_t length = strlen(name), at = archive->size;

	number_put(local + 26, length, 2);
	memcpy(archive->bytes + at, local, sizeof(local));
	memcpy(archive->bytes + at + 30, name, length);
	memcpy(archive->bytes + at + 30 + length, data, size);
	archive->size += 30 + length + size;
	memset(entry, 0, 46);
	memcpy(entry, "PK\1\2", 4);
	number_put(entry + 20, size, 4);
	number_put(entry + 24, size, 4);
	number_put(entry + 28, length, 2);
	number_put(entry + 42, at, 4);
	memcpy(entry + 46, name, length);
	archive->directory_size += 46 + length;
	archive->entries++;
}

static void archive_end(struct archive *archive)
{
	unsigned char end[22] = "PK\5\6";

	number_put(end + 10, archive->entries, 2);
	number_put(end + 12, archive->directory_size, 4);
	number_put(end + 16, archive->size, 4);
	memcpy(archive->bytes + archive->size, archive->directory, archive->directory_size);
	archive->size += archive->directory_size;
	memcpy(archive->bytes + archive->size, end, sizeof(end));
	archive->size += sizeof(end);
}

static int pickle_try(const void *pickle, size_t size, int *ret_tensors, const char **note)
{
	static struct archive archive;
	unsigned char data[64] = {0};
	int fd, rc;

	archive.size = archive.directory_size = archive.entries = 0;
	entry_put(&archive, "x/data.pkl", pickle, size);
	entry_put(&archive, "x/data/0", data, sizeof(data));
	archive_end(&archive);
	fd = memory_file(archive.bytes, archive.size);
	rc = read_through(ST_FILE_TORCH, fd, archive.size, ret_tensors, note);
	close(fd);
	return rc;
}

#define STORAGE                                             \
	"((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
	"0"                                                 \
	"X\3\0\0\0cpuK\20tQ"
#define REBUILD     "ctorch._utils\n_rebuild_tensor_v2\n"
#define REST        "\x89N"
#define ONE(shape_) "}X\1\0\0\0a" REBUILD STORAGE shape_ REST "tRs."

/* A pickle, how many tensors come of it, the name of the last, and its size. */
static const struct {
	const char *pickle;
	size_t bytes;
	const char *name;
	uint64_t size;
	bool understood;
} pickles[] = {
#define P(text, ...)                                \
	{                                           \
		text, sizeof(text) - 1, __VA_ARGS__ \
	}
	P(ONE("K\0K\4\x85K\1\x85"), "a", 16, true),
	P(ONE("K\4K\14\x85K\1\x85"), "a", 48, true),
	P(ONE("K\0K\2K\3\x86K\10K\1\x86"), "a", 44, true), /* 2 rows of 3, 8 apart */
	P(ONE("K\0K\0\x85K\1\x85"), "a", 0, true),         /* empty */
	P(ONE("K\0))"), "a", 4, true),                     /* a single number */
	P(ONE("K\5K\14\x85K\1\x85"), "data/0", 64, true),  /* out of the storage */
	P(ONE("J\xff\xff\xff\xffK\4\x85K\1\x85"), "data/0", 64, true),
	P(ONE("K\0J\xff\xff\xff\xff\x85K\1\x85"), "data/0", 64, true),
	P(ONE("K\0J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x87K\1K\1K\1\x87"), "data/0", 64, true),
	P(ONE("K\0K\4\x85K\1K\1\x86"), "data/0", 64, true), /* a stride too many */
	P(ONE("NK\4\x85K\1\x85"), "data/0", 64, true),
	P("N.", "data/0", 64, true),
	P("", "data/0", 64, false),
	P(".", "data/0", 64, false),
	P("t.", "data/0", 64, false),
	P("(((((", "data/0", 64, false),
	P("R", "data/0", 64, false),
	P("\x87.", "data/0", 64, false),
	P("Q.", "data/0", 64, false),
	P("s.", "data/0", 64, false),
	P("}u.", "data/0", 64, false),
	P("h\7.", "data/0", 64, false),
	P("Nr\xff\xff\xff\xff.", "data/0", 64, false),
	P("X\xff\xff\xff\xff", "data/0", 64, false),
	P("\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "data/0", 64, false),
	P("cos\nsystem\n(S'true'\ntR.", "data/0", 64, true), /* read, never run */
	P("cos\nsystem", "data/0", 64, false),
	P("\x80\x06N.", "data/0", 64, false),
	P("}q\0h\0X\1\0\0\0ah\0ss.", "data/0", 64, false),
	P("}q\0X\1\0\0\0ah\0s.", "data/0", 64, true), /* a dictionary that holds itself */
#undef P
};

static void test_pickles(void **state)
{
	const char *note;
	int tensors, rc;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pickles) / sizeof(pickles[0]); i++) {
		rc = pickle_try(pickles[i].pickle, pickles[i].bytes, &tensors, &note);
		if (rc || tensors != 1 || strcmp(tensor.name, pickles[i].name) ||
		    tensor.size != pickles[i].size || !note != pickles[i].understood)
			fail_msg("pickle %zu: %d, %d tensors, %s of %llu, %s", i, rc, tensors, tensor.name,
			         (unsigned long long)tensor.size, note ? note : "understood");
	}
}

/* A pickle of nothing but one opcode, a hundred thousand times. */
static void test_endless_pickles(void **state)
{
	static const char *const pieces[] = {"(",  "]",    "}",      "N",   ")",  "N\x85",
	                                     "N2", "Nq\1", "\x80\2", "K\1", "(t", "]\x94"};
	static char pickle[900000];
	const char *note;
	size_t i, used, length;
	int tensors;

	(void)state;
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		length = strlen(pieces[i]);
		for (used = 0; used + length < sizeof(pickle); used += length)
			memcpy(pickle + used, pieces[i], length);
		assert_int_equal(pickle_try(pickle, used, &tensors, &note), TENSOR_END);
		assert_int_equal(tensors, 1);
		assert_string_equal(tensor.name, "data/0");
	}
}

/* An opcode is a bounded piece of work: a line without an end does not make the recorder read the whole file. */
static void test_long_line(void **state)
{
	static char pickle[200000];
	const char *note;
	int tensors;

	(void)state;
	memset(pickle, 'x', sizeof(pickle));
	pickle[0] = 'S';
	memcpy(pickle + 40000, "\n.", 2);
	assert_int_equal(pickle_try(pickle, sizeof(pickle), &tensors, &note), TENSOR_END);
	assert_null(note);
	memset(pickle + 40000, 'x', 2);
	memcpy(pickle + sizeof(pickle) - 2, "\n.", 2);
	assert_int_equal(pickle_try(pickle, sizeof(pickle), &tensors, &note), TENSOR_END);
	assert_string_equal(note, "a line is too long");
	assert_int_equal(tensors, 1);
}

/* torch.save() names the archive after the file, whose name may have 255 bytes. */
static void test_long_names(void **state)
{
	static struct archive archive;
	char name[300];
	unsigned char data[64] = {0};
	int fd, tensors;

	(void)state;
	archive.size = archive.directory_size = archive.entries = 0;
	memset(name, 'a', 248);
	strcpy(name + 248, "/data/12");
	entry_put(&archive, name, data, sizeof(data));
	archive_end(&archive);
	fd = memory_file(archive.bytes, archive.size);
	assert_int_equal(read_through(ST_FILE_TORCH, fd, archive.size, &tensors, NULL), TENSOR_END);
	assert_int_equal(tensors, 1);
	assert_string_equal(tensor.name, "data/12");
	close(fd);
}

/* Doubled references: 2^30 ways lead to one tensor. */
static void test_many_ways(void **state)
{
	static char pickle[8192];
	size_t used = 0;
	const char *note;
	int tensors, i;
	static const char first[] = ONE("K\0K\4\x85K\1\x85");

	(void)state;
	memcpy(pickle, first, sizeof(first) - 2);
	used = sizeof(first) - 2;
	for (i = 0; i < 30; i++)
		used += (size_t)snprintf(pickle + used, sizeof(pickle) - used, "\x94](h%ch%ce", i + 1, i + 1);
	/* Numbers below are memo indices; 0 would end snprintf's text, so one is kept for nothing. */
	memmove(pickle + 2, pickle, used);
	memcpy(pickle, "N\x94", 2);
	used += 2;
	pickle[used++] = '.';
	assert_int_equal(pickle_try(pickle, used, &tensors, &note), TENSOR_END);
	assert_int_equal(tensors, 1);
}

/* Archives whose directory lies. */
static void test_hostile_archives(void **state)
{
	static struct archive archive;
	unsigned char data[64] = {0};
	size_t at, i;
	int fd, tensors;

	(void)state;
	archive.size = archive.directory_size = archive.entries = 0;
	entry_put(&archive, "x/data.pkl", "N.", 2);
	entry_put(&archive, "x/data/0", data, sizeof(data));
	entry_put(&archive, "x/data/", data, 1);
	entry_put(&archive, "x/data/1x", data, 1);
	entry_put(&archive, "data/2", data, 1);
	entry_put(&archive, "x/data/99999999999999999999999", data, 1);
	archive_end(&archive);
	fd = memory_file(archive.bytes, archive.size);
	assert_int_equal(read_through(ST_FILE_TORCH, fd, archive.size, &tensors, NULL), TENSOR_END);
	assert_int_equal(tensors, 1);
	close(fd);
	at = archive.size - 22;
	for (i = 4; i < 22; i++) { /* counts and places of the end record */
		unsigned char was = archive.bytes[at + i];

		archive.bytes[at + i] = 0xff;
		fd = memory_file(archive.bytes, archive.size);
		read_through(ST_FILE_TORCH, fd, archive.size, &tensors, NULL);
		close(fd);
		archive.bytes[at + i] = was;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pickles),   cmocka_unit_test(test_endless_pickles),
		cmocka_unit_test(test_long_line), cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_many_ways), cmocka_unit_test(test_hostile_archives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
