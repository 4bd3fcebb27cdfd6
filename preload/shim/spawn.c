/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn.h"

#include "aside.h"
#include "place.h"
#include "real.h"
#include "settings.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "banned.h"

#define STACK_BYTES (32u << 10)

static const char *const places[] = {"", "../libexec/sparktrace/", "../bin/", "../../libexec/sparktrace/",
                                     "../../bin/"};

#define PLACES (sizeof(places) / sizeof(places[0]))

struct request {
	char program[PLACES][PATH_MAX];
	char *arguments[3];
	char *environment[2];
	char library_path[sizeof("LD_LIBRARY_PATH=") + sizeof(((struct st_ring *)0)->library_path)];
	long pid;
	int error;
	_Alignas(16) char stack[STACK_BYTES];
};

static void close_all(void)
{
	if (sys_call3(SYS_close_range, 0, UINT_MAX, 0) == 0)
		return;
	for (int fd = 0; fd < 1024; fd++)
		sys_close(fd);
}

/* The recorder's place in the world, apart from what exec changes by itself. */
static void settle(void)
{
	close_all();
	sys_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);
	sys_call3(SYS_dup3, 0, 1, 0);
	sys_call3(SYS_dup3, 0, 2, 0);
	sys_call3(SYS_setsid, 0, 0, 0);
	sys_call3(SYS_chdir, (long)"/", 0, 0);
}

/* The grandchild: shares memory with the program until one of the execs succeeds; then `error` was never written. */
static int become(void *arg)
{
	struct request *request = arg;
	long error = -ENOENT;

	settle();
	for (size_t i = 0; i < PLACES; i++) {
		long r;

		if (!request->program[i][0])
			continue;
		request->arguments[0] = request->program[i];
		r = sys_call3(SYS_execve, (long)request->program[i], (long)request->arguments,
		              (long)request->environment);
		if (r != -ENOENT && r != -ENOTDIR)
			error = r;
	}
	request->error = (int)error;
	return 127;
}

/* The child in the middle: its end makes the recorder an orphan. */
static int middle(void *arg)
{
	struct request *request = arg;

	request->pid = aside_clone(request->stack + STACK_BYTES, become, request);
	return 0;
}

static void write_programs(struct request *request)
{
	const struct link_map *own = real_own();
	const char *slash = own && own->l_name ? strrchr(own->l_name, '/') : NULL;

	for (size_t i = 0; i < PLACES && slash; i++) {
		struct text text = text_in(request->program[i], PATH_MAX);

		place_begin(&text, own->l_name);
		text_bytes(&text, own->l_name, (size_t)(slash - own->l_name) + 1);
		text_add(&text, places[i]);
		text_add(&text, "sparktrace-recorder");
		if (text.cut)
			request->program[i][0] = '\0';
	}
}

static void write_vectors(struct request *request, struct st_ring *ring)
{
	struct text text = text_in(request->library_path, sizeof(request->library_path));

	request->arguments[1] = ring->path;
	if (!ring->library_path[0])
		return;
	text_add(&text, "LD_LIBRARY_PATH=");
	text_add(&text, ring->library_path);
	request->environment[0] = request->library_path;
}

/* A failed exec leaves its grandchild behind as a short-lived orphan of init: nothing of it is seen here. */
static int request_run(struct request *request, struct st_ring *ring)
{
	int r;

	write_programs(request);
	write_vectors(request, ring);
	request->pid =
		-EINVAL; /* where the middle child runs in the caller itself there is no recorder either */
	r = aside_run(middle, request);
	if (r < 0)
		return r;
	if (request->pid < 0)
		return (int)request->pid;
	if (request->error < 0)
		return request->error;
	atomic_store(&ring->recorder_pid, (uint32_t)request->pid);
	return 0;
}

int recorder_spawn(struct st_ring *ring)
{
	struct request *request = sys_mmap_anonymous(sizeof(*request));
	int r;

	if (sys_failed(request))
		return -ENOMEM;
	r = request_run(request, ring);
	sys_munmap(request, sizeof(*request));
	return r;
}
