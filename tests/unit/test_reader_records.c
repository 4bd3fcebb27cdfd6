/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects single records: whoever reads may cast one to the struct of its kind, whatever version or vandal wrote
 * it; and blocks that no writer of ours makes are refused without harm.
 */
#include "trace_file.h"

#include <zstd.h>

static struct got got;

struct content {
	uint64_t words[1 << 16];
	size_t count;
};

static struct content content;

static void add(const void *record, size_t words)
{
	memcpy(content.words + content.count, record, words * 8);
	content.count += words;
}

static void add_block(uint64_t number)
{
	const struct st_ev_block block = {.r = {.kind = ST_KIND_block, .words = sizeof(block) / 8},
	                                  .number = number,
	                                  .synced = 100 + number};

	add(&block, sizeof(block) / 8);
}

static void add_free(uint64_t address)
{
	struct st_ev_free record = make_free(address * sizeof(record), address);

	add(&record, sizeof(record) / 8);
}

/* A file with head, or `content` as one more frame behind it. */
static void begin_file(const char *path)
{
	struct st_file_head head = test_head("");

	make_trace(path, &head, 0, 0, false);
	content.count = 0;
}

static void end_frame(const char *path, bool checksum, bool size)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(content.count * 8), bytes;
	unsigned char *frame = malloc(room);
	FILE *file = fopen(path, "ab");

	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, checksum);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, size);
	bytes = ZSTD_compress2(zstd, frame, room, content.words, content.count * 8);
	assert_false(ZSTD_isError(bytes));
	assert_int_equal(fwrite(frame, 1, bytes, file), bytes);
	fclose(file);
	free(frame);
	ZSTD_freeCCtx(zstd);
	content.count = 0;
}

static void short_records_are_completed(void **state)
{
	const char *path = test_path("short");
	struct st_ev_sample sample = {.r = {.kind = ST_KIND_sample, .words = 5, .time = 9},
	                              .reason = ST_MOMENT_EXIT,
	                              .mem_total = 100};
	struct st_ev_map map = {.r = {.kind = ST_KIND_map, .words = 3}};
	struct st_ev_file file = {.r = {.kind = ST_KIND_file, .words = 4}, .id = 3};
	const struct st_record *record;
	struct reader *reader;

	(void)state;
	begin_file(path);
	add_block(0);
	add(&sample, 5);
	add(&map, 3);
	add(&file, 4);
	end_frame(path, true, true);
	assert_int_equal(reader_open(path, &reader), 0);
	assert_int_equal(reader_next(reader, &record), 1);
	assert_int_equal(reader_next(reader, &record), 1);
	sample = *(const struct st_ev_sample *)record;
	assert_int_equal(sample.r.words, sizeof(sample) / 8);
	assert_int_equal(sample.mem_total, 100);
	assert_true(sample.mem_free == ST_UNKNOWN);
	assert_true(sample.cgroup_limit == ST_UNKNOWN);
	assert_int_equal(reader_raw(reader)->words, 5);
	assert_int_equal(reader_next(reader, &record), 1);
	map = *(const struct st_ev_map *)record;
	assert_int_equal(map.size, 0);
	assert_int_equal(map.stack, 0);
	assert_int_equal(reader_next(reader, &record), 1);
	assert_int_equal(((const struct st_ev_file *)record)->id, 3);
	assert_int_equal(((const struct st_ev_file *)record)->size, 0);
	assert_int_equal(reader_next(reader, &record), 0);
	assert_int_equal(reader_summary(reader)->problem_count, 0);
	reader_free(reader);
	unlink(path);
}

static void longer_and_unknown_records_pass(void **state)
{
	const char *path = test_path("long");
	struct {
		struct st_ev_free record;
		uint64_t more[2];
	} longer = {.record = make_free(0, 8), .more = {1, 2}};
	const struct st_record unknown = {.kind = 9999, .words = 3};
	const struct st_record *record;
	struct reader *reader;

	(void)state;
	longer.record.r.words += 2;
	begin_file(path);
	add_block(0);
	add(&longer, sizeof(longer) / 8);
	add(&unknown, 3);
	end_frame(path, true, true);
	assert_int_equal(reader_open(path, &reader), 0);
	assert_int_equal(reader_next(reader, &record), 1);
	assert_int_equal(reader_next(reader, &record), 1);
	assert_memory_equal(record, &longer, sizeof(longer));
	assert_int_equal(reader_next(reader, &record), 1);
	assert_int_equal(record->kind, 9999);
	assert_int_equal(reader_next(reader, &record), 0);
	reader_free(reader);
	unlink(path);
}

/* What stands before a record of impossible length is kept, and so are the other blocks. */
static void impossible_lengths_cost_the_rest_of_the_block(void **state)
{
	static const uint16_t lengths[] = {0, 1, 2, 5, UINT16_MAX};
	const char *path = test_path("lengths");

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		const struct st_record bad = {.kind = ST_KIND_free, .words = lengths[i]};

		begin_file(path);
		add_block(0);
		add_free(0);
		add(&bad, 3);
		end_frame(path, true, true);
		add_block(1);
		add_free(1);
		end_frame(path, true, true);
		read_trace(path, NULL, &got);
		assert_run(&got, 0, 2);
		assert_true(got.summary.damaged);
		assert_int_equal(got.summary.problem_count, 1);
		assert_int_equal(got.summary.problems[0].offset, 8 + sizeof(struct st_file_head));
		assert_non_null(strstr(got.summary.problems[0].text, "byte 112 of this block"));
	}
	unlink(path);
}

enum wrong { NO_CHECKSUM, NO_SIZE, NO_BLOCK_RECORD, SHORT_BLOCK_RECORD, ODD_BYTES, WRONG_COUNT };

static void end_wrong_frame(const char *path, enum wrong wrong)
{
	static const unsigned char odd[] = "\x28\xB5\x2F\xFD\x24\x51"; /* one segment of 81 bytes, cut */

	if (wrong == ODD_BYTES) {
		FILE *file = fopen(path, "ab");

		assert_int_equal(fwrite(odd, 1, sizeof(odd), file), sizeof(odd));
		fclose(file);
		return;
	}
	if (wrong != NO_BLOCK_RECORD)
		add_block(1);
	if (wrong == SHORT_BLOCK_RECORD)
		((struct st_record *)content.words)->words = 9;
	add_free(100);
	end_frame(path, wrong != NO_CHECKSUM, wrong != NO_SIZE);
}

static void blocks_that_are_none_are_skipped(void **state)
{
	const char *path = test_path("none");

	(void)state;
	for (enum wrong wrong = 0; wrong < WRONG_COUNT; wrong++) {
		begin_file(path);
		add_block(0);
		add_free(0);
		end_frame(path, true, true);
		content.count = 0;
		end_wrong_frame(path, wrong);
		content.count = 0;
		add_block(1);
		add_free(1);
		end_frame(path, true, true);
		read_trace(path, NULL, &got);
		assert_run(&got, 0, 2);
		assert_int_equal(got.summary.damaged_blocks, 1);
		assert_int_equal(got.summary.missing_blocks, 0);
	}
	unlink(path);
}

/* A frame that says it is larger than a block is not even tried. */
static void large_blocks_are_refused(void **state)
{
	const char *path = test_path("large");
	size_t bytes = ST_BLOCK_MAX + 8, room = ZSTD_compressBound(bytes);
	void *zeros = calloc(1, bytes), *frame = malloc(room);
	FILE *file;

	(void)state;
	begin_file(path);
	room = ZSTD_compress(frame, room, zeros, bytes, 1);
	((unsigned char *)frame)[4] |= 4; /* as if it had a checksum */
	file = fopen(path, "ab");
	assert_int_equal(fwrite(frame, 1, room, file), room);
	fclose(file);
	add_block(0);
	add_free(0);
	end_frame(path, true, true);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 1);
	assert_non_null(strstr(got.summary.problems[0].text, "larger than the format allows"));
	free(zeros);
	free(frame);
	unlink(path);
}

/*
 * Frames that decompress to 4 MiB each and are then no blocks, 20,000 of them: without a limit on failed tries
 * this file of 3 MB would keep the reader busy for minutes.
 */
static void bombs_end_soon(void **state)
{
	const char *path = test_path("bomb");
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(ST_BLOCK_MAX), bytes;
	void *zeros = calloc(1, ST_BLOCK_MAX), *frame = malloc(room);
	FILE *file;

	(void)state;
	begin_file(path);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	bytes = ZSTD_compress2(zstd, frame, room, zeros, ST_BLOCK_MAX);
	file = fopen(path, "ab");
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(fwrite(frame, 1, bytes, file), bytes);
	fclose(file);
	read_trace(path, NULL, &got);
	assert_run(&got, 0, 0);
	assert_true(got.summary.damaged);
	assert_non_null(strstr(got.summary.problems[0].text, "too much damage"));
	ZSTD_freeCCtx(zstd);
	free(zeros);
	free(frame);
	unlink(path);
}

/* The same with 50 GiB of good blocks that repeat each other. */
static void repeated_bombs_end_soon(void **state)
{
	const char *path = test_path("bomb2");
	unsigned char *data;
	size_t bytes, head = 8 + sizeof(struct st_file_head);
	FILE *file;

	(void)state;
	begin_file(path);
	add_block(0);
	content.count = sizeof(content.words) / 8; /* the rest is zeros: no records */
	end_frame(path, true, true);
	data = load(path, &bytes);
	file = fopen(path, "ab");
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(fwrite(data + head, 1, bytes - head, file), bytes - head);
	fclose(file);
	read_trace(path, NULL, &got);
	assert_true(got.summary.damaged);
	assert_in_range(got.summary.problem_count, 2, 1000);
	free(data);
	unlink(path);
}

static void the_summary_adds_up(void **state)
{
	const char *path = test_path("sums");
	const struct st_ev_lost lost = {.r = {.kind = ST_KIND_lost, .words = sizeof(lost) / 8, .time = 5000},
	                                .count = 7,
	                                .bytes = 700};

	(void)state;
	begin_file(path);
	add_block(0);
	add(&lost, sizeof(lost) / 8);
	end_frame(path, true, true);
	add_block(1);
	add(&lost, sizeof(lost) / 8);
	add_free(1);
	end_frame(path, true, true);
	read_trace(path, NULL, &got);
	assert_int_equal(got.summary.lost, 14);
	assert_int_equal(got.summary.lost_bytes, 1400);
	assert_int_equal(got.summary.last_synced, 101);
	assert_int_equal(got.summary.last_time, 5000);
	assert_int_equal(got.summary.records, 5);
	assert_int_equal(got.summary.blocks, 2);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_records_are_completed),
		cmocka_unit_test(longer_and_unknown_records_pass),
		cmocka_unit_test(impossible_lengths_cost_the_rest_of_the_block),
		cmocka_unit_test(blocks_that_are_none_are_skipped),
		cmocka_unit_test(large_blocks_are_refused),
		cmocka_unit_test(bombs_end_soon),
		cmocka_unit_test(repeated_bombs_end_soon),
		cmocka_unit_test(the_summary_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
