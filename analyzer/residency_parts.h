/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of residency among themselves. */
#ifndef SPARKTRACE_RESIDENCY_PARTS_H
#define SPARKTRACE_RESIDENCY_PARTS_H

#include <analyzer/residency.h>
#include <errno.h>

/* Content of memory: which file (0: unknown, i: weight i - 1), on the device or not, place known or not. */
#define CONTENT_DEVICE (UINT64_C(1) << 32)
#define CONTENT_VAGUE  (UINT64_C(1) << 33) /* b is no place */
#define CONTENT_SHARED (UINT64_C(1) << 34) /* file unknown, b is the size of the tensor */
#define CONTENT_HEAP   (UINT64_C(1) << 35) /* read into a host block */
#define CONTENT_LOOSE  (UINT64_C(1) << 36) /* read into other host memory, whose release may go unseen */
#define CONTENT_OLD    (UINT64_C(1) << 37) /* the host block was asked for before the load; its stack follows: */
#define CONTENT_STACK  38
#define CONTENT_HOST   (~UINT64_C(0) << 35) /* all that is said of host memory */

static inline uint32_t content_file(uint64_t word)
{
	return (uint32_t)word;
}

/* Before any change of a struct kept: saves it for the points that it has not been saved for. */
static inline struct amounts *kept_change(const struct residency *residency, struct kept *kept)
{
	for (int point = 0; point < POINT_COUNT; point++) {
		if (kept->epoch[point] == residency->epoch[point])
			continue;
		kept->at[point] = kept->now;
		kept->epoch[point] = residency->epoch[point];
	}
	if (kept->staging_epoch != residency->staging_epoch) {
		kept->staging_epoch = residency->staging_epoch;
		kept->staging = kept->now.staging;
	}
	if (kept->anon_epoch != residency->anon_epoch) {
		kept->anon_epoch = residency->anon_epoch;
		kept->anon = kept->now.anon;
		kept->anon_possible = kept->now.anon_possible;
	}
	return &kept->now;
}

/* Only want of memory ends an analysis; a range that is in the way is damage, and costs itself. */
static inline void residency_note(struct residency *residency, int error)
{
	if (error == -ENOMEM && !residency->replay.error)
		residency->replay.error = error;
}

/* What the peaks of the load consist of, by stack (residency_peaks.c). `bytes`, `more`: negative where they go. */
void sum_move(struct residency *residency, enum load_peak peak, uint64_t stack, int64_t bytes, int64_t more);
/* Pinned blocks, and host blocks of the load; the block that a record at `address` asked for. */
void block_move(struct residency *residency, enum region region, const struct span *piece, int sign);
void block_asked(struct residency *residency, enum region region, const struct livemap *map,
                 uint64_t address);
/* Weights were read to [lo, hi); it is gone or filled, and not awaited any more. */
void block_filled(struct residency *residency, uint64_t lo, uint64_t hi);
void block_waits_no_more(struct residency *residency, uint64_t lo, uint64_t hi);
/* Device bytes by the stack that asked for them. */
void holding_move(struct residency *residency, uint32_t stack, int64_t bytes);
/* Mapped bytes of a file come or go. */
void mapped_move(struct residency *residency, struct weight *weight, const struct mapping *mapping,
                 int64_t bytes);

/* Per file (residency_weight.c). The weight of an index, NULL when there is no memory for it. */
struct weight *weight_get(struct residency *residency, uint32_t index);
void weight_touch(struct residency *residency, uint32_t index, uint64_t offset, uint64_t time);
/* One more (one less) live device copy of these file bytes. */
void weight_device_add(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi);
void weight_device_remove(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi);
/* Adds file bytes to `loaded` or `read`. */
void ranges_add(struct residency *residency, struct livemap *map, uint64_t lo, uint64_t hi);
void weight_release(struct weight *weight);

enum amount { AMOUNT_DEVICE, AMOUNT_ANON, AMOUNT_ANON_POSSIBLE, AMOUNT_STAGING };
/* Adds `sign` times the bytes [lo, hi) of a file to an amount of the tensors there, of the file, of all. */
void amount_move(struct residency *residency, uint32_t index, enum amount amount, uint64_t lo, uint64_t hi,
                 int sign);
/* Its tensors of that size, NULL where there are none. */
struct size_class *weight_class(const struct weight *weight, uint64_t size);

/* Copies out of buffers that the program filled itself (residency_shared.c): whose tensor has that size? */
enum guess { GUESS_NONE, GUESS_FILE, GUESS_SHARED };
enum guess weight_guess(struct residency *residency, uint64_t size, uint32_t *ret_file);
void weight_forget(struct residency *residency, struct weight *weight);
/* So many bytes more (or, as a negative number, less) in live device blocks. */
void shared_live(struct residency *residency, uint64_t size, uint64_t bytes);

/* Page cache (residency_cache.c). */
int weight_cells_init(struct residency *residency, struct weight *weight, const struct catalog_file *file);
/* A file counts with all of its cells from its first touch on; until then nothing of it is unknown. */
void cells_count_in(struct residency *residency, struct weight *weight, uint64_t size);
/* What is known of a file's bytes in C and D together has changed. */
void double_update(struct residency *residency, struct weight *weight, uint64_t size);
void cells_record(struct residency *residency, const struct st_ev_cached *record);
/* A cell's device bytes change by `bytes`. */
void cells_device(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi, int sign);

/* Use of files and tensors (residency_use.c). */
void use_thread(struct residency *residency, uint32_t index, uint32_t thread);
void use_range(struct residency *residency, uint32_t index, uint64_t lo, uint64_t hi,
               const struct st_record *record, bool copied);
void use_advise(struct residency *residency, const struct st_ev_advise *record);
void use_fadvise(struct residency *residency, const struct st_ev_fadvise *record);

/* Anonymous copies (residency_anon.c). */
void breaks_mapped(struct residency *residency, struct mapping *mapping);
void breaks_predict(struct residency *residency, const struct span *map, uint64_t lo, uint64_t hi);
void breaks_scan(struct residency *residency, const struct st_ev_anon *record);
void breaks_gone(struct residency *residency, uint64_t lo, uint64_t hi);
/* What a remap does: takes out the pieces of a range, and puts them back elsewhere. */
struct anon_moved {
	struct span *pieces;
	size_t count;
};
void breaks_take(struct residency *residency, uint64_t lo, uint64_t hi, struct anon_moved *ret_moved);
void breaks_put(struct residency *residency, struct anon_moved *moved, uint64_t shift);

/* The touch of a file by this record, where somebody asks for it, else one that nobody looks at. */
static inline struct touch *touch_of(struct residency *residency, uint32_t file, uint64_t stack)
{
	static _Thread_local struct touch nobody;
	struct touch *touch = NULL;

	if (residency->touches)
		touch = touches_get(residency->touches, file, (uint32_t)stack);
	return touch ? touch : &nobody;
}

/* What-ifs (residency_held.c). A copy out of a private writable mapping. */
void held_mapped_copy(struct residency *residency, uint64_t size);
/* The block there served weights as a source. */
void held_source(struct residency *residency, uint64_t address, enum copy_source source);
void held_pinned(struct residency *residency, const struct st_ev_pinned_alloc *record);
void held_gone(struct residency *residency, uint64_t lo, uint64_t hi);
/* Pages that a scan found; that a copy took out of a private writable mapping; that went with it. */
void held_scanned(struct residency *residency, const struct weight *weight, const struct span *found);
void held_copied(struct residency *residency, uint64_t lo, uint64_t hi);
void held_unwritten(struct residency *residency, uint64_t lo, uint64_t hi);
/* CONTENT_HEAP, CONTENT_LOOSE or 0, for what a read puts there; and such content coming (1) or going (-1). */
uint64_t held_read_word(const struct residency *residency, uint64_t address);
void held_content(struct residency *residency, const struct span *piece, int sign);
/* A touch of a file; after the record that was its last one: its copies could be gone. */
void held_touched(struct residency *residency, uint32_t index, uint64_t time);
void held_leave(struct residency *residency);

/* Staging buffers (residency_staging.c). */
void staging_fill(struct residency *residency, uint64_t lo, uint64_t hi, uint32_t file, uint64_t delta);
void staging_copied(struct residency *residency, const struct st_ev_copy *record, uint64_t lo, uint64_t hi);
void staging_sync(struct residency *residency, const struct st_ev_sync *record);
void staging_over(struct residency *residency);
void staging_gone(struct residency *residency, uint64_t lo, uint64_t hi);
/* A read is about to fill [lo, hi), for residency_fresh(). */
void staging_note_filled(struct residency *residency, uint64_t lo, uint64_t hi);

/* What lies in [lo, hi), and copies out of it that are not over, is at `to` now; there is no such buffer any more. */
void staging_carry(struct residency *residency, uint64_t lo, uint64_t hi, uint64_t to);
void staging_forget(struct residency *residency, uint64_t lo, uint64_t hi);

/*
 * realloc() (residency_carry.c). Any record, before it is replayed: one that shows that there was none, and a release
 * that may be the first half of one. The block of this record came from realloc().
 */
void carry_over(struct residency *residency, const struct st_record *record);
void carry_free(struct residency *residency, const struct st_ev_free *record);
void carry_alloc(struct residency *residency, const struct st_ev_alloc *record);

/* Where carried content waits: no program has addresses from here on. It counts nowhere. */
#define CARRIED_FROM (UINT64_C(1) << 63)

/*
 * Copies of unknown content (residency_unknown.c). What kind of memory is at `address`? May these bytes be of a
 * file with something not yet accounted for? Does the block at `src` hold weights that were converted or quantised
 * on the host? `copied_by`: the copy's stack.
 */
enum copy_source source_of(const struct residency *residency, uint64_t address);
bool unknown_may_be_weights(struct residency *residency, uint64_t bytes);
bool source_converts(struct residency *residency, uint64_t src, uint32_t copied_by);

/* Content (residency_content.c). */
void content_gone(struct residency *residency, uint64_t lo, uint64_t hi);
/* What host memory held at [lo, hi) is at `to` now. */
void content_carry(struct residency *residency, uint64_t lo, uint64_t hi, uint64_t to);
void content_read(struct residency *residency, const struct st_ev_read *record, uint32_t file);
void content_copy(struct residency *residency, const struct st_ev_copy *record);
void content_memset(struct residency *residency, const struct st_ev_memset *record);

/*
 * Bytes of a file that was met may be in memory that the program filled itself: copied there from a mapping, which may
 * be gone since, or read in a way that nobody sees (io_uring, a system call of the loader's own).
 */
static inline bool weight_may_come(const struct weight *weight)
{
	return weight->opened || weight->mapped_peak || weight->floating;
}

#endif
