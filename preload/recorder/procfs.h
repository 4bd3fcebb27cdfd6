/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of /proc, parsed. Every function works on text in memory, so that tests can give it any;
 * what the text does not hold is left as it was (samples begin as ST_UNKNOWN).
 */
#ifndef SPARKTRACE_RECORDER_PROCFS_H
#define SPARKTRACE_RECORDER_PROCFS_H

#include <sparktrace/format.h>
#include <stdbool.h>
#include <stddef.h>

/* /proc/meminfo, /proc/PID/status, /proc/PID/io, /proc/vmstat, /proc/pressure/memory. */
void procfs_parse_meminfo(const char *text, struct st_ev_sample *sample);
void procfs_parse_status(const char *text, struct st_ev_sample *sample);
void procfs_parse_io(const char *text, struct st_ev_sample *sample);
void procfs_parse_vmstat(const char *text, struct st_ev_sample *sample);
void procfs_parse_pressure(const char *text, struct st_ev_sample *sample);

/* /proc/zoneinfo: pages in the per-CPU lists and the zones' high watermarks. */
void procfs_parse_zoneinfo(const char *text, uint64_t page_size, struct st_ev_sample *sample);

/* RssAnon + RssShmem of a /proc/PID/status, bytes; ST_UNKNOWN when it has neither (a zombie). */
uint64_t procfs_parse_own(const char *text);

/* Anonymous bytes of a /proc/PID/statm (resident - shared); 0 for kernel threads and zombies. */
uint64_t procfs_parse_statm(const char *text, uint64_t page_size);

/* Private_Dirty of a /proc/PID/smaps_rollup, bytes; ST_UNKNOWN where it has none. */
uint64_t procfs_parse_private(const char *text);

/* /proc/PID/stat. exit_code is the wait status, 0 where it may not be seen. */
struct procfs_stat {
	char state;
	uint32_t ppid, threads;
	uint64_t start_time;   /* clock ticks after boot */
	uint64_t start_stack;  /* changes with every exec, where addresses are random */
	uint64_t major_faults; /* of all threads so far */
	int exit_code;
};

/* 0 or -EINVAL. */
int procfs_parse_stat(const char *text, struct procfs_stat *ret_stat);

/* Nothing of it runs any more. A program whose first thread has ended (pthread_exit in main) is a zombie with others. */
bool procfs_is_over(const struct procfs_stat *stat);

/* A line of /proc/PID/maps. `path` points into the line. */
struct procfs_map {
	uint64_t start, end, offset, ino;
	uint32_t major, minor;
	bool read, write, execute, private;
	const char *path;
};

/* Takes the line apart and ends its path with NUL. 0 or -EINVAL. */
int procfs_parse_map(char *line, struct procfs_map *ret_map);

/*
 * The path of the memory cgroup in a /proc/PID/cgroup: of the version 1 controller if there is
 * one, else of version 2. 0, or -ENOENT.
 */
int procfs_parse_cgroup(const char *text, char *ret_path, size_t size, bool *ret_version1);

/* A cgroup limit or usage; ST_UNKNOWN for "max" and for what version 1 writes instead. */
uint64_t procfs_parse_limit(const char *text);

/* Reads a whole small file and ends it with NUL; cut at size - 1. Bytes or negative errno. */
long procfs_read(const char *path, char *ret_text, size_t size);

/* The same from offset 0 of an open file. */
long procfs_read_fd(int fd, char *ret_text, size_t size);

/* Reads /proc/PID/stat. 0 or negative errno (-ESRCH, -ENOENT: gone). */
int procfs_read_stat(uint32_t pid, struct procfs_stat *ret_stat);

/* Whether the process of this pid is the one that started then; a zombie is alive here. */
bool procfs_is_alive(uint32_t pid, uint64_t start_time);

#endif
