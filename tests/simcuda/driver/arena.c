/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the simulated device and of pinned buffers. Each is a memfd with a name of its own, so that
 * a look from outside (RssShmem, /proc/PID/smaps, the memfd's st_blocks) can tell it from the program's
 * memory. Blocks are whole pages: giving one back punches exactly its pages out of the file.
 */
#include "tests/simcuda/driver/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ARENA_SIZE_MIN (UINT64_C(1) << 34)   /* below this, no smaller window is tried */
#define ARENA_CHECKED  (UINT64_C(64) << 20)  /* above this size, memory of the machine is looked at first */
#define ARENA_SPARE    (UINT64_C(256) << 20) /* what the machine keeps */
#define POPULATE_WRITE 23                    /* MADV_POPULATE_WRITE, Linux 5.14 */

static long file_window(int fd, uint64_t size)
{
	long rc = sim_syscall(SYS_ftruncate, fd, (long)size, 0, 0, 0, 0);

	if (rc < 0)
		return rc;
	return sim_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
	                   0);
}

int arena_init(struct sim_arena *arena, const char *name)
{
	long fd = sim_syscall(SYS_memfd_create, (long)name, 1 /* MFD_CLOEXEC */, 0, 0, 0, 0);
	uint64_t size = sim.window;
	long at;

	if (fd < 0)
		return (int)fd;
	fd = sim_fd_raise((int)fd);
	do {
		at = file_window((int)fd, size);
	} while (at < 0 && at > -4096 && (size /= 2) >= ARENA_SIZE_MIN);
	if (at < 0 && at > -4096)
		return (int)at;
	arena->name = name;
	arena->base = arena->low = (uint64_t)at;
	arena->size = size;
	arena->fd = (int)fd;
	sim_syscall(SYS_madvise, at, (long)size, MADV_DONTDUMP, 0, 0, 0);
	return 0;
}

/* Address of the first gap of `span` bytes, 0: none. */
static uint64_t gap_find(const struct sim_arena *arena, uint64_t span)
{
	const struct sim_table *table = &sim.blocks;
	uint64_t at = arena->low, end = arena->base + arena->size;

	for (uint32_t i = table_lower(table, at); i < table->count; i++) {
		const struct sim_block *block = &table->blocks[i];

		if (block->addr >= end || block->addr - at >= span)
			break;
		at = block->addr + block->span;
	}
	return at + span <= end ? at : 0;
}

static void touch_pages(uint64_t addr, uint64_t span)
{
	for (uint64_t at = addr; at < addr + span; at += SIM_PAGE)
		*(volatile char *)at = 0;
}

/* A VMM allocation has pages, but they are mapped nowhere yet: the file alone is filled. */
static bool pages_commit(const struct sim_arena *arena, const struct sim_block *block)
{
	long rc;

	if (block->span >= ARENA_CHECKED && proc_meminfo("MemAvailable") < block->span + ARENA_SPARE)
		return false;
	if (block->kind == SIM_HANDLE)
		return sim_syscall(SYS_fallocate, arena->fd, 0, (long)(block->addr - arena->base),
		                   (long)block->span, 0, 0) == 0;
	rc = sim_syscall(SYS_madvise, (long)block->addr, (long)block->span, POPULATE_WRITE, 0, 0, 0);
	if (rc == -EINVAL) /* kernel before 5.14, or qemu-user */
		touch_pages(block->addr, block->span);
	return rc == 0 || rc == -EINVAL;
}

struct sim_block *arena_take(struct sim_arena *arena, uint64_t size, enum sim_kind kind)
{
	uint64_t span = (size + SIM_PAGE - 1) & ~(uint64_t)(SIM_PAGE - 1);
	uint64_t at = size <= arena->size ? gap_find(arena, span) : 0;
	struct sim_block *block = at ? table_insert(&sim.blocks, at, span) : NULL;

	if (!block)
		return NULL;
	block->size = size;
	block->kind = kind;
	if (!arena->lazy && kind != SIM_MANAGED && !pages_commit(arena, block)) {
		arena_give(arena, block);
		return NULL;
	}
	if (at == arena->low)
		arena->low = at + span;
	return block;
}

void arena_give(struct sim_arena *arena, struct sim_block *block)
{
	sim_syscall(SYS_fallocate, arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	            (long)(block->addr - arena->base), (long)block->span, 0, 0);
	if (block->addr < arena->low)
		arena->low = block->addr;
	table_remove(&sim.blocks, block);
}

int arena_map(const struct sim_arena *arena, uint64_t addr, uint64_t size, uint64_t offset)
{
	long at = sim_syscall(SYS_mmap, (long)addr, (long)size, PROT_READ | PROT_WRITE,
	                      MAP_SHARED | MAP_FIXED, arena->fd, (long)offset);

	if (at < 0 && at > -4096)
		return (int)at;
	if (!arena->lazy)
		sim_syscall(SYS_madvise, (long)addr, (long)size, POPULATE_WRITE, 0, 0, 0);
	return 0;
}

int arena_unmap(uint64_t addr, uint64_t size)
{
	long at = sim_syscall(SYS_mmap, (long)addr, (long)size, PROT_NONE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return at < 0 && at > -4096 ? (int)at : 0;
}
