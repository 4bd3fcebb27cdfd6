/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency: which bytes of which weight file are where. Drives a replay and follows the content of memory
 * beside it: file bytes read into buffers, copied to the device, carried along by copies there; pages of
 * private mappings that became anonymous; the page cache by cell.
 *
 * What is exact: a copy out of a file mapping, a read into a known buffer that is then copied. A copy out of a
 * buffer that the program filled itself is `vague` where its size is that of a tensor of the only file it
 * can be from (then the file's total is still exact), `shared` where several files have such a tensor (then the sum
 * over these is), and `unknown` otherwise.
 */
#ifndef SPARKTRACE_RESIDENCY_H
#define SPARKTRACE_RESIDENCY_H

#include <analyzer/model.h>
#include <analyzer/replay.h>
#include <analyzer/residency_sums.h>
#include <analyzer/touches.h>

/* Moments at which amounts are kept as they were; the last call for each counts. */
enum point {
	POINT_LOAD_PEAK,
	POINT_SETTLED,
	POINT_DEMAND_PEAK,
	POINT_RUN_PEAK,    /* demand of all processes of a run together (run_total.c) */
	POINT_DEVICE_PEAK, /* of V in the load */
	POINT_COUNT
};

/* What the last record meant for weights. */
enum weight_sign {
	SIGN_TOUCHED = 1, /* a weight file was mapped or read */
	SIGN_BYTES = 2,   /* weight bytes were read or copied to the device */
	SIGN_DEVICE = 4,  /* copied to the device */
	SIGN_CLONED = 8,  /* copied from one place on the device to another */
	SIGN_TENSOR = 16, /* read, and not only what a file says about its tensors */
};

struct amounts {
	uint64_t device;        /* distinct bytes in live device blocks, place known */
	uint64_t vague;         /* bytes of this file in live device blocks, place unknown */
	uint64_t anon;          /* anonymous copies, found by a scan or sure to be */
	uint64_t anon_possible; /* more that a copy predicts */
	uint64_t shared;        /* of all files: the same, weights for sure and the file unknown */
	uint64_t unknown;       /* of all files: bytes in live device blocks that may be weights */
	uint64_t staging;
	uint64_t cached;                         /* page cache, of cells that are known */
	uint64_t cache_unknown;                  /* bytes of cells that are not */
	uint64_t reclaimable_lo, reclaimable_hi; /* cell by cell, of the bytes whose place is known */
	uint64_t double_lo;                      /* the least with `vague` ones; of all files: their sum */
};

/* Amounts that remember themselves at each point, at no cost until they next change. */
struct kept {
	struct amounts now, at[POINT_COUNT];
	uint32_t epoch[POINT_COUNT];
	uint32_t staging_epoch, anon_epoch; /* the same for single amounts: at the peaks of P + S, and of A */
	uint64_t staging, anon, anon_possible;
};

/* mmap() calls of one file that are alike. */
struct map_group {
	uint32_t prot, flags, stack, count;
	uint64_t bytes, copied;
	uint64_t live; /* bytes mapped now */
	bool kept;     /* at POINT_SETTLED */
};

struct size_class {
	uint64_t size;
	uint32_t tensors, used;
	bool shared; /* copies of this size may have been of this file */
};

/* Copies of one size that several files may be the origin of. */
struct shared_size {
	uint64_t size;
	uint64_t copies, most; /* since all were loaded; the largest such number */
	uint64_t tensors;      /* of that size, in the files that share it */
	struct kept kept;      /* `device` alone is used: bytes in live device blocks */
};

/* The page cache of one cell as it was at each point, kept as struct kept does. */
struct cell_kept {
	uint64_t cached[POINT_COUNT];
	uint32_t epoch[POINT_COUNT];
};

/* What reads and copies did with one tensor. */
struct tensor_use {
	uint64_t first, last; /* ns, 0: never */
	uint64_t read, copied;
	uint32_t thread; /* of the first */
	uint32_t order;  /* 1, 2, ... within its file; 0: never */
};

struct weight {
	struct kept kept;
	struct livemap device; /* file bytes; a: number of copies in live device blocks */
	struct livemap loaded; /* file bytes ever copied to the device */
	struct livemap read;   /* file bytes ever read */
	uint64_t loaded_vague; /* bytes copied of which only the file is known */
	uint64_t unknown;      /* bytes copied that may have been of this file */
	uint64_t read_bytes, copied_bytes, floating; /* floating: read to an unknown place */
	uint64_t copied_before;                      /* copied_bytes when it was mapped anew */
	uint64_t mapped, mapped_peak, anon_peak;
	uint64_t mapped_then; /* at the peak of what all files have mapped, if mapped_epoch is residency's */
	uint32_t mapped_epoch;
	uint64_t first_touch, last_touch;
	uint64_t *cell_cached, *cell_device; /* cell_cached: ST_UNKNOWN where it is */
	struct cell_kept *cell_kept;
	size_t cell_count;
	struct map_group *groups;
	uint32_t group_count;
	struct size_class *classes; /* ascending sizes of its tensors */
	uint32_t class_count;
	uint32_t open_stack, open_flags;
	uint32_t tensors_used; /* touched so far */
	uint32_t threads[MODEL_THREADS], thread_count;
	struct file_advice advices[MODEL_ADVICES];
	uint32_t advice_count;
	bool threads_more;
	int cache_error;
	bool counted;    /* its cells are in the amounts */
	bool done;       /* the last touch of it has been seen, where an earlier pass told which that is */
	bool cache_seen; /* somebody looked for it in the page cache */
	bool opened;
};

/* A scan's verdict on one mapping, carried from the survey to the measuring pass. */
struct anon_cap {
	uint64_t serial, bytes;
};

/* A buffer that is in use until its stream is waited for. */
struct pending {
	uint64_t lo, hi, stream;
	bool over; /* the copy was synchronous: gone with the next record */
};

/* Who asks for the pinned memory that weights are copied from. */
#define SOURCE_STACKS 32
struct source_stacks {
	uint32_t stacks[SOURCE_STACKS];
	unsigned count;
};

/* What a what-if of the load asks beyond the amounts (residency_held.c). Bytes. */
struct held {
	struct livemap written; /* pages that the program wrote itself; a: 1 where it only may have */
	uint64_t doubt;         /* bytes of these */
	struct livemap judged;  /* pages that a scan found and a later copy explains, at least perhaps */
	uint64_t finished, finished_possible; /* of A, what files have of it that are done */
	uint32_t leaving;                     /* file + 1 whose last touch was this record, 0: none */
	uint64_t heap, loose; /* weights read into host blocks, into other host memory, and still there */
	uint64_t heap_old;    /* of `heap`: in blocks that were asked for before the load began */
	uint64_t pinned_sources, heap_sources; /* live blocks that weights were copied from */
	uint64_t slots;   /* sum of the power-of-two classes of copies out of private writable mappings */
	uint64_t largest; /* such copy */
	uint64_t scanned; /* time of the last scan for anonymous pages */
	uint64_t began;   /* when the copy of this record entered the driver, ST_UNKNOWN */
	struct livemap sources;
	struct source_stacks stacks;
};

/* A copy out of a private writable mapping that has entered the driver and not come back. */
struct under_way {
	uint32_t thread;
	uint64_t time;
	uint64_t bytes; /* 0: free */
};

#define UNDER_WAY_MAX 16

/* What a released block held, until its thread's next record tells whether realloc() carries it along. */
struct carried {
	uint32_t thread;
	bool source;    /* weights were copied from the block */
	uint64_t bytes; /* of the block, 0: free */
};

#define CARRIED_MAX 16

struct holding {
	struct kept kept; /* `device` alone is used */
	uint32_t stack;
};

#define CONVERTED_ROOM 4

struct residency {
	struct replay replay;
	const struct catalog *catalog;
	struct replay_watch watch; /* the caller's; `gone` is not passed on */
	struct weight *weights;    /* one for each file of the catalog */
	uint32_t weight_room;
	struct kept *tensors;    /* one for each tensor of the catalog; NULL before it is sorted */
	struct tensor_use *uses; /* likewise; NULL in the survey, and before the first one */
	struct kept total;
	uint32_t epoch[POINT_COUNT];

	struct livemap content; /* a: content_word(), b: file offset minus address, or size class */
	struct livemap anon;    /* a: mapping slot and certainty, b: file offset minus address */
	struct livemap staged;  /* a: file + 1 (0: unknown) and whether pinned */
	struct under_way under_way[UNDER_WAY_MAX];
	struct carried carried[CARRIED_MAX];
	unsigned carried_count, carried_turn; /* in use; the next to be given up for another one */
	struct pending *pending;
	size_t pending_count;
	struct anon_cap *caps; /* ascending serial */
	size_t cap_count, cap_room;
	bool caps_known; /* they are those of an earlier pass over the same trace */

	struct shared_size *shared;
	size_t shared_count;
	uint64_t unknown_copied;           /* bytes copied that may have been weights */
	uint64_t cells;                    /* of all files */
	uint64_t counted, counted_payload; /* bytes of the files whose cells are in the amounts */

	struct held held;
	const struct livemap *judged;              /* held.judged of an earlier pass, NULL */
	const struct source_stacks *source_stacks; /* of an earlier pass, NULL */
	uint32_t converted_by[CONVERTED_ROOM];     /* the last stacks that copied such memory, 0: none */
	unsigned converted_count;
	const uint64_t *done_times; /* of the last touch of each file, from an earlier pass */
	size_t done_count;

	/* By stack: S with P, A, host blocks of the load, mappings; device bytes are in `holdings`. Empty in the survey. */
	struct stack_sums sums[LOAD_PEAK_COUNT];
	uint32_t staging_epoch, anon_epoch, mapped_epoch; /* of the moments kept by residency_keep_peak() */
	uint64_t staged_since; /* S in host blocks that were asked for since the load began */
	/*
	 * Where in host blocks weights will be read: from the survey, by fill_key(); and those places while they wait for
	 * their first bytes. What will be S is no other memory before that.
	 */
	struct livemap fills, awaited;
	const struct livemap *known_fills; /* of an earlier pass, NULL */

	struct holding *holdings; /* device bytes by stack; open addressing */
	size_t holding_count, holding_room;

	/* Set by the caller. */
	struct touches *touches;                         /* who touched what; NULL: nobody asks */
	bool loading;                                    /* the record belongs to the load */
	bool (*is_arena)(void *context, uint32_t stack); /* as struct replay_watch's; NULL: nothing is */
	void *arena_context;
	bool survey;    /* who holds what, and buffers of unknown content, are left to a later pass */
	bool host_only; /* nothing of the weights ever goes to a device: buffers are no staging */
	/* Was the memory that this stack asked for filled with weights that are not any more as in their file? NULL: no. */
	bool (*converts)(void *context, uint32_t stack);
	void *converts_context;
	bool projected; /* the pool was not shared; ask what would be if it were */

	enum st_pool_class pool;
	uint64_t staging_pinned;                /* part of total.staging */
	uint64_t anon_made, anon_possible_made; /* ever; mappings gone included */
	uint64_t floating;                      /* bytes read to unknown places */
	uint64_t
		filled; /* bytes read into host blocks that are no part of replay.host_fresh, since the same look */
	uint32_t mapped_files;
	uint64_t from[COPY_SOURCE_COUNT]; /* bytes copied to the device during the load, by source */
	bool exact;                       /* no copy of the load was vague or unknown */
	unsigned signs;                   /* enum weight_sign of the last record */
	uint32_t last_file, last_tensor;  /* concerned last, CATALOG_NONE */
};

/* `watch`: refused and granted are passed on; may be NULL. */
void residency_init(struct residency *residency, const struct catalog *catalog,
                    const struct replay_watch *watch);
void residency_release(struct residency *residency);

/* 0 or -ENOMEM. */
int residency_record(struct residency *residency, const struct st_record *record);

/* Bytes that copies under way may have made anonymous already. */
uint64_t residency_under_way(const struct residency *residency);

/* The program's memory was sampled. */
void residency_looked(struct residency *residency);
/* Bytes by which host blocks may have grown since then: those asked for, and those of older ones that were read into. */
uint64_t residency_fresh(const struct residency *residency);

/* The last event has been seen. */
void residency_finish(struct residency *residency);

/* Keeps all amounts of this instant as those of `point`. */
void residency_keep(struct residency *residency, enum point point);

/* This instant is the peak of the load of that kind: keeps what it consists of. */
void residency_keep_peak(struct residency *residency, enum load_peak peak);
/* What was kept: S and A of a file or tensor, mapped bytes of a file. */
uint64_t kept_staging(const struct residency *residency, const struct kept *kept);
struct range kept_anon(const struct residency *residency, const struct kept *kept);
uint64_t kept_mapped(const struct residency *residency, const struct weight *weight);

/*
 * Host blocks of the load, without S: those that were asked for since it began and live. Of a program that never goes to
 * the device there is no S, and weights read into older blocks are of the load too: so weights in host blocks are either
 * here or in S, never in both.
 *
 * Anonymous mappings that a program makes itself are no host blocks: what lies in an interpreter's or a library's arenas
 * has mostly nothing to do with weights. Of arenas that PyTorch takes its tensors from (it has mimalloc in it where it is
 * built so: aarch64) nobody sees what is in use: at most all of them, also those from before the load.
 */
struct range residency_host(const struct residency *residency);

/* The amounts at a point; those of now for a point that never came. */
const struct amounts *kept_at(const struct residency *residency, const struct kept *kept, enum point point);

/* C of a range of a file at a point (POINT_COUNT: now), from the cells that it lies in. */
struct range cells_range(const struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi,
                         enum point point);

/* D, at most `size`, with `unknown` bytes that may belong to it. */
struct range amounts_device(const struct amounts *amounts, uint64_t size, uint64_t unknown);

/* Of all files, now: D, and the bytes both in C and D. */
struct range residency_device(const struct residency *residency);
struct range residency_reclaimable(const struct residency *residency);

/* What a file has of the shared bytes: ever loaded; in live blocks at a point (POINT_COUNT: now). */
struct range shared_loaded(const struct residency *residency, const struct weight *weight);
struct range shared_device(const struct residency *residency, const struct weight *weight, enum point point);
/* Of all files: ever loaded. Of one size: in live blocks. */
uint64_t shared_loaded_all(const struct residency *residency);
uint64_t shared_device_of(const struct residency *residency, uint64_t size, enum point point);

#endif
