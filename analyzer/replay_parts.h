/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of replay among themselves: host side, device blocks, VMM. Each takes complete records. */
#ifndef SPARKTRACE_REPLAY_PARTS_H
#define SPARKTRACE_REPLAY_PARTS_H

#include <analyzer/replay.h>
#include <errno.h>

#define REPLAY_SIZE_MAX (UINT64_C(1) << 48) /* nothing is larger: what says so is damage */

/* Keeps the first error: the parts go on, the caller of replay_record() hears of it. Damage is none. */
static inline void replay_note(struct replay *replay, int error)
{
	if (error == -ENOMEM && !replay->error)
		replay->error = error;
}

static inline void replay_gone(struct replay *replay, enum region region, const struct span *piece)
{
	if (replay->watch.gone)
		replay->watch.gone(replay->watch.context, region, piece);
}

/* Device bytes that `stack` holds more (less). */
static inline void replay_held(struct replay *replay, uint64_t stack, int64_t bytes)
{
	replay->device += (uint64_t)bytes;
	if (bytes < 0)
		replay->freed += -(uint64_t)bytes;
	if (replay->watch.held)
		replay->watch.held(replay->watch.context, (uint32_t)stack, bytes);
}

static inline void replay_granted(struct replay *replay, const struct st_record *record, uint64_t bytes)
{
	if (replay->watch.granted)
		replay->watch.granted(replay->watch.context, record, bytes);
}

static inline void replay_refused(struct replay *replay, const struct st_record *record,
                                  const struct refusal *refusal)
{
	if (replay->watch.refused)
		replay->watch.refused(replay->watch.context, record, refusal);
}

/*
 * Puts a block into a map of blocks. Where others still seem to live their releases were lost: they are gone, each
 * as a whole, and `gone` hears of it (NULL: nobody).
 */
int replay_block_put(struct replay *replay, struct livemap *map, const struct span *span,
                     livemap_visit *gone);

/* Host side (replay_host.c). */
void replay_host_map(struct replay *replay, const struct st_ev_map *record);
void replay_host_unmap(struct replay *replay, uint64_t addr, uint64_t size);
void replay_host_remap(struct replay *replay, const struct st_ev_remap *record);
void replay_host_protect(struct replay *replay, const struct st_ev_protect *record);
void replay_host_alloc(struct replay *replay, const struct st_ev_alloc *record);
void replay_host_free(struct replay *replay, uint64_t addr);
void replay_pinned_alloc(struct replay *replay, const struct st_ev_pinned_alloc *record);
void replay_pinned_free(struct replay *replay, uint64_t addr);
void replay_host_register(struct replay *replay, const struct st_ev_register *record);

/* Device blocks and pools (replay_device.c). */
void replay_device_alloc(struct replay *replay, const struct st_ev_device_alloc *record);
void replay_device_free(struct replay *replay, const struct st_ev_device_free *record);
void replay_device_context(struct replay *replay, const struct st_ev_context *record);
void replay_pool_create(struct replay *replay, const struct st_ev_pool_create *record);
void replay_pool_destroy(struct replay *replay, uint64_t handle);
void replay_pool_state(struct replay *replay, const struct st_ev_pool_state *record);
void replay_pools_trim(struct replay *replay);

/* VMM (replay_vmm.c). */
void replay_vmm_create(struct replay *replay, const struct st_ev_handle_create *record);
void replay_vmm_retain(struct replay *replay, uint64_t handle);
void replay_vmm_release(struct replay *replay, uint64_t handle);
void replay_vmm_map(struct replay *replay, const struct st_ev_handle_map *record);
void replay_vmm_unmap(struct replay *replay, uint64_t addr, uint64_t size);
/* The thread goes on to something else, or a second has passed: what waits is held. */
void replay_vmm_settle(struct replay *replay, uint32_t thread);
void replay_vmm_settle_before(struct replay *replay, uint64_t time);
void replay_vmm_drop_all(struct replay *replay);

#endif
