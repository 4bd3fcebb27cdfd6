/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the count of anonymous copies: exactly the pages written through a private mapping, by the scan
 * of new kernels and by the map of old ones alike; and the page cache of a file by cells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/cache.h"
#include "preload/recorder/pagemap.h"
#include "trace_back.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char folder[64], path[128];
static uint64_t page;

static int set_up(void **state)
{
	(void)state;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	back_make_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/weights", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	back_remove_folder(folder);
	return 0;
}

static int make_file(uint64_t bytes)
{
	static char zero[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	for (; bytes >= sizeof(zero); bytes -= sizeof(zero))
		assert_int_equal(write(fd, zero, sizeof(zero)), sizeof(zero));
	assert_int_equal(write(fd, zero, bytes), bytes);
	return fd;
}

/* Pages 3..5 and every fourth from 4096 on are written, all are read. */
static unsigned char *make_mapping(int fd, uint64_t pages)
{
	unsigned char *map = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	uint64_t i;

	assert_true(map != MAP_FAILED);
	madvise(map, pages * page, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++)
		(void)*(volatile unsigned char *)(map + i * page);
	for (i = 3; i <= 5; i++)
		map[i * page] = 1;
	for (i = 4096; i < pages; i += 4)
		map[i * page] = 1;
	return map;
}

static void check_ranges(struct pagemap *pagemap, uint64_t start, uint64_t pages)
{
	static struct pagemap_ranges ranges;
	uint64_t bytes = 0, at = start, end = start + pages * page, count = 0;

	while (at < end) {
		assert_int_equal(pagemap_find(pagemap, at, end, &ranges), 0);
		if (!count) {
			assert_int_equal(ranges.pairs[0][0], start + 3 * page);
			assert_int_equal(ranges.pairs[0][1], start + 6 * page);
			assert_int_equal(ranges.pairs[1][0], start + 4096 * page);
		}
		assert_true(ranges.next > at && ranges.next <= end);
		bytes += ranges.bytes;
		count += ranges.count;
		at = ranges.next;
	}
	assert_int_equal(bytes, (3 + (pages - 4096 + 3) / 4) * page);
	assert_int_equal(count, 1 + (pages - 4096 + 3) / 4);
}

static void test_written_pages(void **state)
{
	const uint64_t pages = 16384; /* more ranges than one answer holds */
	int fd = make_file(pages * page);
	unsigned char *map = make_mapping(fd, pages);
	struct pagemap pagemap;

	(void)state;
	assert_int_equal(pagemap_open(&pagemap, (uint32_t)getpid(), page), 0);
	check_ranges(&pagemap, (uintptr_t)map, pages);
	pagemap.old = true;
	check_ranges(&pagemap, (uintptr_t)map, pages);
	assert_int_equal(pagemap_source(&pagemap), ST_SOURCE_PAGEMAP);
	pagemap_close(&pagemap);
	munmap(map, pages * page);
	close(fd);
}

/* A process that was killed: that none of its pages is left does not mean that none was written. */
static void test_no_memory(void **state)
{
	static struct pagemap_ranges ranges;
	int fd = make_file(64 * page);
	unsigned char *map = make_mapping(fd, 64);
	uint64_t start = (uintptr_t)map;
	struct pagemap pagemap;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		for (;;)
			pause();
	assert_int_equal(pagemap_open(&pagemap, (uint32_t)pid, page), 0);
	assert_int_equal(pagemap_find(&pagemap, start, start + 64 * page, &ranges), 0);
	assert_int_equal(ranges.bytes, 3 * page);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(pagemap_find(&pagemap, start, start + 64 * page, &ranges), -ESRCH);
	pagemap_close(&pagemap);
	munmap(map, 64 * page);
	close(fd);
}

/* Present but the file's; swapped; absent: none of them is an anonymous page in memory. */
static void test_entries(void **state)
{
	static const uint64_t entries[] = {
		UINT64_C(1) << 63,       UINT64_C(1) << 63, UINT64_C(5) << 61, UINT64_C(1) << 62, 0,
		(UINT64_C(1) << 63) | 77};
	static struct pagemap_ranges ranges;

	(void)state;
	assert_true(pagemap_add_entries(&ranges, entries, 6, 0x10000, 0x1000));
	assert_int_equal(ranges.count, 2);
	assert_int_equal(ranges.pairs[0][1], 0x12000);
	assert_int_equal(ranges.pairs[1][0], 0x15000);
	assert_int_equal(ranges.bytes, 0x3000);
	assert_int_equal(ranges.next, 0x16000);
}

static const struct st_ev_cached *cached_record(const struct trace_back *back, size_t index)
{
	size_t i;

	for (i = 0; i < back->number; i++)
		if (back->record[i]->kind == ST_KIND_cached && !index--)
			return (const void *)back->record[i];
	return NULL;
}

/* Two cells; the second one, not whole, is dropped from the cache and read again in part. */
static void test_cells(void **state)
{
	const uint64_t size = ST_CELL + (4u << 20) + 100;
	struct st_ev_file file = {.id = 5, .size = size, .format = ST_FILE_SAFETENSORS};
	struct st_file_head head = back_head(1, 1);
	struct out out = {0};
	struct cache cache;
	struct trace_back *back;
	struct stat stat_now;
	char trace[128], text[4096];
	int fd = make_file(size);

	(void)state;
	fsync(fd);
	fstat(fd, &stat_now);
	file.dev = stat_now.st_dev;
	file.ino = stat_now.st_ino;
	snprintf(trace, sizeof(trace), "%s/run.zst", folder);
	assert_int_equal(trace_create(trace, &head, NULL, &out.trace), 0);
	cache_init(&cache, page);
	cache_add(&cache, &out, &file, "weights", folder);
	assert_int_equal(cache_look(&cache, &out), 0); /* nothing new, nothing written */
	assert_int_equal(posix_fadvise(fd, (off_t)ST_CELL, 0, POSIX_FADV_DONTNEED), 0);
	assert_int_equal(cache_look(&cache, &out), 1);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	assert_int_equal(pread(fd, text, sizeof(text), (off_t)ST_CELL), sizeof(text));
	assert_int_equal(cache_look(&cache, &out), 1);
	file.ino++;
	cache_add(&cache, &out, &file, "weights", folder); /* another file by now */
	assert_int_equal(trace_finish(out.trace, 0), 0);
	back = back_read(trace);
	assert_int_equal(back_count(back, ST_KIND_cached), 4);
	assert_int_equal(back_count(back, ST_KIND_coverage), 1);
	assert_int_equal(cached_record(back, 0)->cached, ST_CELL);
	assert_int_equal(cached_record(back, 1)->cached, size - ST_CELL);
	assert_int_equal(cached_record(back, 1)->offset, ST_CELL);
	assert_int_equal(cached_record(back, 2)->cached, 0);
	assert_int_equal(cached_record(back, 3)->cached, page);
	back_free(back);
	cache_release(&cache);
	trace_free(out.trace);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_written_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
		cmocka_unit_test(test_entries),
		cmocka_unit_test_setup_teardown(test_cells, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
