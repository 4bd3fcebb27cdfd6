/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"
#include "procfs.h"
#include "ringfile.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/pidfd.h of 6.15; the headers of the oldest system that this builds on have neither. */
struct pidfd_info_now {
	uint64_t mask;
	uint64_t cgroupid;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
#define PIDFD_INFO_EXIT_NOW (UINT64_C(1) << 3)
#define PIDFD_GET_INFO_NOW  _IOWR(0xFF, 11, struct pidfd_info_now)

static void *wait_for_death(void *argument)
{
	struct follow *follow = argument;
	struct pollfd poll_fd = {.fd = follow->pidfd, .events = POLLIN};

	while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
		continue;
	atomic_store(&follow->dead, true);
	ringfile_wake(follow->ring);
	return NULL;
}

/* The wait for death has a thread, because no call waits for a futex and a descriptor together. */
static void start_waiter(struct follow *follow)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	follow->waiting = !pthread_create(&follow->waiter, &attributes, wait_for_death, follow);
	pthread_attr_destroy(&attributes);
}

void follow_init(struct follow *follow, struct st_ring *ring, uint64_t ring_ino)
{
	struct procfs_stat stat;

	*follow = (struct follow){.ring = ring, .ring_ino = ring_ino, .pidfd = -1};
	follow->pidfd = (int)syscall(SYS_pidfd_open, ring->pid, 0);
	/* The descriptor is of the right process only if that is still there after it was opened. */
	if (procfs_read_stat(ring->pid, &stat) || stat.start_time != ring->start_time) {
		atomic_store(&follow->dead, true);
		return;
	}
	follow->start_stack = stat.start_stack;
	if (follow->pidfd >= 0)
		start_waiter(follow);
}

void follow_release(struct follow *follow)
{
	if (follow->waiting) {
		pthread_cancel(follow->waiter);
		pthread_join(follow->waiter, NULL);
	}
	if (follow->pidfd >= 0)
		close(follow->pidfd);
}

static void set_status(struct follow *follow, int code)
{
	follow->how = WIFSIGNALED(code) ? ST_EXIT_SIGNALED : ST_EXIT_EXITED;
	follow->status = WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code);
}

/* What the kernel keeps with the pidfd once the program has been waited for (Linux 6.15). */
static bool ask_pidfd(struct follow *follow)
{
	struct pidfd_info_now info = {.mask = PIDFD_INFO_EXIT_NOW};

	if (follow->pidfd < 0 || ioctl(follow->pidfd, PIDFD_GET_INFO_NOW, &info) ||
	    !(info.mask & PIDFD_INFO_EXIT_NOW))
		return false;
	set_status(follow, info.exit_code);
	return true;
}

/* To whoever may not look at a process the kernel says that its status is 0. */
static bool may_see_status(uint32_t pid)
{
	char path[40], target[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return readlink(path, target, sizeof(target)) >= 0 || errno != EACCES;
}

static bool ask_zombie(struct follow *follow)
{
	struct procfs_stat stat;

	if (!may_see_status(follow->ring->pid) || procfs_read_stat(follow->ring->pid, &stat) ||
	    stat.start_time != follow->ring->start_time || !procfs_is_over(&stat))
		return false;
	set_status(follow, stat.exit_code);
	return true;
}

/* The parent may take the status at any moment: between the two looks is what the third is for. */
static void learn_status(struct follow *follow)
{
	if (!ask_pidfd(follow) && !ask_zombie(follow))
		ask_pidfd(follow);
}

/* Its folder may be a link, which the map shows resolved. */
static bool is_ring(const struct follow *follow, const struct procfs_map *map)
{
	const char *name = strrchr(follow->ring->path, '/'), *its = strrchr(map->path, '/');

	return map->ino == follow->ring_ino && name && its && !strncmp(its, name, strlen(name));
}

static bool has_ring_mapped(const struct follow *follow)
{
	struct procfs_map map;
	char path[40], line[4352];
	bool found = false, any = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", follow->ring->pid);
	file = fopen(path, "re");
	if (!file)
		return true; /* cannot tell */
	while (!found && fgets(line, sizeof(line), file)) {
		any = true;
		found = !procfs_parse_map(line, &map) && is_ring(follow, &map);
	}
	found |= ferror(file) != 0; /* cannot tell either */
	fclose(file);
	return found || !any; /* no mapping at all: it is dying */
}

bool follow_has_moved(const struct follow *follow)
{
	struct procfs_stat stat;

	return !procfs_read_stat(follow->ring->pid, &stat) && stat.start_stack != follow->start_stack;
}

bool follow_is_over(struct follow *follow, bool execed)
{
	struct procfs_stat stat;

	if (follow->how != ST_EXIT_UNKNOWN)
		return true;
	if (!follow->waiting && !atomic_load(&follow->dead) &&
	    (procfs_read_stat(follow->ring->pid, &stat) || procfs_is_over(&stat) ||
	     stat.start_time != follow->ring->start_time))
		atomic_store(&follow->dead, true);
	if (atomic_load(&follow->dead)) {
		learn_status(follow);
		return true;
	}
	if (execed && !has_ring_mapped(follow)) {
		/* A dying program has no mappings either, for the moment before it is known as dead. */
		if (procfs_read_stat(follow->ring->pid, &stat) || stat.state == 'Z')
			return false;
		follow->how = ST_EXIT_EXECED;
		return true;
	}
	return false;
}
