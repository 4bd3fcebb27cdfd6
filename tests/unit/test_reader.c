/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what a trace still says after damage: every block that is good comes whole and in order, a damaged one
 * costs only itself and is reported, and a cut file is told from a whole one.
 */
#include "trace_file.h"

#include <errno.h>

#define BLOCKS 3
#define EACH   20

static struct got got;

static void whole_traces_come_whole(void **state)
{
	const char *path = test_path("whole");
	struct st_file_head head = test_head("");

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, BLOCKS * EACH);
	assert_true(got.summary.has_trailer);
	assert_false(got.summary.cut);
	assert_false(got.summary.damaged);
	assert_false(got.summary.alive);
	assert_int_equal(got.summary.problem_count, 0);
	assert_int_equal(got.summary.ring, READER_RING_NONE);
	assert_memory_equal(&got.summary.head, &head, sizeof(head));
	assert_in_range(got.summary.blocks, BLOCKS, BLOCKS + 1);
	unlink(path);
}

static void a_second_pass_says_the_same(void **state)
{
	const char *path = test_path("twice");
	struct st_file_head head = test_head("");
	static struct got again;
	struct reader *reader;
	const struct st_record *record;

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	assert_int_equal(reader_open(path, &reader), 0);
	take_all(reader, &got);
	assert_int_equal(reader_next(reader, &record), 0); /* stays at the end */
	reader_rewind(reader);
	take_all(reader, &again);
	assert_memory_equal(&got, &again, sizeof(got));
	reader_rewind(reader);
	assert_int_equal(reader_next(reader, &record), 1); /* from the middle */
	reader_rewind(reader);
	take_all(reader, &again);
	assert_run(&again, 0, BLOCKS * EACH);
	reader_free(reader);
	unlink(path);
}

/* Cut anywhere, a trace keeps its whole blocks, and never looks whole. */
static void cuts_cost_what_is_behind_them(void **state)
{
	const char *path = test_path("cut"), *copy = memory_path();
	struct st_file_head head = test_head("");
	size_t bytes, before = 0;
	unsigned char *data;

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	data = load(path, &bytes);
	for (size_t length = 0; length < bytes; length++) {
		store(copy, data, length);
		read_trace(copy, NULL, &got);
		if (length < 8 + sizeof(head)) {
			assert_int_equal(got.error, -EBADMSG);
			continue;
		}
		assert_run(&got, 0, got.count);
		assert_int_equal(got.count % EACH, 0);
		assert_true(got.count >= before);
		before = got.count;
		assert_false(got.summary.has_trailer);
		assert_true(got.summary.cut);
		assert_false(got.summary.damaged);
		assert_in_range(got.summary.problem_count, 0, 1);
	}
	assert_int_equal(before, BLOCKS * EACH); /* all but the trailer's own block */
	free(data);
	unlink(path);
}

/* One wrong byte costs one block at most; what comes is what was written; and it is reported. */
static void check_flip(const char *path, size_t offset)
{
	read_trace(path, NULL, &got);
	if (got.error) { /* the version */
		assert_int_equal(got.error, -EPROTONOSUPPORT);
		assert_in_range(offset, 16, 17);
		return;
	}
	assert_true(got.count >= (BLOCKS - 1) * EACH);
	assert_int_equal(got.count % EACH, 0);
	for (size_t i = 1; i < got.count; i++)
		assert_true(got.addresses[i] == got.addresses[i - 1] + 1 ||
		            got.addresses[i] == got.addresses[i - 1] + 1 + EACH);
	if (offset >= 8 + sizeof(struct st_file_head))
		assert_true(got.summary.damaged || got.summary.cut || got.count == BLOCKS * EACH);
	if (got.summary.damaged)
		assert_true(got.summary.problem_count > 0);
}

static void flipped_bytes_cost_one_block(void **state)
{
	static const unsigned char masks[] = {0x01, 0x80, 0xFF};
	const char *path = test_path("flip"), *copy = memory_path();
	struct st_file_head head = test_head("");
	size_t bytes;
	unsigned char *data;

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	data = load(path, &bytes);
	for (size_t i = 0; i < bytes; i++)
		for (size_t m = 0; m < sizeof(masks); m++) {
			data[i] ^= masks[m];
			store(copy, data, bytes);
			check_flip(copy, i);
			data[i] ^= masks[m];
		}
	free(data);
	unlink(path);
}

/* Where each frame of a trace begins; the last entry is the file's end. */
static size_t find_blocks(const unsigned char *data, size_t bytes, size_t *offsets, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i + 4 <= bytes; i++)
		if (!memcmp(data + i, "\x28\xB5\x2F\xFD", 4) && count < room - 1)
			offsets[count++] = i;
	offsets[count] = bytes;
	return count;
}

static void missing_blocks_are_counted(void **state)
{
	const char *path = test_path("missing");
	struct st_file_head head = test_head("");
	size_t bytes, at[10];
	unsigned char *data;

	(void)state;
	make_trace(path, &head, 5, EACH, true);
	data = load(path, &bytes);
	assert_true(find_blocks(data, bytes, at, 10) >= 5);
	memmove(data + at[1], data + at[3], bytes - at[3]);
	store(path, data, bytes - (at[3] - at[1]));
	read_trace(path, NULL, &got);
	assert_int_equal(got.count, 3 * EACH);
	assert_int_equal(got.summary.missing_blocks, 2);
	assert_true(got.summary.damaged);
	assert_true(got.summary.has_trailer);
	assert_int_equal(got.summary.problems[0].offset, at[1]);
	assert_string_equal(got.summary.problems[0].text, "blocks 1 to 2 are missing");
	free(data);
	unlink(path);
}

/* A block written twice comes once; so do single records, which only their seq can tell. */
static void repetitions_come_once(void **state)
{
	const char *path = test_path("again");
	struct st_file_head head = test_head("");
	size_t bytes, at[10];
	unsigned char *data, *longer;
	struct trace *trace;

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	data = load(path, &bytes);
	find_blocks(data, bytes, at, 10);
	longer = malloc(2 * bytes);
	memcpy(longer, data, at[2]);
	memcpy(longer + at[2], data + at[1], bytes - at[1]);
	store(path, longer, at[2] + bytes - at[1]);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, BLOCKS * EACH);
	assert_true(got.summary.damaged);
	free(data);
	free(longer);

	trace = start_trace(path, &head);
	put_frees(trace, 0, 10);
	put_frees(trace, 4, 10);
	assert_int_equal(trace_finish(trace, 0), 0);
	trace_free(trace);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 14);
	assert_int_equal(got.summary.repeated, 6);
	assert_false(got.summary.damaged);
	unlink(path);
}

static void garbage_between_blocks_is_passed_over(void **state)
{
	const char *path = test_path("garbage");
	struct st_file_head head = test_head("");
	size_t bytes, at[10];
	unsigned char *data, *longer;

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	data = load(path, &bytes);
	find_blocks(data, bytes, at, 10);
	longer = malloc(bytes + 1000);
	memcpy(longer, data, at[1]);
	for (size_t i = 0; i < 1000; i++)
		longer[at[1] + i] =
			"\x28\xB5\x2F\xFD\x64"[i % 5]; /* looks like a frame at every fifth byte */
	memcpy(longer + at[1] + 1000, data + at[1], bytes - at[1]);
	store(path, longer, bytes + 1000);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, BLOCKS * EACH);
	assert_true(got.summary.damaged);
	assert_int_equal(got.summary.damaged_blocks, 1);
	assert_int_equal(got.summary.problem_count, 1);
	assert_int_equal(got.summary.problems[0].offset, at[1]);
	assert_non_null(strstr(got.summary.problems[0].text, "1000 bytes skipped"));
	free(data);
	free(longer);
	unlink(path);
}

static void a_second_trace_behind_is_not_mixed_in(void **state)
{
	const char *path = test_path("two");
	struct st_file_head head = test_head("");
	size_t bytes;
	unsigned char *data;

	(void)state;
	make_trace(path, &head, BLOCKS, EACH, true);
	data = load(path, &bytes);
	data = realloc(data, 2 * bytes);
	memcpy(data + bytes, data, bytes);
	store(path, data, 2 * bytes);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, BLOCKS * EACH);
	assert_true(got.summary.damaged);
	assert_int_equal(got.summary.problems[0].offset, bytes);
	free(data);
	unlink(path);
}

static void refused(const char *path, const void *data, size_t bytes, int error)
{
	store(path, data, bytes);
	read_trace(path, NULL, &got);
	assert_int_equal(got.error, error);
	assert_non_null(reader_strerror(error));
}

static void foreign_files_are_refused(void **state)
{
	static const char text[4096] = "#!/bin/sh\necho a longer file that is no trace\n";
	const char *path = test_path("foreign");
	struct st_file_head head = test_head("");
	unsigned char *data;
	size_t bytes;

	(void)state;
	refused(path, text, 0, -EBADMSG);
	refused(path, text, 10, -EBADMSG);
	refused(path, text, sizeof(text), -EBADMSG);
	refused(path, "\x28\xB5\x2F\xFD\x24\x05\x29\0\0hello\x6d\x1c\x2e\x5b", 18, -EBADMSG);
	make_trace(path, &head, 1, 1, true);
	data = load(path, &bytes);
	data[16] = ST_FORMAT_MAJOR + 1;
	refused(path, data, bytes, -EPROTONOSUPPORT);
	free(data);
	unlink(path);
	read_trace(path, NULL, &got);
	assert_int_equal(got.error, -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
	read_trace(path, NULL, &got);
	assert_int_equal(got.error, -EBADMSG);
	unlink(path);
	read_trace("/", NULL, &got);
	assert_int_equal(got.error, -EISDIR);
}

static void larger_minor_versions_are_read(void **state)
{
	const char *path = test_path("minor");
	struct st_file_head head = test_head("");

	(void)state;
	head.minor = ST_FORMAT_MINOR + 7;
	make_trace(path, &head, BLOCKS, EACH, true);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, BLOCKS * EACH);
	assert_int_equal(got.summary.problem_count, 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_traces_come_whole),
		cmocka_unit_test(a_second_pass_says_the_same),
		cmocka_unit_test(cuts_cost_what_is_behind_them),
		cmocka_unit_test(flipped_bytes_cost_one_block),
		cmocka_unit_test(missing_blocks_are_counted),
		cmocka_unit_test(repetitions_come_once),
		cmocka_unit_test(garbage_between_blocks_is_passed_over),
		cmocka_unit_test(a_second_trace_behind_is_not_mixed_in),
		cmocka_unit_test(foreign_files_are_refused),
		cmocka_unit_test(larger_minor_versions_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
