/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the trace file: what was appended is read back by zstd alone, in order and whole; a block
 * that cannot be written leaves no torn bytes and loses nothing; the file is whole after every
 * trace_finish; what another recorder left can be gone on with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/trace.h"
#include "preload/recorder/tracescan.h"
#include "trace_back.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

static char folder[64], path[128];

static int set_up(void **state)
{
	(void)state;
	back_make_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/run.zst", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	back_remove_folder(folder);
	return 0;
}

static struct trace *make_trace(const struct trace_options *options)
{
	struct st_file_head head = back_head(7, 8);
	struct trace *trace = NULL;

	assert_int_equal(trace_create(path, &head, options, &trace), 0);
	return trace;
}

/* A record that does not compress: its fields are a generator's. */
static int append_noise(struct trace *trace, uint64_t seq)
{
	static uint64_t noise = 1;
	struct st_ev_copy copy = {.r = {.seq = seq, .kind = ST_KIND_copy, .words = sizeof(copy) / 8}};
	uint64_t *field = &copy.dst;

	for (; field <= &copy.stack; field++)
		*field = noise = noise * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return trace_append(trace, &copy.r);
}

/* seq of the copies must run from 1 to count. */
static void check_copies(const struct trace_back *back, uint64_t count)
{
	uint64_t next = 1;
	size_t i;

	for (i = 0; i < back->number; i++)
		if (back->record[i]->kind == ST_KIND_copy)
			assert_int_equal(back->record[i]->seq, next++);
	assert_int_equal(next - 1, count);
}

static void check_trailer(const struct trace_back *back, uint64_t lost)
{
	const struct st_ev_trailer *trailer = (const void *)back_last(back);

	assert_int_equal(trailer->r.kind, ST_KIND_trailer);
	assert_int_equal(trailer->blocks, back->blocks);
	assert_int_equal(trailer->records, back->number);
	assert_int_equal(trailer->lost, lost);
	assert_int_equal(back_count(back, ST_KIND_trailer), 1);
}

static void test_round_trip(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct trace_back *back;
	unsigned char *file;
	struct st_file_head head;
	struct stat stat_now;
	uint64_t i;

	(void)state;
	for (i = 1; i <= 3000; i++) {
		assert_int_equal(append_noise(trace, i), 0);
		if (i % 1000 == 0)
			assert_int_equal(trace_flush(trace), 0);
	}
	assert_int_equal(trace_flush(trace), 0); /* nothing: no empty block */
	assert_int_equal(trace_finish(trace, 5), 0);
	trace_free(trace);
	back = back_read(path);
	assert_int_equal(back->blocks, 4);
	check_copies(back, 3000);
	check_trailer(back, 5);
	assert_int_equal(back->record[0]->kind, ST_KIND_block);
	assert_int_equal(((const struct st_ev_block *)(const void *)back->record[1001])->number, 1);
	assert_true(((const struct st_ev_block *)(const void *)back->record[0])->realtime >
	            1600000000000000000u);
	assert_true(back_read_file(path, &file) > BACK_HEAD);
	memcpy(&head, file + 8, sizeof(head));
	assert_int_equal(*(uint32_t *)(void *)file, ST_SKIPPABLE_MAGIC);
	assert_int_equal(head.pid, 7);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 0777, 0600);
	free(file);
	back_free(back);
}

static void flip(uint64_t at)
{
	int fd = open(path, O_RDWR);
	unsigned char byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

/* Whatever bit of a block changes, its records come back as they were or not at all. */
static void test_checksum(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct trace_back *good, *back;
	unsigned damaged = 0;
	uint64_t at, end;

	(void)state;
	append_noise(trace, 1);
	assert_int_equal(trace_flush(trace), 0);
	end = trace_written(trace);
	trace_free(trace);
	good = back_read(path);
	for (at = BACK_HEAD; at < end; at++) {
		flip(at);
		back = back_read(path);
		damaged += back->blocks < 0;
		if (back->blocks > 0)
			assert_memory_equal(back->raw, good->raw, good->bytes);
		back_free(back);
		flip(at);
	}
	assert_true(damaged > (end - BACK_HEAD) / 10 * 9);
	back_free(good);
}

static void test_never_over_another(void **state)
{
	struct st_file_head head = back_head(1, 1);
	struct trace *trace = make_trace(NULL), *none = NULL;

	(void)state;
	append_noise(trace, 1);
	assert_int_equal(trace_flush(trace), 0);
	assert_int_equal(trace_create(path, &head, NULL, &none), -EEXIST);
	assert_null(none);
	trace_free(trace);
	check_copies(back_read(path), 1);
	assert_int_equal(trace_create("/proc/none/run.zst", &head, NULL, &none), -ENOENT);
}

static void test_given_blocks(void **state)
{
	const struct trace_clocks clocks = {.monotonic = 11, .realtime = 12};
	const struct trace_options options = {.clocks = &clocks};
	struct st_ev_block block = {.r = {.kind = ST_KIND_block, .words = sizeof(block) / 8, .time = 77}};
	struct trace *trace = make_trace(&options);
	struct trace_back *back;

	(void)state;
	block.number = 3;
	block.synced = 99;
	assert_int_equal(trace_append(trace, &block.r), 0);
	append_noise(trace, 1);
	block.number = 9;
	assert_int_equal(trace_append(trace, &block.r), 0);
	append_noise(trace, 2);
	assert_int_equal(trace_finish(trace, 0), 0);
	trace_free(trace);
	back = back_read(path);
	assert_int_equal(back->blocks, 3);
	block.number = 3;
	assert_memory_equal(back->record[0], &block, sizeof(block));
	block.number = 9;
	assert_memory_equal(back->record[2], &block, sizeof(block));
	assert_int_equal(((const struct st_ev_block *)(const void *)back->record[4])->number, 10);
	assert_int_equal(((const struct st_ev_block *)(const void *)back->record[4])->monotonic, 11);
	check_copies(back, 2);
	back_free(back);
}

/* After the trailer more may come: each finish leaves a whole file. */
static void test_finish_again(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct trace_back *back;
	uint64_t i;

	(void)state;
	append_noise(trace, 1);
	for (i = 2; i < 200; i++) {
		assert_int_equal(trace_finish(trace, i), 0);
		back = back_read(path);
		check_copies(back, i - 1);
		check_trailer(back, i);
		back_free(back);
		append_noise(trace, i);
	}
	/* A flush in between counts the trailer's block as any other, and the next finish goes behind it. */
	assert_int_equal(trace_flush(trace), 0);
	assert_int_equal(trace_finish(trace, 1), 0);
	back = back_read(path);
	check_copies(back, 199);
	check_trailer(back, 1);
	assert_int_equal(back->blocks, 3);
	back_free(back);
	trace_free(trace);
}

static void set_limit(uint64_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* The limit lets a part of a block through, as a full disk does: that part must go again. */
static void test_no_room(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct trace_back *back;
	struct stat stat_now;
	uint64_t i, whole;

	(void)state;
	for (i = 1; i <= 1000; i++)
		append_noise(trace, i);
	assert_int_equal(trace_flush(trace), 0);
	whole = trace_written(trace);
	set_limit(whole + 1000);
	for (; i <= 2000; i++)
		assert_int_equal(append_noise(trace, i), 0);
	assert_int_equal(trace_flush(trace), -EFBIG);
	assert_int_equal(trace_finish(trace, 0), -EFBIG);
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_size, whole);
	for (; i <= 3000; i++)
		assert_int_equal(append_noise(trace, i), 0);
	set_limit(UINT64_MAX);
	assert_int_equal(trace_finish(trace, 0), 0);
	trace_free(trace);
	back = back_read(path);
	check_copies(back, 3000);
	check_trailer(back, 0);
	back_free(back);
}

/* With no room for long, memory stays bounded, and what append has taken is not lost. */
static void test_no_room_for_long(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct trace_back *back;
	uint64_t taken = 0;

	(void)state;
	set_limit(trace_written(trace));
	while (taken < 1000000 && !append_noise(trace, taken + 1))
		taken++;
	assert_true(taken > 1000 && taken < 1000000);
	assert_true(trace_pending(trace) <= ST_BLOCK_MAX);
	assert_int_equal(append_noise(trace, 0), -EFBIG);
	set_limit(UINT64_MAX);
	assert_int_equal(append_noise(trace, ++taken), 0);
	assert_int_equal(trace_finish(trace, 0), 0);
	trace_free(trace);
	back = back_read(path);
	check_copies(back, taken);
	check_trailer(back, 0);
	back_free(back);
}

static void test_bad_length(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct st_record record = {.kind = ST_KIND_info, .words = 2};

	(void)state;
	assert_int_equal(trace_append(trace, &record), -EINVAL);
	record.kind = ST_KIND_block;
	record.words = 4;
	assert_int_equal(trace_append(trace, &record), -EINVAL);
	assert_int_equal(trace_pending(trace), 0);
	trace_free(trace);
}

/* A recorder died in the middle of a block; the next one cuts that off and goes on. */
static void test_go_on(void **state)
{
	struct trace *trace = make_trace(NULL);
	struct trace_options options = {0};
	struct st_file_head head;
	struct tracescan scan;
	struct trace_back *back;
	uint64_t whole, i;
	int fd;

	(void)state;
	for (i = 1; i <= 500; i++) {
		append_noise(trace, i);
		if (i % 100 == 0)
			assert_int_equal(trace_flush(trace), 0);
	}
	whole = trace_written(trace);
	append_noise(trace, 501);
	assert_int_equal(trace_flush(trace), 0);
	trace_free(trace);
	assert_int_equal(truncate(path, (off_t)whole + 30), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(tracescan_head(fd, &head), 0);
	assert_int_equal(head.start_time, 8);
	assert_int_equal(tracescan_blocks(fd, &scan), 0);
	assert_int_equal(scan.end, whole);
	assert_int_equal(scan.blocks, 5);
	assert_int_equal(scan.records, 505);
	assert_false(scan.trailer);
	options.offset = scan.end;
	options.blocks = scan.blocks;
	options.records = scan.records;
	assert_int_equal(trace_create_fd(fd, &head, &options, &trace), 0);
	append_noise(trace, 501);
	assert_int_equal(trace_finish(trace, 0), 0);
	back = back_read(path);
	check_copies(back, 501);
	check_trailer(back, 0);
	back_free(back);
	assert_int_equal(tracescan_blocks(fd, &scan), 0);
	assert_true(scan.trailer);
	trace_free(trace);
}

static void test_no_trace(void **state)
{
	struct st_file_head head;
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	(void)state;
	assert_int_equal(tracescan_head(fd, &head), -EINVAL);
	assert_int_equal(ftruncate(fd, 5000), 0);
	assert_int_equal(tracescan_head(fd, &head), -EINVAL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_checksum, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_never_over_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_given_blocks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_finish_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room_for_long, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_length, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_go_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_trace, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
