/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the parsers of /proc against texts of several kernels: the right lines, the right units,
 * and "unknown" where a kernel says nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/recorder/procfs.h"

#include <string.h>
#include <unistd.h>

static struct st_ev_sample unknown_sample(void)
{
	struct st_ev_sample sample;

	memset(&sample, 0xff, sizeof(sample));
	return sample;
}

static void test_meminfo(void **state)
{
	static const char text[] =
		"MemTotal:       24684084 kB\nMemFree:        22562596 kB\nMemAvailable:   23922032 kB\n"
		"Cached:          1576464 kB\nSwapCached:           11 kB\nActive:           833208 kB\n"
		"Active(anon):      12345 kB\nShmem:             13008 kB\nShmemHugePages:     7 kB\n"
		"SwapTotal:             0 kB\nHugePages_Total:       3\n";
	struct st_ev_sample sample = unknown_sample();

	(void)state;
	procfs_parse_meminfo(text, &sample);
	assert_int_equal(sample.mem_total, 24684084ull * 1024);
	assert_int_equal(sample.mem_free, 22562596ull * 1024);
	assert_int_equal(sample.mem_available, 23922032ull * 1024);
	assert_int_equal(sample.cached, 1576464ull * 1024); /* not SwapCached */
	assert_int_equal(sample.active, 833208ull * 1024);  /* not Active(anon) */
	assert_int_equal(sample.shmem, 13008ull * 1024);
	assert_int_equal(sample.swap_total, 0);
	assert_int_equal(sample.cma_total, ST_UNKNOWN); /* x86 kernels without CMA */
	assert_int_equal(sample.swap_free, ST_UNKNOWN);
}

static void test_status(void **state)
{
	struct st_ev_sample sample = unknown_sample();

	(void)state;
	procfs_parse_status("Name:\tVmHWM: 5 kB\nVmHWM:\t   4096 kB\nVmRSS:\t 1 kB\nRssAnon:\t    104 kB\n"
	                    "RssFile:\t   1024 kB\nRssShmem:\t       8 kB\nVmSwap:\t       0 kB\n",
	                    &sample);
	assert_int_equal(sample.rss_peak, 4096 * 1024);
	assert_int_equal(sample.rss_anon, 104 * 1024);
	assert_int_equal(sample.rss_file, 1024 * 1024);
	assert_int_equal(sample.rss_shmem, 8 * 1024);
	assert_int_equal(sample.swap, 0);
	sample = unknown_sample();
	procfs_parse_status("Name:\tpython3\nState:\tZ (zombie)\n", &sample);
	assert_int_equal(sample.rss_anon, ST_UNKNOWN);
	assert_int_equal(procfs_parse_own("RssAnon:\t 4 kB\nRssFile:\t 9 kB\nRssShmem:\t 8 kB\n"), 12 * 1024);
	assert_int_equal(procfs_parse_own(""), ST_UNKNOWN);
}

static void test_vmstat(void **state)
{
	struct st_ev_sample sample = unknown_sample();

	(void)state;
	procfs_parse_vmstat(
		"workingset_refault_anon 3\nworkingset_refault_file 41448\npgsteal_direct 17\n"
		"pgsteal_direct_throttle 1\nallocstall_dma 1\nallocstall_normal 20\nallocstall_movable 300\n"
		"compact_fail 5\noom_kill 2\n",
		&sample);
	assert_int_equal(sample.refaults, 41448);
	assert_int_equal(sample.reclaimed, 17);
	assert_int_equal(sample.stalls, 321); /* the sum over the zones */
	assert_int_equal(sample.compact_fails, 5);
	assert_int_equal(sample.oom_kills, 2);
}

static void test_pressure(void **state)
{
	struct st_ev_sample sample = unknown_sample();

	(void)state;
	procfs_parse_pressure("some avg10=1.53 avg60=0.00 avg300=0.00 total=123456789012\n"
	                      "full avg10=0.00 avg60=0.00 avg300=0.00 total=42\n",
	                      &sample);
	assert_int_equal(sample.psi_some, 123456789012ull);
	assert_int_equal(sample.psi_full, 42);
}

/* 6.18's layout: per-CPU high_min and high_max must not count as the zone's watermark. */
static void test_zoneinfo(void **state)
{
	static const char text[] =
		"Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 21692\n  pages free     "
		"2816\n"
		"        boost    0\n        min      8\n        low      10\n        high     12\n"
		"        promo    14\n        spanned  4095\n  pagesets\n    cpu: 0\n"
		"              count:    5\n              high:     20\n              batch:    1\n"
		"              high_min: 9\n              high_max: 99\n    cpu: 1\n"
		"              count:    7\n              high:     20\n"
		"Node 0, zone   Normal\n  pages free     1\n        high     100\n  pagesets\n    cpu: 0\n"
		"              count: 1000\n              high: 5\n";
	struct st_ev_sample sample = unknown_sample();

	(void)state;
	procfs_parse_zoneinfo(text, 4096, &sample);
	assert_int_equal(sample.percpu_free, 1012 * 4096);
	assert_int_equal(sample.watermark, 112 * 4096);
	sample = unknown_sample();
	procfs_parse_zoneinfo("", 4096, &sample);
	assert_int_equal(sample.percpu_free, ST_UNKNOWN);
}

/* Bytes from storage, not what read() returned. */
static void test_io(void **state)
{
	struct st_ev_sample sample = unknown_sample();

	(void)state;
	procfs_parse_io("rchar: 7\nwchar: 1\nsyscr: 2\nread_bytes: 8192\nwrite_bytes: 3\n", &sample);
	assert_int_equal(sample.io_read, 8192);
	sample = unknown_sample();
	procfs_parse_io("", &sample);
	assert_int_equal(sample.io_read, ST_UNKNOWN);
}

static void test_stat(void **state)
{
	static const char text[] =
		"42 (a) b (c)) Z 17 42 42 0 -1 4194560 123 0 5 0 1 2 3 4 20 0 1 0 123456789 0 0 "
		"18446744073709551615 94000 95000 140737488347152 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 2 3 4 5 "
		"6 7 9";
	struct procfs_stat stat;

	(void)state;
	assert_int_equal(procfs_parse_stat(text, &stat), 0);
	assert_int_equal(stat.state, 'Z');
	assert_int_equal(stat.ppid, 17);
	assert_int_equal(stat.major_faults, 5);
	assert_int_equal(stat.start_time, 123456789);
	assert_int_equal(stat.start_stack, 140737488347152);
	assert_int_equal(stat.exit_code, 9);
	assert_true(procfs_parse_stat("42 (x", &stat) < 0);
	assert_true(procfs_parse_stat("42 (x) R 1 2", &stat) < 0);
	assert_true(procfs_is_alive((uint32_t)getpid(), 0) == false);
	assert_int_equal(procfs_read_stat((uint32_t)getpid(), &stat), 0);
	assert_int_equal(stat.ppid, getppid());
	assert_true(procfs_is_alive((uint32_t)getpid(), stat.start_time));
}

static void test_map(void **state)
{
	char line[] = "7f492f844000-7f492f99a000 r-xp 00026000 fe:00 1234567                    /usr/lib/a "
		      "b.so (deleted)\n";
	char bare[] = "7ffd1000-7ffd2000 rw-s 00000000 00:00 0 \n";
	char bad[] = "hello\n";
	struct procfs_map map;

	(void)state;
	assert_int_equal(procfs_parse_map(line, &map), 0);
	assert_int_equal(map.start, 0x7f492f844000);
	assert_int_equal(map.end, 0x7f492f99a000);
	assert_int_equal(map.offset, 0x26000);
	assert_int_equal(map.ino, 1234567);
	assert_true(map.read && !map.write && map.execute && map.private);
	assert_string_equal(map.path, "/usr/lib/a b.so (deleted)");
	assert_int_equal(procfs_parse_map(bare, &map), 0);
	assert_true(map.write && !map.private);
	assert_string_equal(map.path, "");
	assert_true(procfs_parse_map(bad, &map) < 0);
}

static void test_cgroup(void **state)
{
	char path[64];
	bool version1;

	(void)state;
	assert_int_equal(procfs_parse_cgroup("0::/user.slice/a\n", path, sizeof(path), &version1), 0);
	assert_string_equal(path, "/user.slice/a");
	assert_false(version1);
	assert_int_equal(procfs_parse_cgroup("0::/x\n12:cpu,cpuacct:/c\n5:memory:/docker/1\n", path,
	                                     sizeof(path), &version1),
	                 0);
	assert_string_equal(path, "/docker/1");
	assert_true(version1);
	assert_true(procfs_parse_cgroup("3:cpu:/memory:x\n", path, sizeof(path), &version1) < 0);
	assert_int_equal(procfs_parse_limit("max\n"), ST_UNKNOWN);
	assert_int_equal(procfs_parse_limit("9223372036854771712\n"), ST_UNKNOWN);
	assert_int_equal(procfs_parse_limit("4096\n"), 4096);
}

static void test_statm(void **state)
{
	(void)state;
	assert_int_equal(procfs_parse_statm("1000 300 100 1 0 5 0", 4096), 200 * 4096);
	assert_int_equal(procfs_parse_statm("0 0 0 0 0 0 0", 4096), 0);
	assert_int_equal(procfs_parse_statm("", 4096), 0);
}

/* Only the line of that name: SwapPss and Pss_Dirty stand beside it. */
static void test_private(void **state)
{
	(void)state;
	assert_int_equal(
		procfs_parse_private("55-7ff ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss_Dirty: 5 kB\n"
	                             "Shared_Dirty:       8 kB\nPrivate_Clean:  16 kB\n"
	                             "Private_Dirty:     12 kB\nReferenced: 1 kB\n"),
		12 * 1024);
	assert_int_equal(procfs_parse_private(""), ST_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meminfo),  cmocka_unit_test(test_status),
		cmocka_unit_test(test_vmstat),   cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_zoneinfo), cmocka_unit_test(test_stat),
		cmocka_unit_test(test_io),       cmocka_unit_test(test_map),
		cmocka_unit_test(test_cgroup),   cmocka_unit_test(test_statm),
		cmocka_unit_test(test_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
