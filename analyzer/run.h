/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of one run: which belong together, and what their processes did to the pool together.
 *
 * A card is what one trace says of its process that tells whose it is. Two traces are of one run when
 *
 *	same boot, and	the same root (info `run`: the topmost ancestor that had our library); where that is a
 *			shell, which starts many runs, only if they overlap in time. Or they overlap, and one is
 *			the other's parent (ppid, `child`), or a launcher started both (below)
 *	other boots	a launcher started both, and they overlap on the clocks of day
 *
 * Started by one launcher: an identifier of its job that is equal (run_keys), the same world, larger than 1, and
 * different ranks. What follows from two of these holds for all: a run is what hangs together. CLOCK_MONOTONIC is
 * one clock for all processes of a boot, so their records are merged by time as they are; hosts are never summed.
 */
#ifndef SPARKTRACE_RUN_H
#define SPARKTRACE_RUN_H

#include "model.h"
#include "reader.h"

/* Identifiers of a job; the variables that hold them come first in run_cards.c. */
enum run_key { RUN_KEY_SLURM, RUN_KEY_PMIX, RUN_KEY_ELASTIC, RUN_KEY_PORT, RUN_KEY_COUNT };

/* What a sample says of memory that several traces see; unknown: ST_UNKNOWN. */
struct run_sample {
	uint64_t time, anon, others, recorder;
	bool fresh; /* the others were really looked at for this sample; else the value is that of an earlier one */
};

struct run_card {
	char *path;
	char boot_id[40];
	uint64_t pid, ppid, rank, world; /* rank, world: ST_UNKNOWN */
	uint64_t start, begin,
		end;         /* of the program, or first record; first and last record: CLOCK_MONOTONIC */
	uint64_t gone;       /* its end, or the last record */
	int64_t day;         /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	uint64_t ring_bytes; /* part of `recorder` that is shared memory */
	bool ending;         /* how it ended is about to be written */
	bool forked;         /* a copy of its parent */
	bool shell;          /* the root is a shell or a login */
	char *root, *host, *command; /* NULL: unknown */
	char *keys[RUN_KEY_COUNT];
	uint32_t *children;
	size_t child_count, child_room, sample_count, sample_room;
	struct run_sample *samples;
	size_t group; /* after cards_group(): index of the first card of its run */
};

/* Reads a whole trace for its card. 0 or a negative errno of the reader or -ENOMEM; a card is then not made. */
int card_read(const char *path, struct run_card *ret_card);
/* The same of its beginning alone: who it is (boot_id, pid, start, day), mostly from the first block. */
int card_glance(const char *path, struct run_card *ret_card);
void card_release(struct run_card *card);

/* First and last moment on the clock of day, ns. */
static inline int64_t card_day_begin(const struct run_card *card)
{
	return (int64_t)(card->begin + (uint64_t)card->day);
}

/* The program's start on that clock. */
static inline int64_t card_day_start(const struct run_card *card)
{
	return (int64_t)(card->start + (uint64_t)card->day);
}

static inline int64_t card_day_end(const struct run_card *card)
{
	return (int64_t)(card->end + (uint64_t)card->day);
}

/* Which belong together; `together`: whatever overlaps on one machine does. */
void cards_group(struct run_card *cards, size_t count, bool together);

/* First sample of all, ns; 0: none. */
uint64_t run_first_sample(struct run_card *const *cards, size_t count);

/* --- several processes on one machine ------------------------------------------------------------ */

/* One process, and what it had when all together had most. */
struct run_part {
	struct run_card *card;
	struct reader *reader;
	struct model *model;
	bool there;             /* it lived then */
	enum phase phase;       /* then */
	struct layers layers;   /* then; `host` as it counts in the total, `others` means nothing */
	struct range demand;    /* V + P + A + H then */
	uint64_t most, most_at; /* the most of that it ever had, and when; upper bounds */
};

/* A weight file of any of them, then. */
struct run_file {
	const char *path; /* of one of the models */
	uint64_t dev, ino, size;
	size_t processes;                 /* that touched it */
	struct range cached;              /* once */
	struct range on_device, anon;     /* of all */
	uint64_t staging, copied, mapped; /* of all; copied: ever; mapped: most at once, each */
};

/*
 * `model` is that of all processes together, at common instants: moments, load, needed, budget's inputs. V, P, A, H
 * and S are sums over the processes that live; pool layers are the pool's, weight cache counts each file once, and N is
 * what is no process of the run. It has no names, stacks, files or tensors: those are each process' own.
 *
 * H of a process that was there before the first sample of the run is its rise since its own first sample. One that
 * came later brings all of its memory, but a forked copy only what it rose by: the rest is its parent's.
 * Memory that processes share otherwise (MAP_SHARED, IPC handles) counts with each that has it.
 */
struct run_total {
	size_t part_count, file_count;
	struct run_part *parts; /* by rank, then by start */
	struct run_file *files;
	struct model *model;
};

/* All cards are of one run on one machine. 0 or a negative errno; *ret_bad: the trace that it is about, NULL for none. */
int run_total_build(struct run_card *const *cards, size_t count, const struct model_options *options,
                    struct run_total **ret_total, const char **ret_bad);
void run_total_free(struct run_total *total);

#endif
