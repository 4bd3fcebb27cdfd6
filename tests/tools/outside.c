/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outside witness: runs a program and looks at it from a second process every few
 * milliseconds, knowing nothing of sparktrace. Tests compare its figures with the report's.
 *
 *	outside [-i MS] -o OUT.csv [-f FILE]... -- PROGRAM [ARGUMENT]...
 *
 * One row a look: time_ns (CLOCK_MONOTONIC, middle of the look), took_ns, free (MemFree plus the
 * per-CPU lists), anon_files (smaps `Anonymous` of mappings of the FILEs), rss_anon (RssAnon less
 * anon_files), device (bytes of the memfd simcuda-device), cached (cachestat of all FILEs), mapped
 * (length of all mappings of the FILEs).
 * All in bytes; -1 is "could not be had". The exit status is the program's (128 + signal).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

#define FILES_MAX 64

struct watch {
	const char *name[FILES_MAX];
	int fd[FILES_MAX];
	int count;
};

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Bytes on the per-CPU free lists: zoneinfo has one `count:` a CPU and zone. */
static long long percpu_free(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	long long pages = 0, n;
	char line[256];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lld", &n) == 1)
			pages += n;
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static long long keyed_kb(const char *path, const char *key)
{
	FILE *f = fopen(path, "r");
	long long kb = -1;
	char line[256];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key))) {
			kb = atoll(line + strlen(key));
			break;
		}
	fclose(f);
	return kb < 0 ? -1 : kb * 1024;
}

static int is_watched(const struct watch *w, const char *line)
{
	for (int i = 0; i < w->count; i++)
		if (strstr(line, w->name[i]))
			return 1;
	return 0;
}

struct mapped {
	long long anon, device, files;
};

static void smaps(pid_t pid, const struct watch *w, struct mapped *m)
{
	char path[64], line[4608];
	int mine = 0, dev = 0;
	long long kb;
	FILE *f;

	*m = (struct mapped){-1, -1, -1};
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return;
	*m = (struct mapped){0, 0, 0};
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			mine = is_watched(w, line);
			m->files += mine ? (long long)(to - from) : 0;
			dev = strstr(line, "memfd:simcuda-device") != NULL;
		} else if (mine && sscanf(line, "Anonymous: %lld", &kb) == 1) {
			m->anon += kb * 1024;
		} else if (dev && sscanf(line, "Rss: %lld", &kb) == 1) {
			m->device += kb * 1024;
		}
	}
	fclose(f);
}

static long long cached(const struct watch *w)
{
	long long pages = 0;

	for (int i = 0; i < w->count; i++) {
		struct {
			unsigned long long off, len;
		} range = {0, 0};
		unsigned long long cs[5];

		if (w->fd[i] < 0 || syscall(SYS_cachestat, w->fd[i], &range, cs, 0))
			return -1;
		pages += (long long)cs[0];
	}
	return pages * sysconf(_SC_PAGESIZE);
}

static void look(FILE *out, pid_t pid, const struct watch *w)
{
	long long t = now_ns(), rss, mem, percpu;
	struct mapped m;
	char path[64];

	mem = keyed_kb("/proc/meminfo", "MemFree:");
	percpu = percpu_free();
	smaps(pid, w, &m);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	rss = keyed_kb(path, "RssAnon:");
	if (rss >= 0 && m.anon > 0)
		rss -= m.anon;
	fprintf(out, "%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld\n", (t + now_ns()) / 2, now_ns() - t,
	        mem < 0 || percpu < 0 ? -1 : mem + percpu, m.anon, rss, m.device, cached(w), m.files);
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		const char *preload = getenv("OUTSIDE_PRELOAD");

		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		unsetenv("OUTSIDE_PRELOAD");
		execvp(argv[0], argv);
		fprintf(stderr, "outside: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	return pid;
}

static int follow(FILE *out, pid_t pid, const struct watch *w, int interval_ms)
{
	struct timespec pause = {0, interval_ms * 1000000L};
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		look(out, pid, w);
		nanosleep(&pause, NULL);
	}
	look(out, pid, w); /* the program is gone: of the machine and the files */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct watch w = {.count = 0};
	int opt, interval = 10, status;
	FILE *out = NULL;

	while ((opt = getopt(argc, argv, "+i:o:f:")) != -1) {
		if (opt == 'i')
			interval = atoi(optarg);
		else if (opt == 'o')
			out = fopen(optarg, "w");
		else if (opt == 'f' && w.count < FILES_MAX)
			w.name[w.count++] = optarg;
		else
			return 2;
	}
	if (!out || optind >= argc || interval < 1) {
		fprintf(stderr, "usage: outside [-i MS] -o OUT.csv [-f FILE]... -- PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	for (int i = 0; i < w.count; i++)
		w.fd[i] = open(w.name[i], O_RDONLY | O_CLOEXEC);
	fprintf(out, "time_ns,took_ns,free,anon_files,rss_anon,device,cached,mapped\n");
	status = follow(out, start(argv + optind), &w, interval);
	fclose(out);
	return status;
}
