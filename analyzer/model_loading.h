/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the model that tells of loaders, and of other ways of loading. */
#ifndef SPARKTRACE_MODEL_LOADING_H
#define SPARKTRACE_MODEL_LOADING_H

#include <analyzer/range.h>
#include <stdbool.h>
#include <stdint.h>

/* Where copies to the device came from. */
enum copy_source {
	COPY_PRIVATE_WRITABLE, /* mapping of a weight file, private and writable: breaks copy-on-write */
	COPY_MAPPING,          /* any other mapping of a weight file */
	COPY_PINNED,
	COPY_REGISTERED,
	COPY_HOST, /* host block above the threshold */
	COPY_OTHER,
	COPY_SOURCE_COUNT
};

#define LOADER_PARTS 8

/* A known loader in the stacks that touched weights. */
struct loader_part {
	const char *known;          /* what this tool calls it (loader.c) */
	const char *name, *version; /* as its metadata has them; without any the same as known, and NULL */
	bool base;                  /* torch and the like, on which the others stand */
	uint64_t direct, read; /* bytes copied out of private writable mappings, read, with it in the stack */
};

/* One way by which weights came: the same loaders, the same line. Strings are those of `names`. */
struct loader {
	struct loader_part parts[LOADER_PARTS]; /* outermost first: it decides; the last one does the work */
	unsigned part_count;                    /* 0: none that is known */
	const char *entry;                      /* what was called of the first part, NULL: unknown */
	const char *function, *file;            /* its innermost frame, NULL */
	const char *caller, *caller_file;       /* the user's own line that called all that, NULL */
	uint32_t line, caller_line;             /* 0: unknown */
	uint64_t bytes;                         /* of its files, loaded */
	uint32_t file_count, first_file;
	uint64_t mapped, read, copied[COPY_SOURCE_COUNT];
	uint64_t
		sliced; /* of the bytes copied out of private writable mappings: through safetensors' get_slice() */
	bool kept; /* some mapping was still there when the load had settled */
};

/*
 * What a way of loading may do otherwise: each is a what-if of the measuring pass (model_whatif.c). Rows of
 * E(NAME, what it means for memory).
 */
/* clang-format off */
#define MODEL_EFFECTS(E) \
	E(READONLY, "weights are mapped without write permission: no anonymous copies but what the program writes") \
	E(SLOTS, "each tensor goes through a pinned slot that is kept: one of each power-of-two size a thread") \
	E(TENSOR, "each tensor is read into the heap, at most twice, before it is copied") \
	E(MAPPED, "weights are mapped read-only instead of being read into the heap") \
	E(STREAM, "weights are read into the heap tensor by tensor, not all of them or a whole file") \
	E(BOUNCE, "pinned memory for the copies is a fixed pool of 16 MiB a thread, past the page cache") \
	E(ONE_THREAD, "one thread at a time stages or converts") \
	E(RELEASE, "a file is unmapped once its last tensor has been copied") \
	E(DROP, "page cache of weights is dropped once they have been copied") \
	E(DIRECT, "weights are read past the page cache") \
	E(READONLY_DROP, "mapped without write permission, and page cache dropped after the copy")
/* clang-format on */
enum effect {
#define E(name, meaning) EFFECT_##name,
	MODEL_EFFECTS(E)
#undef E
		EFFECT_COUNT
};

/* What a load would have come to with one effect. Only if `valid`: the trace has what it acts on. */
struct outcome {
	bool valid;
	struct range demand; /* Mn: the run's needed peak */
	struct range
		modelled; /* maximum of V + P + A + S over the load, of a dead one what it would have come to */
	struct range resident; /* maximum of R over the load, as far as it went */
};

/* What threads do in a load (stages.h), and what sets the pace. */
enum stage {
	STAGE_HEADER,
	STAGE_MAP,
	STAGE_READ,
	STAGE_HOST_COPY,
	STAGE_DEVICE_COPY,
	STAGE_CONVERSION,
	STAGE_QUANTISE,
	STAGE_REPACK,
	STAGE_RELEASE,
	STAGE_COUNT
};

enum bound { BOUND_UNKNOWN, BOUND_STORAGE, BOUND_MEMORY, BOUND_DRIVER, BOUND_PROGRAM, BOUND_COUNT };

struct load_stage {
	uint64_t calls, bytes;      /* bytes moved; 0 where a stage moves none */
	uint64_t wall, thread_time; /* ns in which some thread was in it; of all threads together */
	bool upper;                 /* the times hold other things as well */
	bool lower;       /* the times, and what was moved, may be more: too much at a time to follow */
	uint64_t sampled; /* ns of thread_time that the next two are known for */
	uint64_t storage; /* bytes from storage: this stage's share, by time, at most what it moved */
	uint64_t faults;  /* page faults that waited for storage, likewise */
	enum bound bound; /* what set the pace */
	bool one_thread;  /* and one thread did it where more processors were there */
};

/* How device memory is asked for. */
enum device_door {
	DEVICE_DOOR_BLOCK, /* cuMemAlloc and its kin */
	DEVICE_DOOR_VMM,
	DEVICE_DOOR_POOL, /* stream-ordered, out of a pool of the driver's */
	DEVICE_DOOR_MANAGED,
	DEVICE_DOOR_ARRAY,
	DEVICE_DOOR_COUNT
};

/*
 * Maxima over the load and the time until the steps begin, each with an instant of its own, and what was there then: by
 * file, by tensor, by the stack that asked for it.
 */
enum load_peak {
	LOAD_PEAK_DEVICE,  /* V */
	LOAD_PEAK_STAGING, /* P, and S outside P */
	LOAD_PEAK_ANON,    /* A */
	LOAD_PEAK_HOST,    /* host blocks asked for since the first weight byte, without S */
	LOAD_PEAK_MAPPED,  /* bytes of weight files mapped */
	LOAD_PEAK_COUNT
};

enum load_part_kind { LOAD_PART_FILE, LOAD_PART_TENSOR, LOAD_PART_STACK };

struct load_part {
	enum load_peak peak;
	enum load_part_kind kind;
	uint32_t which; /* index of the file or tensor; stack, 0: unknown */
	struct range bytes;
};

#endif
