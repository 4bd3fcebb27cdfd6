/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the analyzer understood of one trace: the pool as layers at the moments that matter,
 * weights and where their bytes were, what failed, and what a what-if of the ladder needs.
 *
 * Bytes everywhere, ns of CLOCK_MONOTONIC everywhere. Ids of stacks are those of the trace (see
 * names.h); files and tensors are named by index into `files` and `tensors`, MODEL_NONE if none.
 */
#ifndef SPARKTRACE_MODEL_H
#define SPARKTRACE_MODEL_H

#include <sparktrace/format.h>
#include <analyzer/model_loading.h>
#include <analyzer/range.h>
#include <analyzer/when.h>
#include <stdbool.h>
#include <stddef.h>

#define MODEL_NONE UINT32_MAX

struct reader;
struct names;
struct snapshot;
struct stack_stages;

enum phase { PHASE_START, PHASE_LOAD, PHASE_SETTLE, PHASE_STEPS, PHASE_END, PHASE_COUNT };

/* A byte is in one layer, except that S is the part of H (staging_pinned: of P) that is staging. */
struct layers {
	uint64_t device;           /* V, exact: what the driver gave and has not got back */
	uint64_t pinned;           /* P, exact: the same for host memory of the driver */
	struct range anon;         /* A, anonymous copies of weight pages */
	struct change host;        /* H, since the first sample; unknown where never sampled */
	struct change others;      /* N, since the first sample; unknown where never sampled */
	uint64_t staging;          /* S, host blocks that hold weights under way; outside P */
	uint64_t staging_pinned;   /* the same inside P */
	struct range weight_cache; /* C, page cache of this run's weight files */
	struct range stale_cache;  /* page cache of everything else */
	struct range free;         /* MemFree plus the per-CPU lists */
	struct range own;          /* sparktrace's ring and recorder */
	struct change kernel;      /* K, the rest, since the first sample */
};

struct moment {
	bool valid;     /* false: the run never came to it */
	bool before;    /* `index` had not taken place yet */
	uint64_t time;  /* of a peak: the first instant within 1 MiB of it */
	uint64_t index; /* record number in the trace, of the instant that `layers` shows */
	enum phase phase;
	struct layers layers;     /* of a peak: at its very maximum; in a load at the end of that */
	struct range demand;      /* M = V + P + A + H + max(N, 0) of what was measured */
	struct range modelled;    /* V + P + A + S */
	struct range resident;    /* R = M + page cache */
	struct range on_device;   /* D, bytes of weight files in live device blocks */
	struct range reclaimable; /* bytes both in C and D */
	struct range duplicated;  /* bytes of A and S beside D */
	uint64_t mapped;          /* bytes of weight files mapped */
	uint32_t thread, stack;   /* of the event at `time`, 0: unknown */
	uint32_t file, tensor;    /* concerned then, or last before */
};

enum moment_name {
	MOMENT_START,            /* the first sample */
	MOMENT_FIRST_WEIGHT,     /* just before the first weight byte */
	MOMENT_LOAD_DEMAND_PEAK, /* peaks are maxima over their phase */
	MOMENT_LOAD_MODELLED_PEAK,
	MOMENT_LOAD_RESIDENT_PEAK,
	MOMENT_LAST_WEIGHT, /* just after the last weight byte */
	MOMENT_SETTLED, /* just before the first allocation on the device after the load; without one, before the
	                     * first release there or the end of the program */
	MOMENT_STEPS_PEAK,  /* demand, in the steps */
	MOMENT_DEMAND_PEAK, /* the whole run, but not its end */
	MOMENT_RESIDENT_PEAK,
	MOMENT_FAILURE, /* just before the first failed request that was not retried with success,
	                 * else before the first failed one */
	MOMENT_END,     /* last event */
	MOMENT_COUNT
};

enum failure_outcome {
	FAILURE_RETRIED,  /* the same bytes were got later: a retry, no OOM */
	FAILURE_SURVIVED, /* never got, but the program ended well or did much more */
	FAILURE_FATAL,    /* never got, and the program ended badly or its end is not in the trace */
};

/* One failed request. A burst of VMM handles that ends in a refusal is one request. */
struct failure {
	uint64_t time;
	uint16_t kind;  /* enum st_kind: device_alloc, handle_create, pinned_alloc, register */
	uint64_t asked; /* bytes; with `at_least` more may have been wanted */
	bool at_least;
	uint64_t attempted; /* bytes of handles got and given back inside this request */
	int64_t result;     /* CUresult */
	uint32_t repeats;   /* further failures of the same request, same stack */
	enum failure_outcome outcome;
	uint64_t retry_time;    /* of the success, 0: none */
	uint64_t freed_between; /* device bytes given back before that success */
	struct moment at;       /* just before */
};

/* Where a file is or was mapped: equal ones (prot, flags, stack) counted together. */
struct file_mapping {
	uint32_t prot, flags; /* PROT_* at the most permissive, MAP_* */
	uint32_t stack;
	uint32_t count;  /* maps so far */
	uint64_t bytes;  /* of the longest one */
	uint64_t copied; /* bytes copied to the device directly out of it */
	bool kept;       /* still there when the load had settled (or at the end of a dead load) */
};

/* Advice of one kind that a program gave about a file. */
struct file_advice {
	bool mapping;    /* madvise() of its mappings; false: posix_fadvise() of the file */
	uint32_t advice; /* MADV_*, POSIX_FADV_* */
	uint64_t count, bytes;
};

#define MODEL_THREADS 8 /* of one file that are kept */
#define MODEL_ADVICES 8

/* State of one file or tensor at one moment. */
struct residency_at {
	struct range on_device; /* D, distinct bytes of the file */
	struct range anon;      /* A */
	uint64_t staging;       /* S, in or out of P */
	struct range cached;    /* C */
	struct range reclaimable;
};

struct weight_file {
	const char *path;
	enum st_file_format format;
	uint32_t id;             /* in the trace */
	uint64_t size, payload;  /* bytes; those of its tensors, `size` where these are unknown */
	struct range loaded;     /* distinct payload bytes that were copied to the device or read */
	struct range would_load; /* of the payload: all, or this rank's share */
	uint64_t mapped;         /* most bytes mapped at once */
	uint64_t read_bytes;     /* by read calls, in all */
	uint64_t copied_bytes;   /* to the device, in all, repetitions included; lower bound if !exact */
	bool exact;              /* every copy could be attributed */
	int cache_error;         /* errno of cachestat: C unknown; 0: known or never looked */
	bool cache_seen;
	struct residency_at at_peak, at_settled, at_end; /* modelled peak of the load; settled; end */
	uint64_t anon_peak;               /* most anonymous bytes that a scan or a prediction gave */
	uint64_t first_touch, last_touch; /* 0: never */
	uint32_t order;                   /* of its first touch among the files, from 1; 0: never */
	uint32_t threads[MODEL_THREADS], thread_count; /* that read or copied of it, in that order */
	bool threads_more;                             /* than these */
	struct file_advice advices[MODEL_ADVICES];
	uint32_t advice_count;
	bool opened;    /* by the program; false: only its index names it */
	uint32_t index; /* that names it, MODEL_NONE */
	size_t mapping_count;
	struct file_mapping *mappings;
	uint32_t open_stack, open_flags; /* of the first open, 0 */
	uint32_t loader;                 /* index, MODEL_NONE */
	uint32_t shard, shards;          /* from a name like x-00002-of-00008, 0: none */
};

/* What SPARKTRACE_RELIEF did. Bytes. */
struct relief {
	uint64_t maps, mapped;    /* without write permission */
	uint64_t stores, written; /* parts of them that were made writable again */
	uint64_t dropped;         /* page cache given back */
	uint64_t refused;         /* times that a mapping was left as it was */
	int error;                /* the last time, why: errno */
};

struct tensor {
	const char *name;
	uint32_t file;
	enum st_dtype dtype;
	uint64_t offset, size, elements;
	struct residency_at at_peak, at_settled;
	uint64_t first_touch, last_touch; /* by a read or a copy out of a mapping, 0: none is known */
	uint64_t read_bytes;              /* repetitions included, as in the next */
	struct range copied;              /* to the device */
	uint32_t thread;                  /* of the first touch */
	uint32_t place, order;            /* in its file; of its first touch there; from 1, 0: never */
};

/* The index of a sharded checkpoint. */
struct checkpoint_index {
	const char *path;
	uint64_t total_size; /* bytes of all tensors as it says, ST_UNKNOWN */
	uint64_t shards, tensors;
};

/* The load as a whole. Maxima are over the load and the time until the steps begin. */
struct load {
	bool present;            /* weights were touched at all */
	bool finished;           /* false: the run died in it */
	uint64_t begin, end;     /* ns; `end` = last weight byte */
	uint64_t weights;        /* bytes of the weights: payload of all weight files touched */
	struct range would_load; /* of them by this process, with shards that were never opened */
	uint64_t shards_missing; /* shards that file names promise and that were never opened */
	struct range loaded;     /* distinct bytes loaded */
	struct range remaining;  /* would_load - loaded, at the end of the load */
	struct range demand;     /* M at its peak - M at the first weight byte */
	struct range modelled;   /* maximum of V + P + A + S over the load */
	struct range resident;   /* maximum of R over the load: the double-resident load peak */
	struct range reclaimable, duplicated; /* maxima over the load */
	struct range anon;                    /* maximum of A */
	struct range anon_copied;             /* A made by the load in all, mappings gone included */
	uint64_t staging;                     /* maximum of S outside P */
	uint64_t staging_all;                 /* maximum of S wherever */
	uint64_t pinned, device;              /* maxima of P, V */
	uint64_t mapped;                      /* maximum of bytes of weight files mapped */
	struct range host;                    /* maximum of H as a rise since the first weight byte */
	uint64_t ahead;        /* device bytes allocated and without weights when a load died, else 0 */
	uint64_t device_other; /* device bytes at the modelled peak that hold no weights, context apart */
	uint32_t threads;      /* that copied or read weights */
	uint64_t largest_tensor, parameters;
	uint64_t slots;        /* sum of the distinct power-of-two size classes of the tensors */
	uint64_t spare;        /* U = threads x slots */
	struct range repaired; /* maximum over the run of M - max(0, A + S - U): rung 1b */
	uint64_t copied_from[COPY_SOURCE_COUNT]; /* bytes, during the load */
	bool from_private_writable; /* some copy came directly out of a private writable file mapping */
	uint64_t pinned_sources;    /* maximum of the pinned blocks that weights were copied from */
	uint64_t largest_file;      /* payload */
	struct outcome outcomes[EFFECT_COUNT];
	struct load_stage stages[STAGE_COUNT];
	double factor_lo, factor_hi; /* modelled / weights; 0, 0 where there are none; hi may be INFINITY */
	struct range peaks[LOAD_PEAK_COUNT];
	uint64_t mappings; /* most mappings of weight files at one instant */
	uint64_t
		read_bytes; /* bytes of weight files read by calls until the steps began, repetitions included */
};

/* Mn. `demand` is what the run needed, as far as the trace can tell. */
struct needed {
	struct range demand;
	struct range modelled;      /* the same of V + P + A + S */
	struct range anon, staging; /* A and S then, slopes carried on */
	enum phase died_in;         /* PHASE_COUNT: it did not die */
	uint64_t request;           /* failed request that is in it, 0 */
	bool at_least;              /* of the request more may have been wanted */
	bool lower_bound;           /* steps were never reached, or died: later needs are unknown */
};

/* What the pool said. Unknown fields are ST_UNKNOWN. */
struct pool_state {
	uint64_t time;
	uint64_t total, free, available, percpu, swap_total, swap_free, watermark;
	uint64_t cma_total, cma_free, cached, buffers, sreclaimable, shmem, dirty, writeback;
	uint64_t active, inactive, slab, page_tables, unevictable;
	uint64_t cgroup_used, cgroup_limit, oom_kills;
};

/* cuMemGetInfo beside the pool at that time. */
struct told {
	bool valid;
	uint64_t time, free, total;
	uint64_t mem_free, mem_available, sampled; /* last sample before it, ST_UNKNOWN: none */
};

struct coverage {
	const char *text;
	uint64_t count;
};

struct info {
	const char *name, *value;
};

/* Device bytes by the stack that asked for them, largest first. */
struct holder {
	uint32_t stack;
	uint64_t at_load_peak, at_peak; /* modelled peak of the load; demand peak of the run */
};

/* Memory that came and went during the load (transients.h), by kind, and by the stack that asked for it. */
enum transient_kind { TRANSIENT_HOST, TRANSIENT_DEVICE, TRANSIENT_REUSED, TRANSIENT_KINDS };

struct transient_sum {
	uint64_t count, bytes; /* blocks; their bytes in all */
	uint64_t at_once;      /* most bytes of them at one moment; of `reused` an upper bound */
	uint64_t copied;       /* bytes of host blocks that were the source of a copy to the device */
};

struct transient_site {
	enum transient_kind kind;
	uint32_t stack;
	uint64_t count, bytes, at_once, copied;
	uint64_t returned; /* bytes of host blocks that were the destination of a copy from the device */
	uint64_t largest;  /* of its blocks */
};

struct model {
	/* Whose trace it is. */
	uint32_t pid, ppid, uid, rank, world; /* rank, world: MODEL_NONE where unknown */
	uint64_t page_size, cpus;
	enum st_pool_class pool;
	uint64_t begin, end; /* first and last event, ns; begin is the program's start where known */
	uint64_t realtime, monotonic, synced; /* clocks of the first block; last completed sync, 0: none */
	int64_t utc_offset;                   /* seconds */
	bool exited;                          /* an exit record is there */
	enum st_exit_how exit_how;
	int64_t exit_status;
	uint64_t records, lost_events, lost_bytes;

	struct pool_state first, last;          /* samples; `first` is where budgets start from */
	uint64_t samples;                       /* 0: first and last are unknown */
	bool host_seen, others_seen;            /* H and N were measured; else they are not in the demand */
	uint64_t lowest_available, lowest_free; /* over all samples, ST_UNKNOWN */
	uint64_t swap_used;                     /* most swap used beyond the first sample */
	uint64_t own;                           /* most bytes of sparktrace's own, ST_UNKNOWN */

	struct moment moments[MOMENT_COUNT];
	uint64_t device_peak, device_peak_time; /* V, exact */
	uint64_t pinned_peak, staging_peak, mapped_peak;
	uint64_t attempted_peak; /* most bytes of handles inside a failed request */
	uint64_t context_bytes;  /* device bytes of contexts, where the driver tells */
	uint64_t doors
		[DEVICE_DOOR_COUNT]; /* device bytes granted until the steps began, by how they were asked for */

	struct load load;
	struct needed needed;
	struct range optimizer; /* device bytes by stacks in an optimizer at the steps' peak */

	size_t failure_count, file_count, tensor_count, coverage_count, info_count, holder_count;
	struct failure *failures;
	uint64_t failures_dropped; /* beyond those kept */
	struct weight_file *files;
	struct loader *loaders; /* most bytes first */
	size_t loader_count;
	uint64_t touches_dropped; /* calls that are in no loader: from more places than are kept */
	struct tensor *tensors;
	struct checkpoint_index *indexes;
	size_t index_count;
	struct coverage *coverages;
	struct info *infos;
	struct holder *holders;
	struct transient_sum transient_sums[TRANSIENT_KINDS];
	struct load_part *load_parts; /* by peak and kind, most bytes first */
	size_t load_part_count;
	struct transient_site *transients; /* by kind, most bytes first */
	size_t transient_count;
	bool transients_cut;                            /* too many: at_once is a lower bound */
	struct told told_first, told_last, told_failed; /* the last before the failure */
	struct names *names;
	struct stack_stages
		*stack_stages; /* stages_stack.h: what is done with memory that a stack asks for */
	struct snapshot *at;   /* model_snapshot.h; NULL: nobody asked */
	struct relief relief;
};

struct model_options {
	bool uma;       /* replay as if device and host shared one pool, whatever the trace says */
	struct when at; /* the moment to show; kind WHEN_NONE: none */
};

/*
 * Goes over the whole trace three times: for its names, for what only its end tells, to measure. What the input was
 * at the reader's open counts: a program that still runs is seen as it was then.
 * Returns 0 or a negative errno of the reader or -ENOMEM; *ret_model untouched then.
 */
int model_build(struct reader *reader, const struct model_options *options, struct model **ret_model);
void model_free(struct model *model);

/* Value of an `info` record, NULL if the trace has none of that name. */
const char *model_info(const struct model *model, const char *name);

#endif
