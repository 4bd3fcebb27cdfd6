/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparktrace-recorder RINGPATH: writes the trace of the program whose ring that is.
 *
 * Started by libsparktrace.so with all descriptors closed, in a session of its own, in "/"; by hand on a
 * ring for debugging. Everything it needs to know stands in the ring's head.
 */
#include "ringfile.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NICE 5 /* behind the program, but not behind everything when the machine is short of breath */

/* Descriptors 0 to 2 exist, so that no file of ours becomes one of them. */
static int open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		errno = 0; /* not permitted, then not */
	close(fd);
}

/* The program's limit is inherited, and each weight file is one descriptor here. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The thread that started us may be one that nothing else runs beside; to give that up is always allowed. */
static void leave_real_time(void)
{
	const struct sched_param none = {0};
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	if (policy == SCHED_FIFO || policy == SCHED_RR)
		sched_setscheduler(0, SCHED_OTHER, &none);
}

/* What killed the program must not kill its recorder, and whoever is killed first should be neither. */
static void settle(void)
{
	static const int ignored[] = {SIGHUP, SIGPIPE, SIGXFSZ, SIGXCPU, SIGTTOU, SIGTTIN, SIGCHLD};
	size_t i;

	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	leave_real_time();
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
	raise_descriptors();
	write_text("/proc/self/oom_score_adj", "-900");
	umask(077);
}

/* Another recorder that clears up may be looking at the ring just now. */
static int open_ring(const char *path, struct ringfile *ret_file)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int err, tries = 0;

	while ((err = ringfile_open(path, ret_file)) == -EWOULDBLOCK && tries++ < 100)
		nanosleep(&pause, NULL);
	return err;
}

int main(int argc, char **argv)
{
	struct ringfile file;
	struct stat stat_now;
	int err;

	if (open_standard())
		return 1;
	if (argc != 2) {
		fprintf(stderr, "usage: sparktrace-recorder RING\n");
		return 2;
	}
	settle();
	err = open_ring(argv[1], &file);
	if (err) {
		fprintf(stderr, "sparktrace-recorder: %s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	atomic_store(&file.ring->recorder_pid, (uint32_t)getpid());
	err = fstat(file.fd, &stat_now) ? -errno : session_run(file.ring, stat_now.st_ino);
	if (!file.ring->trace[0] || !err)
		unlink(argv[1]); /* else it holds what the trace lacks: for the analyzer, and for the next recorder */
	ringfile_release(&file);
	return err ? 1 : 0;
}
