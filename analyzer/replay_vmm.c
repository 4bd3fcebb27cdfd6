/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay, virtual memory management of the driver: a handle is memory, a mapping gives it an address, a
 * reservation is nothing. A handle is free when it has neither a reference nor a mapping.
 */
#include <analyzer/range.h>
#include <analyzer/replay_parts.h>
#include <errno.h>
#include <stdlib.h>

static struct batch *batch_of(struct replay *replay, uint32_t serial)
{
	for (int i = 0; serial && i < REPLAY_BATCHES; i++)
		if (replay->batches[i].serial == serial)
			return &replay->batches[i];
	return NULL;
}

static uint32_t serial_next(struct replay *replay)
{
	if (!++replay->batch_serial)
		replay->batch_serial = 1;
	return replay->batch_serial;
}

/* What the request still holds unmapped counts from here on. Stacks were counted at creation. */
static void batch_count(struct replay *replay, struct batch *batch)
{
	replay->device += batch->waiting;
	batch->waiting = 0;
}

static void batch_close(struct replay *replay, struct batch *batch)
{
	batch_count(replay, batch);
	*batch = (struct batch){0};
}

static struct batch *batch_of_thread(struct replay *replay, uint32_t thread)
{
	for (int i = 0; i < REPLAY_BATCHES; i++)
		if (replay->batches[i].serial && replay->batches[i].thread == thread)
			return &replay->batches[i];
	return NULL;
}

/* The open request of a thread, or a new one in place of the oldest. */
static struct batch *batch_open(struct replay *replay, const struct st_record *record)
{
	struct batch *batch = batch_of_thread(replay, record->thread);

	if (batch)
		return batch;
	batch = &replay->batches[0];
	for (int i = 0; i < REPLAY_BATCHES; i++)
		if (replay->batches[i].time < batch->time)
			batch = &replay->batches[i];
	batch_close(replay, batch);
	*batch =
		(struct batch){.serial = serial_next(replay), .thread = record->thread, .time = record->time};
	return batch;
}

void replay_vmm_settle(struct replay *replay, uint32_t thread)
{
	struct batch *batch = batch_of_thread(replay, thread);

	if (batch)
		batch_close(replay, batch);
}

/* The request may still go on, but what it holds is held; its serial changes, so that this is not forgotten. */
void replay_vmm_settle_before(struct replay *replay, uint64_t time)
{
	for (int i = 0; i < REPLAY_BATCHES; i++) {
		struct batch *batch = &replay->batches[i];

		if (!batch->serial || !batch->waiting || batch->time >= time)
			continue;
		batch_count(replay, batch);
		batch->serial = serial_next(replay);
	}
}

static uint32_t handle_take(struct replay *replay)
{
	uint32_t slot = replay->handle_free;

	if (slot) {
		replay->handle_free = replay->handles[slot - 1].next;
		return slot - 1;
	}
	if (replay->handle_count == replay->handle_room) {
		uint32_t room = replay->handle_room ? replay->handle_room * 2 : 64;
		void *handles = realloc(replay->handles, room * sizeof(*replay->handles));

		if (!handles)
			return CATALOG_NONE;
		replay->handles = handles;
		replay->handle_room = room;
	}
	return replay->handle_count++;
}

static struct handle *handle_find(struct replay *replay, uint64_t number)
{
	struct span span;

	return livemap_find(&replay->handle_at, number, &span) ? &replay->handles[span.a] : NULL;
}

/* Does the handle wait in a request that is still open? */
static struct batch *handle_waits(struct replay *replay, struct handle *handle)
{
	struct batch *batch = batch_of(replay, handle->batch);

	if (!batch)
		handle->batch = 0;
	return batch;
}

/* Waiting handles are not in V yet; the others are. */
static void handle_leave(struct replay *replay, struct handle *handle)
{
	struct batch *batch = handle_waits(replay, handle);

	if (handle->host) {
		replay->host_handles -= handle->size;
		return;
	}
	if (batch) {
		batch->waiting -= handle->size;
		replay->device += handle->size;
		replay->freed -= handle->size;
	}
	replay_held(replay, handle->stack, -(int64_t)handle->size);
}

static void handle_drop(struct replay *replay, struct handle *handle)
{
	if (handle->refs || handle->mapped)
		return;
	handle_leave(replay, handle);
	handle->next = replay->handle_free;
	replay->handle_free = (uint32_t)(handle - replay->handles) + 1;
}

static void vmm_refused(struct replay *replay, const struct st_ev_handle_create *record)
{
	const struct batch *batch = batch_of_thread(replay, record->r.thread);
	struct refusal refusal = {ST_KIND_handle_create, (uint32_t)record->stack, record->size, 0,
	                          (int64_t)record->result};

	if (batch)
		refusal.attempted = batch->waiting;
	refusal.asked += refusal.attempted;
	replay_refused(replay, &record->r, &refusal);
}

static void handle_add(struct replay *replay, const struct st_ev_handle_create *record, uint32_t slot)
{
	struct handle *handle = &replay->handles[slot];
	struct batch *batch;

	*handle = (struct handle){.size = record->size,
	                          .refs = 1,
	                          .stack = (uint32_t)record->stack,
	                          .host = record->location == ST_LOCATION_HOST};
	if (handle->host) {
		replay->host_handles += handle->size;
		return;
	}
	batch = batch_open(replay, &record->r);
	if (!batch->waiting) /* the one before was met or given back */
		batch->mapped = 0;
	batch->waiting += handle->size;
	batch->time = record->r.time;
	handle->batch = batch->serial;
	replay_held(replay, handle->stack, (int64_t)handle->size);
	replay->device -= handle->size;
}

/* A number that is given out again although it seems alive: its release was lost. */
static void handle_forget(struct replay *replay, uint64_t number)
{
	struct handle *handle = handle_find(replay, number);
	struct span span;

	if (!handle)
		return;
	handle->refs = 0;
	handle_drop(replay, handle);
	livemap_remove(&replay->handle_at, number, &span);
}

void replay_vmm_create(struct replay *replay, const struct st_ev_handle_create *record)
{
	struct span span = {record->handle, record->handle + 1, 0, 0};
	uint32_t slot;
	int error;

	if (record->result) {
		vmm_refused(replay, record);
		return;
	}
	if (record->handle == UINT64_MAX || record->size >= REPLAY_SIZE_MAX)
		return;
	handle_forget(replay, record->handle);
	slot = handle_take(replay);
	span.a = slot;
	error = slot == CATALOG_NONE ? -ENOMEM : livemap_insert_alone(&replay->handle_at, &span);
	replay_note(replay, error);
	if (!error)
		handle_add(replay, record, slot);
}

void replay_vmm_retain(struct replay *replay, uint64_t number)
{
	struct handle *handle = handle_find(replay, number);

	if (handle)
		handle->refs++;
}

void replay_vmm_release(struct replay *replay, uint64_t number)
{
	struct handle *handle = handle_find(replay, number);
	struct span span;

	if (!handle) {
		replay->unknown_frees++;
		return;
	}
	if (handle->refs && --handle->refs)
		return;
	livemap_remove(&replay->handle_at, number, &span);
	handle_drop(replay, handle);
}

static void range_gone(void *context, const struct span *piece)
{
	struct replay *replay = context;
	struct handle *handle = &replay->handles[piece->a];

	replay_gone(replay, REGION_DEVICE, piece);
	handle->mapped -= bytes_min(handle->mapped, piece->hi - piece->lo);
	handle_drop(replay, handle);
}

void replay_vmm_unmap(struct replay *replay, uint64_t addr, uint64_t size)
{
	if (addr <= UINT64_MAX - size)
		replay_note(replay, livemap_cut(&replay->ranges, addr, addr + size, range_gone, replay));
}

/* The request of the thread has got so much more. */
static void request_grown(struct replay *replay, const struct st_ev_handle_map *record, uint64_t bytes)
{
	struct batch *batch = batch_of_thread(replay, record->r.thread);

	if (batch)
		batch->mapped += bytes;
	replay_granted(replay, &record->r, batch ? batch->mapped : bytes);
}

void replay_vmm_map(struct replay *replay, const struct st_ev_handle_map *record)
{
	struct handle *handle = handle_find(replay, record->handle);
	struct span span = {record->addr, record->addr + record->size, 0, record->offset - record->addr};
	struct batch *batch;

	if (!handle || !record->size || record->size >= REPLAY_SIZE_MAX ||
	    record->addr > UINT64_MAX - record->size)
		return;
	replay_vmm_unmap(replay, record->addr, record->size);
	span.a = (uint64_t)(handle - replay->handles);
	replay_note(replay, livemap_insert(&replay->ranges, &span));
	handle->mapped += record->size;
	batch = handle_waits(replay, handle);
	if (batch) {
		batch->waiting -= handle->size;
		handle->batch = 0;
		replay->device += handle->size;
	}
	request_grown(replay, record, handle->size);
}

void replay_vmm_drop_all(struct replay *replay)
{
	struct span span;

	replay_vmm_settle_before(replay, UINT64_MAX);
	replay_note(replay, livemap_cut(&replay->ranges, 0, UINT64_MAX, range_gone, replay));
	while (livemap_next(&replay->handle_at, 0, &span)) {
		struct handle *handle = &replay->handles[span.a];

		livemap_remove(&replay->handle_at, span.lo, &span);
		handle->refs = 0;
		handle_drop(replay, handle);
	}
}
