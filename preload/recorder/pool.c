/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LIBRARY     "libnvidia-ml.so.1"
#define ASK_SECONDS 20

/* Names of machines and GPUs with one pool. */
static const char *const shared[] = {"GB10", "DGX Spark", "DGX_Spark", "Jetson",
                                     "Orin", "Thor",      "Xavier",    "Tegra"};

static bool is_shared(const char *name)
{
	size_t i;

	for (i = 0; name && i < sizeof(shared) / sizeof(shared[0]); i++)
		if (strcasestr(name, shared[i]))
			return true;
	return false;
}

enum st_pool_class pool_class(const char *machine, const char *gpu)
{
	if (is_shared(gpu) || is_shared(machine))
		return ST_POOL_UMA;
	return gpu && *gpu ? ST_POOL_DISCRETE : ST_POOL_UNKNOWN;
}

static void *open_library(const char *library_path)
{
	const char *at;
	void *library = NULL;

	for (at = library_path; *at && !library; at += strcspn(at, ":"), at += *at == ':') {
		char path[PATH_MAX];
		int length = (int)strcspn(at, ":");

		if (length && snprintf(path, sizeof(path), "%.*s/" LIBRARY, length, at) < (int)sizeof(path))
			library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

/* NVML's entries, by its documentation: nvmlReturn_t is an enum, 0 success; a device is a pointer. */
static void write_name(int fd, const char *library_path)
{
	void *library = open_library(library_path), *device;
	char name[96] = "";
	int (*init)(void), (*get_handle)(unsigned, void **), (*get_name)(void *, char *, unsigned);

	if (!library)
		return;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&get_handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&get_name = dlsym(library, "nvmlDeviceGetName");
	if (!init || !get_handle || !get_name || init() || get_handle(0, &device) ||
	    get_name(device, name, sizeof(name) - 1))
		return;
	if (write(fd, name, strlen(name)) < 0)
		return; /* nobody is there any more */
}

static void close_above(int first)
{
	int fd;

	if (!close_range((unsigned)first, ~0u, 0))
		return;
	for (fd = first; fd < 1024; fd++) /* a sandbox or qemu-user refuses the call */
		close(fd);
}

/*
 * Nothing of the recorder may outlive it here: neither the ring's lock nor the trace. The recorder has all signals
 * blocked, as the shim had when it started it; of a driver that hangs the alarm must free this one.
 */
static void become_asker(int fd, const char *library_path)
{
	sigset_t none;

	if (dup3(fd, 3, O_CLOEXEC) < 0 && errno != EINVAL) /* EINVAL: it is 3 already */
		return;
	close_above(4);
	signal(SIGALRM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(ASK_SECONDS);
	write_name(3, library_path);
}

/*
 * Nobody waits for the child: main.c ignores SIGCHLD. A child's child would be an orphan, and one more stranger to a
 * program that adopts orphans.
 */
int pool_ask_gpu(const char *library_path)
{
	int pipe_fds[2];
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	pid = fork();
	if (pid == 0) {
		become_asker(pipe_fds[1], library_path);
		_exit(0);
	}
	close(pipe_fds[1]);
	if (pid < 0) {
		close(pipe_fds[0]);
		return -EAGAIN;
	}
	return pipe_fds[0];
}
