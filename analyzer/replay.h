/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: what lives where, record by record. One pass, memory proportional to what is live.
 *
 * Device memory is counted when the driver committed it: blocks, VMM handles that still have a reference or
 * a mapping, and what pools hold beyond their blocks. Registered host pages are an attribute, address
 * reservations are nothing, and memory that belongs to another process (ipc, import) has a place but no
 * weight. VMM handles that a thread has created and not yet mapped count once the thread goes on to
 * anything else, so that a request which is refused half-way and gives its handles back is never in a peak.
 */
#ifndef SPARKTRACE_REPLAY_H
#define SPARKTRACE_REPLAY_H

#include <sparktrace/format.h>
#include <analyzer/catalog.h>
#include <analyzer/livemap.h>

enum region { REGION_NONE, REGION_DEVICE, REGION_PINNED, REGION_HOST, REGION_MAPPING };

/* A request that was refused. A burst of VMM handles is one request. */
struct refusal {
	uint16_t kind;
	uint32_t stack;
	uint64_t asked;     /* with the handles got before */
	uint64_t attempted; /* bytes of these */
	int64_t result;
};

/* Who wants to know. Every function may be NULL. */
struct replay_watch {
	void *context;
	/* The memory of a piece is gone: freed, unmapped, mapped over. */
	void (*gone)(void *context, enum region region, const struct span *piece);
	/* Device bytes by the stack that asked for them. */
	void (*held)(void *context, uint32_t stack, int64_t bytes);
	void (*refused)(void *context, const struct st_record *record, const struct refusal *refusal);
	/* A request was met in full; for VMM with the bytes mapped so far. */
	void (*granted)(void *context, const struct st_record *record, uint64_t bytes);
	/* Is anonymous memory that this stack asks for an arena? */
	bool (*arena)(void *context, uint32_t stack);
};

/* One mmap() of a weight file, until the last piece of it is gone. */
struct mapping {
	uint32_t weight; /* index in the catalog */
	uint32_t flags;  /* MAP_* */
	uint32_t stack;
	uint32_t next;   /* free list */
	uint64_t serial; /* 0, 1, ... over all such mappings of the trace: the same in every pass */
	uint64_t bytes;  /* still mapped */
	/* Kept here for residency. */
	uint32_t group, cap;
	uint64_t anon_final;   /* most anonymous bytes that any scan of it will find, UINT64_MAX: unknown */
	uint64_t anon_counted; /* anonymous bytes counted as facts, and still there */
	uint64_t anon_gone;    /* the same, gone with a piece */
};

struct handle {
	uint64_t size, mapped;             /* bytes; of these mapped, counted for each mapping */
	uint32_t refs, stack, next, batch; /* batch: serial of the request, while that is open */
	bool host;
};

/* The VMM handles that one thread has asked for in a row. */
struct batch {
	uint32_t serial, thread;
	uint64_t waiting; /* bytes created and neither mapped nor given back */
	uint64_t mapped;  /* bytes mapped */
	uint64_t time;
};

struct pool {
	uint64_t handle, surplus, threshold; /* surplus: bytes held beyond the blocks */
	bool host;
};

/* In a span of `host`: asked for since the load began; which block of the trace it is, the same in every pass. */
#define HOST_SINCE  (UINT64_C(1) << 32)
#define HOST_SERIAL 33

/* In a span of `maps`: memory that an allocator hands out in pieces which nobody sees. */
#define MAP_ARENA  (UINT64_C(1) << 3)
#define ARENA_SIZE (UINT64_C(1) << 20) /* smaller mappings are none */

#define REPLAY_BATCHES   16
#define REPLAY_POOLS_MAX 1024 /* followed at a time; programs have a few */

struct replay {
	const struct catalog *catalog;
	struct replay_watch watch;
	const uint64_t *revoked; /* ascending seqs of releases that did not take place, or NULL */
	size_t revoked_count;
	uint64_t page_size;

	struct livemap blocks;     /* device; a: block_word(), b: pool */
	struct livemap arrays;     /* by handle, one byte each; a: as blocks, b: size */
	struct livemap ranges;     /* VMM; a: handle slot, b: offset minus address */
	struct livemap pinned;     /* a: stack */
	struct livemap registered; /* attribute */
	struct livemap host;       /* a: stack, HOST_*; b: host_looks when it was asked for */
	struct livemap maps;       /* a: map_word(), b: file offset minus address */
	struct livemap handle_at;  /* handle, one byte each; a: slot */
	struct livemap contexts;   /* alive, one byte each */

	struct handle *handles;
	uint32_t handle_count, handle_room, handle_free;
	struct mapping *mappings;
	uint32_t mapping_count, mapping_room, mapping_free;
	uint32_t mappings_live; /* mappings of weight files */
	uint64_t mapping_serial;
	struct pool *pools;
	size_t pool_count, pool_room;
	struct batch batches[REPLAY_BATCHES];
	uint32_t batch_serial;

	uint64_t device;         /* V */
	uint64_t host_handles;   /* VMM memory on the host: part of P */
	uint64_t context_bytes;  /* device bytes of contexts, part of V */
	uint64_t weights_mapped; /* bytes of weight files mapped */
	uint64_t freed;          /* device bytes given back so far */
	uint64_t unknown_frees;  /* releases of what was never seen */
	uint64_t host_looks;     /* calls of replay_host_looked() */
	uint64_t host_fresh;     /* bytes of host blocks that came since the last of them */
	uint64_t host_left;      /* and of those that went since then */
	uint64_t host_left_old;  /* of these, of blocks that were there at that time */
	bool loading;            /* set by the caller: host blocks that are asked for now are marked */
	uint64_t host_since;     /* bytes of live host blocks that are */
	uint64_t host_blocks;    /* so far */
	uint64_t arenas;         /* bytes of MAP_ARENA */
	int error;               /* first -ENOMEM */
};

void replay_init(struct replay *replay, const struct catalog *catalog, const struct replay_watch *watch);
void replay_release(struct replay *replay);

/* 0, or -ENOMEM, after which the state is incomplete. */
int replay_record(struct replay *replay, const struct st_record *record);

/* A release that did not take place. */
bool replay_is_revoked(const struct replay *replay, const struct st_record *record);

/* The last event has been seen: handles that wait count as held. */
void replay_finish(struct replay *replay);

/* The program's memory was sampled: what came and went is counted anew. */
void replay_host_looked(struct replay *replay);

/* P: pinned host memory of the driver. */
static inline uint64_t replay_pinned(const struct replay *replay)
{
	return replay->pinned.bytes + replay->host_handles;
}

/* Where an address lies; a pinned block goes before a mapping, a mapping before a host block. */
enum region replay_region(const struct replay *replay, uint64_t address, struct span *ret_span);

/* The words of a span in `maps`: slot + 1 of a struct mapping (0: no weight file) and PROT_*. */
static inline uint64_t map_word(uint32_t mapping, uint32_t prot)
{
	return (uint64_t)mapping << 8 | (prot & 7);
}

/* The mapping of a weight file that a span of `maps` belongs to, or NULL. */
static inline struct mapping *replay_mapping(const struct replay *replay, const struct span *span)
{
	uint64_t slot = span->a >> 8;

	return slot ? &replay->mappings[slot - 1] : NULL;
}

#endif
