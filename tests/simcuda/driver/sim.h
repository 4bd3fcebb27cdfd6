/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated driver, libcuda.so.1: what its files share.
 *
 *	state.c		settings, cuInit, failing and delaying calls
 *	ledger.c	what the driver did, line by line, for tests to compare a trace with
 *	table.c		live blocks by address
 *	arena.c		memory of the simulated device and of pinned buffers: named memfds
 *	proc.c		what /proc tells about our own mappings
 *	the rest	entry points, one file a subject
 *
 * One lock guards tables and counters; bytes are copied outside it. Own mappings and files use raw
 * system calls, so that a traced run does not show them.
 */
#ifndef SIMCUDA_SIM_H
#define SIMCUDA_SIM_H

#define __CUDA_API_VERSION_INTERNAL /* declares every version of every entry under its own name */
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_DRIVER_VERSION 13000
#define SIM_PAGE           4096u
#define SIM_GRANULE        (UINT64_C(2) << 20) /* VMM granularity, and what pools grow by */
#define SIM_DEVICE_NAME    "NVIDIA GB10 (simulated)"

/* What an address range is. */
enum sim_kind {
	SIM_PLAIN,
	SIM_PITCHED,
	SIM_MANAGED,
	SIM_CHUNK,  /* piece of a memory pool */
	SIM_HANDLE, /* VMM allocation: has pages and an identity, but is no device address */
	SIM_MAPPED, /* a handle's pages at a reserved address */
	SIM_ARRAY,  /* an array: the address is its handle */
	SIM_PINNED,
	SIM_REGISTERED,
	SIM_RESERVED, /* device address space, in a table of its own */
};

struct sim_block {
	uint64_t addr;
	uint64_t size; /* as asked */
	uint64_t span; /* size in whole pages */
	uint64_t
		owner; /* pool of a chunk, handle of a mapping, descriptor of an array, flags of pinned memory */
	uint64_t offset; /* of a mapping in its handle */
	uint64_t id;     /* never used again */
	uint32_t kind;
	uint32_t used; /* chunk: in use; handle: references; mapping: access was given */
	uint32_t maps; /* handle: mappings; reservation: none */
	uint32_t host; /* handle or chunk: its memory is the host's */
};

/* Blocks by address, never overlapping. */
struct sim_table {
	struct sim_block *blocks;
	uint32_t count;
};

/* A window of addresses over a named memfd: address - base is the offset in the file. */
struct sim_arena {
	const char *name;
	uint64_t base, size;
	uint64_t low; /* no gap lies below */
	int fd;
	bool lazy; /* pages come with the first touch instead of with the allocation */
};

struct sim_counts {
	uint64_t device, pinned, managed, total;
	uint64_t device_peak, pinned_peak, total_peak;
	uint64_t broken; /* bytes of private file mappings that copies turned into anonymous ones */
	uint64_t copied; /* bytes from host to device */
	uint64_t launches, stubs;
};

struct sim_state {
	bool ready;      /* cuInit was called */
	bool forked;     /* this is a child of the process that called it */
	bool gb10;       /* SIMCUDA_GB10: integrated, copies break copy-on-write, free memory is MemFree */
	bool ledger;     /* SIMCUDA_LEDGER is written */
	bool rules;      /* SIMCUDA_FAIL or SIMCUDA_DELAY are set */
	uint64_t limit;  /* SIMCUDA_LIMIT: bytes of device memory, UINT64_MAX: none */
	uint64_t window; /* SIMCUDA_WINDOW: bytes of addresses for device memory, and again for pinned */
	struct sim_counts counts;
	struct sim_table blocks, reserved;
	struct sim_arena device, pinned;
};

extern struct sim_state sim;

void sim_lock(void);
void sim_unlock(void);

/* How every entry begins: refuses before cuInit and after fork, applies SIMCUDA_FAIL and SIMCUDA_DELAY. */
CUresult sim_enter(const char *name);
#define SIM_ENTER()                                         \
	do {                                                \
		CUresult sim_entered = sim_enter(__func__); \
		if (sim_entered != CUDA_SUCCESS)            \
			return sim_entered;                 \
	} while (0)

/* Raw system calls. 0 or positive, or a negative errno. */
long sim_syscall(long number, long a, long b, long c, long d, long e, long f);
/* Opens a file or takes a descriptor over, with a number that is out of the program's way. */
int sim_fd_raise(int fd);

/* Ledger. Callers hold the lock. `extra` is more JSON, beginning with a comma, or "". */
void ledger_open(const char *path);
void ledger_note(const char *op, uint64_t addr, uint64_t size, CUresult rc, const char *extra);
void ledger_end(void);

/* Books bytes (negative: gives them back) on device or host. Callers hold the lock. */
void sim_count(bool host, int64_t bytes);
/* True when `bytes` more of device memory are within the limit. */
bool sim_fits(uint64_t bytes);

/* Tables. Callers hold the lock. Pointers are good until the next insertion or removal. */
int table_init(struct sim_table *table);
struct sim_block *table_insert(struct sim_table *table, uint64_t addr, uint64_t span);
void table_remove(struct sim_table *table, struct sim_block *block);
struct sim_block *table_find(const struct sim_table *table, uint64_t addr); /* the block over addr, or NULL */
uint32_t table_lower(const struct sim_table *table, uint64_t addr); /* index of the first block not below */

/* Arenas. Callers hold the lock. */
int arena_init(struct sim_arena *arena, const char *name);
/* Finds room, inserts a block, and, unless the arena is lazy, commits its pages. NULL: no memory. */
struct sim_block *arena_take(struct sim_arena *arena, uint64_t size, enum sim_kind kind);
void arena_give(struct sim_arena *arena, struct sim_block *block);
/* Shows `size` bytes of the arena's file at `addr`, or takes them away from there. */
int arena_map(const struct sim_arena *arena, uint64_t addr, uint64_t size, uint64_t offset);
int arena_unmap(uint64_t addr, uint64_t size);

/* What a host address lies in, as the kernel tells it. */
enum sim_source {
	SIM_SOURCE_UNKNOWN,
	SIM_SOURCE_ANONYMOUS,
	SIM_SOURCE_PRIVATE, /* private file mapping that cannot be written */
	SIM_SOURCE_COW,     /* private file mapping that can */
	SIM_SOURCE_SHARED,  /* shared file mapping */
};
/* Returns what is at addr; *ret_end is the first address that may be something else. */
enum sim_source proc_source(uint64_t addr, uint64_t *ret_end);
/* Pages of [addr, addr + size) that are anonymous, from /proc/self/pagemap. */
uint64_t proc_anonymous(uint64_t addr, uint64_t size);
/* A value of /proc/meminfo in bytes, 0 when there is none. */
uint64_t proc_meminfo(const char *name);
/* Breaks copy-on-write in [addr, addr + size) as the driver's pinning does. Returns bytes that became anonymous. */
uint64_t proc_break(uint64_t addr, uint64_t size);

/* Objects behind opaque handles. */
enum sim_object_kind {
	SIM_FREE,
	SIM_CONTEXT,
	SIM_STREAM,
	SIM_EVENT,
	SIM_MODULE,
	SIM_FUNCTION,
	SIM_POOL,
	SIM_DEAD_POOL, /* destroyed, but memory of it is still in use */
};
struct sim_object {
	enum sim_object_kind kind;
	uint32_t flags;
	int32_t priority;
	uint32_t host; /* pool: memory of the host */
	uint64_t time; /* event: when it was recorded, ns, 0: never */
	uint64_t reserved, used, reserved_high, used_high, threshold, limit; /* pool */
};
struct sim_object *object_new(enum sim_object_kind kind);
struct sim_object *object_get(const void *handle, enum sim_object_kind kind); /* NULL: not one */
void object_free(struct sim_object *object);
struct sim_object *object_next(struct sim_object *after, enum sim_object_kind kind);

uint64_t sim_clock(void); /* CLOCK_MONOTONIC, ns */

/* Context. */
CUcontext context_current(void);
/* Frees what contexts own: plain, pitched, managed and array blocks. */
void context_sweep(void);

/* Pools: at a synchronisation, free chunks above the release threshold go back. Callers hold the lock. */
void pool_settle(void);
void pool_release_chunk(struct sim_block *block);
CUmemoryPool pool_default(void);
/* Gives free chunks of all pools back: what the driver tries before it says "out of memory". */
void pool_trim_all(void);

/* Streams. */
bool stream_valid(CUstream stream);

/* Device memory in all: the machine's, or SIMCUDA_LIMIT where that is less and the pool is not one. */
uint64_t device_total(void);
/* True when [addr, addr + size) is memory that the device may touch. Callers hold the lock. */
bool device_covers(uint64_t addr, uint64_t size);

#endif
