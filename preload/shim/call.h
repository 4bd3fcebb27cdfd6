/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the program into the driver, for the wrappers of wrap_driver_*.c:
 *
 *	struct call call;
 *	call_begin(&call);		releases are noted here
 *	result = real(...);
 *	if (call_end(&call)) {		what came of it is noted here
 *		EVENT(...);
 *		call_done(&call);
 *	}
 *	return result;
 *
 * What most entries share is below: allocations, releases, copies.
 */
#ifndef SPARKTRACE_SHIM_CALL_H
#define SPARKTRACE_SHIM_CALL_H

#include "driver.h"
#include "event.h"
#include "guard.h"
#include "stack.h"

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define FLAG(bit)        (UINT64_C(1) << (bit))

/* From this size on a record says that the call is about to enter the driver: it may never return. */
#define CALL_LARGE (UINT64_C(64) << 20)

struct call {
	struct guard inside; /* raised while the driver runs */
	struct guard own;    /* raised while we note */
	bool silent;         /* our own code called, or nothing is recorded: no notes */
	uint64_t flags;      /* bits of enum st_call_flag */
	uint64_t began;      /* of call_begin_timed() */
};

/* Nested in another call? For a wrapper's own frame, before it raised anything. */
static inline uint64_t call_flags(void)
{
	return call_nested() || guard_thread.cufile ? FLAG(ST_CALL_NESTED) : 0;
}

/*
 * Starts the recording at the first call, then marks the thread as inside the driver. `size` bytes from
 * CALL_LARGE on are announced by a record `enter`, which names the kind of the record that follows.
 * Keeps errno.
 */
void call_begin(struct call *call);
void call_begin_large(struct call *call, enum st_kind kind, uint64_t addr, uint64_t size);

/* The same, and looks at the clock; before call_end() call_took() tells how long the call was, ns. */
void call_begin_timed(struct call *call);
uint64_t call_took(const struct call *call);

/* Takes the mark back. True: note, then call_done(). errno is the driver's until then, and after. */
bool call_end(struct call *call);
void call_done(struct call *call);

/* The stream that 0 stands for in an entry for the per-thread default stream. */
static inline uint64_t stream_of(CUstream stream, bool per_thread)
{
	return ADDRESS(stream ? stream : per_thread ? CU_STREAM_PER_THREAD : NULL);
}

/* Device memory: fill in what is known before the call, alloc_begin(), call, alloc_end(). */
struct alloc {
	struct call call;
	enum st_device_how how;
	uint64_t asked; /* bytes */
	uint64_t stream;
	uint64_t pool;
	uint64_t capturing; /* stream_capturing() */
};

void alloc_begin(struct alloc *alloc);

/* `addr` and `size` as they came back; ignored when `result` is an error. Returns `result`. */
CUresult alloc_end(struct alloc *alloc, CUresult result, uint64_t addr, uint64_t size);

/* What an out-parameter holds: it is read after success only, and the program may have passed NULL. */
#define CAME(result, pointer) ((result) == CUDA_SUCCESS && (pointer) ? ADDRESS(*(pointer)) : 0)

/* A release: noted before the call, revoked when that fails. */
struct release {
	struct call call;
	uint64_t seq; /* of the record to be revoked, 0: none */
};

/* release_begin(&release, RELEASE(device_free, .addr = ...)); the stack is filled in. NULL: no record. */
#define RELEASE(kind_, ...) (&(struct st_ev_##kind_){EVENT_HEAD(kind_), __VA_ARGS__}.r)
void release_begin(struct release *release, struct st_record *record);
CUresult release_end(struct release *release, CUresult result);

/* A copy. Fill in all but `call`, copy_begin(), call, copy_end(). */
struct copy {
	uint64_t dst, src; /* addresses, or handles of arrays */
	uint64_t size;     /* bytes */
	enum st_copy_how how;
	bool async; /* not over when the call returns */
	uint64_t stream;
	struct call call;
	uint64_t span; /* from the first byte to the last of a target with gaps; 0: no gaps */
};

void copy_begin(struct copy *copy);
CUresult copy_end(struct copy *copy, CUresult result);

/* A failed allocation: the recorder shall look at the pool now. For use between call_end() and call_done(). */
void note_failed(CUresult result, uint64_t size);

/* FLAG(ST_CALL_CAPTURING) when the stream is capturing: the one question asked on a hot path. */
uint64_t stream_capturing(__typeof__(&cuStreamIsCapturing) ask, CUstream stream);

#endif
