/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_make.h"

#include "aside.h"
#include "event.h"
#include "place.h"
#include "settings.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "banned.h"

#define FOLDERS     3
#define FOLDER      200 /* bytes of a folder's path: with the ring's name it fits into the ring's head */
#define MIN_SIZE    (512u << 10)
#define MAX_SIZE    (1u << 30)
#define START_FIELD 22 /* of /proc/PID/stat */
#define NAMES       8  /* tries, when rings of that name are there: of earlier programs, before an exec */

/* What the parent asks for, and what the child answers in the same memory. */
struct request {
	char folder[FOLDERS][FOLDER];
	uint64_t size; /* of the data */
	uint32_t pid, uid;
	uint64_t start_time, pids;
	char boot_id[40];
	char path[sizeof(((struct st_ring *)0)->path)];
	struct st_ring *ring;
	int error;
};

/* Fields are counted behind the last ')': the program's name may hold blanks and parentheses. */
static uint64_t start_time(uint32_t pid)
{
	char buffer[1024], path[64];
	struct text text = text_in(path, sizeof(path));
	const char *at;
	uint64_t start = 0;

	text_add(&text, "/proc/");
	text_number(&text, pid);
	text_add(&text, "/stat");
	sys_read_text(path, buffer, sizeof(buffer));
	at = strrchr(buffer, ')');
	for (int field = 2; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		start = start * 10 + (uint64_t)(*at - '0');
	return start;
}

/* "pid:[4026531836]" */
static uint64_t pid_namespace(void)
{
	char target[64];
	long length = sys_readlink("/proc/self/ns/pid", target, sizeof(target) - 1);
	uint64_t inode = 0;
	const char *at;

	target[length > 0 ? length : 0] = '\0';
	at = strchr(target, '[');
	for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		inode = inode * 10 + (uint64_t)(*at - '0');
	return inode;
}

static void read_machine(struct request *request)
{
	char *newline;

	request->pids = pid_namespace();
	request->start_time = start_time(request->pid);
	sys_read_text("/proc/sys/kernel/random/boot_id", request->boot_id, sizeof(request->boot_id));
	newline = strchr(request->boot_id, '\n');
	if (newline)
		*newline = '\0';
}

static void write_path(struct request *request, const char *folder, unsigned number)
{
	struct text text = text_in(request->path, sizeof(request->path));

	text_add(&text, folder);
	text_add(&text, "/sparktrace-");
	text_number(&text, request->uid);
	text_byte(&text, '-');
	text_number(&text, request->pid);
	text_byte(&text, '-');
	text_number(&text, request->start_time);
	if (number) {
		text_byte(&text, '-');
		text_number(&text, number);
	}
}

static long create_new(struct request *request, const char *folder)
{
	long fd = -EEXIST;

	for (unsigned i = 0; i < NAMES && fd == -EEXIST; i++) {
		write_path(request, folder, i);
		fd = sys_openat(AT_FDCWD, request->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		                0600);
	}
	return fd;
}

static int map_file(struct request *request, int fd)
{
	size_t bytes = ST_RING_DATA + request->size;
	long r = sys_call4(SYS_fallocate, fd, 0, 0, (long)bytes);
	void *ring;

	if (r < 0)
		return (int)r;
	sys_call3(SYS_fchmod, fd, 0600, 0); /* whatever the umask took */
	ring = sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (sys_failed(ring))
		return (int)(long)ring;
	request->ring = ring;
	return 0;
}

static int make_in(struct request *request, const char *folder)
{
	long fd = create_new(request, folder);
	int r;

	if (fd < 0)
		return (int)fd;
	r = map_file(request, (int)fd);
	if (r < 0)
		sys_unlink(request->path);
	sys_close((int)fd);
	return r;
}

/* Runs aside. */
static int make(void *arg)
{
	struct request *request = arg;

	read_machine(request);
	request->error = -ENOENT;
	for (int i = 0; i < FOLDERS && request->error < 0; i++)
		if (request->folder[i][0])
			request->error = make_in(request, request->folder[i]);
	return 0;
}

/* `path`, or its folder, made absolute; a name that will only be known to the recorder ('%') counts for nothing. */
static void write_folder(char *folder, const char *path, bool parent)
{
	struct text text = text_in(folder, FOLDER);
	const char *slash = strrchr(path, '/');
	size_t length = parent ? (slash ? (size_t)(slash - path) : 0) : strlen(path);

	place_begin(&text, path);
	text_bytes(&text, path, length);
	if (text.cut || strchr(folder, '%') || folder[0] != '/')
		folder[0] = '\0';
}

static void write_folders(struct request *request)
{
	const struct settings *settings = settings_get();

	if (settings->ring_dir[0]) {
		write_folder(request->folder[0], settings->ring_dir, false);
		return;
	}
	write_folder(request->folder[0], "/dev/shm", false);
	write_folder(request->folder[1], settings->output, false);
	write_folder(request->folder[2], settings->output, true);
}

static uint64_t ring_size(void)
{
	uint64_t asked = settings_get()->ring_size, size = MIN_SIZE;

	while (size < asked && size < MAX_SIZE)
		size *= 2;
	return size;
}

/*
 * Without its magic it is no ring yet: a recorder that clears up may be reading this head now, and one without a boot
 * or a start would be that of a dead program.
 */
static void fill_head(struct st_ring *ring, const struct request *request)
{
	struct text directory;

	ring->version = ST_RING_VERSION;
	ring->page_size = (uint32_t)getauxval(AT_PAGESZ);
	ring->size = request->size;
	ring->pid = request->pid;
	ring->uid = request->uid;
	ring->start_time = request->start_time;
	ring->pids = request->pids;
	ring->epoch = event_now();
	memcpy(ring->boot_id, request->boot_id, sizeof(ring->boot_id));
	memcpy(ring->path, request->path, sizeof(ring->path));
	directory = text_in(ring->directory, sizeof(ring->directory));
	text_add(&directory, place_started());
	settings_library_path(ring->library_path, sizeof(ring->library_path));
	settings_write(ring->settings, sizeof(ring->settings));
	settings_environment(ring->environment, sizeof(ring->environment));
	atomic_thread_fence(memory_order_release);
	memcpy(ring->magic, ST_RING_MAGIC, sizeof(ring->magic));
}

int ring_make(struct st_ring **ret_ring)
{
	struct request request = {
		.size = ring_size(),
		.pid = sys_getpid(),
		.uid = (uint32_t)sys_call3(SYS_geteuid, 0, 0, 0),
		.error = -ECHILD, /* stays where the child's memory is a copy: valgrind makes a fork of it */
	};
	int r;

	write_folders(&request);
	r = aside_run(make, &request);
	if (r < 0)
		return r;
	if (request.error < 0)
		return request.error;
	fill_head(request.ring, &request);
	*ret_ring = request.ring;
	return 0;
}
