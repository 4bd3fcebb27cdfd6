/* SPDX-License-Identifier: Apache-2.0 */
#include "ringfile.h"
#include "clock.h"
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOREIGN_AGE (3600 * SECOND)

/* The magic is written last. */
static int check_head(const struct st_ring *ring, uint64_t bytes)
{
	bool made = !memcmp(ring->magic, ST_RING_MAGIC, sizeof(ring->magic));

	atomic_thread_fence(memory_order_acquire);
	if (!made || ring->version != ST_RING_VERSION)
		return -EINVAL;
	if (!ring->size || ring->size & (ring->size - 1) || ring->size > UINT64_C(1) << 30)
		return -EINVAL;
	if (bytes < ST_RING_DATA + ring->size || !ring->pid)
		return -EINVAL;
	if (!memchr(ring->path, 0, sizeof(ring->path)) || !memchr(ring->boot_id, 0, sizeof(ring->boot_id)) ||
	    !memchr(ring->directory, 0, sizeof(ring->directory)) ||
	    !memchr(ring->library_path, 0, sizeof(ring->library_path)) ||
	    !memchr(ring->settings, 0, sizeof(ring->settings)) ||
	    !memchr(ring->environment, 0, sizeof(ring->environment)) ||
	    !memchr(ring->trace, 0, sizeof(ring->trace)))
		return -EINVAL;
	return 0;
}

static int map_ring(struct ringfile *file)
{
	struct stat stat;
	void *map;

	if (fstat(file->fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode) || stat.st_size < (off_t)ST_RING_DATA)
		return -EINVAL;
	if (stat.st_uid != geteuid())
		return -EPERM;
	if (flock(file->fd, LOCK_EX | LOCK_NB))
		return -errno;
	map = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	file->ring = map;
	file->bytes = (size_t)stat.st_size;
	return check_head(file->ring, (uint64_t)stat.st_size);
}

int ringfile_open(const char *path, struct ringfile *ret_file)
{
	struct ringfile file = {.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
	int err;

	if (file.fd < 0)
		return -errno;
	err = map_ring(&file);
	if (err)
		ringfile_release(&file);
	else
		*ret_file = file;
	return err;
}

void ringfile_release(struct ringfile *file)
{
	if (file->ring)
		munmap(file->ring, file->bytes);
	close(file->fd);
	*file = (struct ringfile){.fd = -1};
}

bool ringfile_is_foreign(const struct st_ring *ring)
{
	struct stat own;

	return ring->pids && !stat("/proc/self/ns/pid", &own) && own.st_ino != ring->pids;
}

bool ringfile_is_dead(const struct st_ring *ring)
{
	struct procfs_stat stat;
	char boot_id[64];
	int err;

	if (procfs_read("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) > 0 &&
	    strncmp(boot_id, ring->boot_id, 36))
		return true;
	if (ringfile_is_foreign(ring))
		return clock_now() > ring->epoch + FOREIGN_AGE;
	err = procfs_read_stat(ring->pid, &stat);
	if (err)
		return err == -ENOENT || err == -ESRCH;
	return stat.start_time != ring->start_time || procfs_is_over(&stat);
}

void ringfile_make_head(const struct st_ring *ring, struct st_file_head *ret_head)
{
	struct st_file_head head = {
		.major = ST_FORMAT_MAJOR,
		.minor = ST_FORMAT_MINOR,
		.pid = ring->pid,
		.start_time = ring->start_time,
	};

	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	memcpy(head.boot_id, ring->boot_id, sizeof(head.boot_id));
	memcpy(head.ring, ring->path, sizeof(head.ring));
	*ret_head = head;
}

/* --- telling and waiting --------------------------------------------------------------------- */

static void futex_wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void ringfile_set_state(struct st_ring *ring, enum st_ring_recorder state)
{
	atomic_store(&ring->recorder, (uint32_t)state);
	futex_wake_all(&ring->recorder);
}

void ringfile_fail(struct st_ring *ring, int err, const char *what)
{
	snprintf(ring->recorder_text, sizeof(ring->recorder_text), "%s", what);
	atomic_store(&ring->recorder_error, err < 0 ? -err : err);
	ringfile_set_state(ring, ST_RECORDER_FAILED);
}

/* `sleeping` is set before `head` is read, a producer moves `head` before it reads `sleeping`. */
void ringfile_wait(struct st_ring *ring, uint64_t read, uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
	uint32_t wake = atomic_load(&ring->wake);

	atomic_store(&ring->sleeping, 1);
	/* Whoever waits in the destructor is not kept waiting; once it is served its flag says nothing more. */
	if (atomic_load(&ring->head) == read &&
	    (!atomic_load(&ring->exiting) || atomic_load(&ring->recorder) != ST_RECORDER_RUNNING))
		syscall(SYS_futex, &ring->wake, FUTEX_WAIT, wake, &time, NULL, 0);
	atomic_store(&ring->sleeping, 0);
}

void ringfile_wake(struct st_ring *ring)
{
	atomic_fetch_add(&ring->wake, 1);
	futex_wake_all(&ring->wake);
}

int ringfile_get(const char *lines, const char *name, char *ret_value, size_t size)
{
	size_t length = strlen(name), bytes;
	const char *line;

	for (line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, name, length) || line[length] != '=')
			continue;
		line += length + 1;
		bytes = strcspn(line, "\n");
		if (bytes >= size)
			return -ENOENT;
		memcpy(ret_value, line, bytes);
		ret_value[bytes] = '\0';
		return 0;
	}
	return -ENOENT;
}
