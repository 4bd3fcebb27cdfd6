/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/replay_parts.h>
#include <stdlib.h>

#define BATCH_NS UINT64_C(1000000000) /* handles unmapped for longer than this are held, whoever waits */

void replay_init(struct replay *replay, const struct catalog *catalog, const struct replay_watch *watch)
{
	*replay = (struct replay){.catalog = catalog, .page_size = 4096};
	if (watch)
		replay->watch = *watch;
}

void replay_release(struct replay *replay)
{
	livemap_release(&replay->blocks);
	livemap_release(&replay->arrays);
	livemap_release(&replay->ranges);
	livemap_release(&replay->pinned);
	livemap_release(&replay->registered);
	livemap_release(&replay->host);
	livemap_release(&replay->maps);
	livemap_release(&replay->handle_at);
	livemap_release(&replay->contexts);
	free(replay->handles);
	free(replay->mappings);
	free(replay->pools);
	*replay = (struct replay){0};
}

/* Did this release not take place? */
bool replay_is_revoked(const struct replay *replay, const struct st_record *record)
{
	uint64_t seq = record->seq & ST_SEQ_MASK;
	size_t lo = 0, hi = replay->revoked_count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (replay->revoked[middle] < seq)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < replay->revoked_count && replay->revoked[lo] == seq;
}

/* Records that give something back; taken out of the way when their call failed. */
static void release_record(struct replay *replay, const struct st_record *record)
{
	const struct st_ev_unmap *unmap = (const void *)record;
	const struct st_ev_handle_unmap *range = (const void *)record;

	if (replay_is_revoked(replay, record))
		return;
	switch (record->kind) {
	case ST_KIND_unmap:
		replay_host_unmap(replay, unmap->addr, unmap->size);
		break;
	case ST_KIND_free:
		replay_host_free(replay, ((const struct st_ev_free *)record)->addr);
		break;
	case ST_KIND_device_free:
		replay_device_free(replay, (const void *)record);
		break;
	case ST_KIND_pinned_free:
		replay_pinned_free(replay, ((const struct st_ev_pinned_free *)record)->addr);
		break;
	case ST_KIND_handle_release:
		replay_vmm_release(replay, ((const struct st_ev_handle_release *)record)->handle);
		break;
	case ST_KIND_handle_unmap:
		replay_vmm_unmap(replay, range->addr, range->size);
		break;
	case ST_KIND_pool_destroy:
		replay_pool_destroy(replay, ((const struct st_ev_pool_destroy *)record)->pool);
		break;
	case ST_KIND_unregister: {
		struct span span;

		livemap_remove(&replay->registered, ((const struct st_ev_unregister *)record)->addr, &span);
		break;
	}
	default:
		break;
	}
}

/* Anything else is damage: the kernels there are have pages of 4, 16 and 64 KiB. */
static void page_size_set(struct replay *replay, uint64_t size)
{
	if (size >= 4096 && size <= 1u << 20 && !(size & (size - 1)))
		replay->page_size = size;
}

static void host_record(struct replay *replay, const struct st_record *record)
{
	switch (record->kind) {
	case ST_KIND_map:
		replay_host_map(replay, (const void *)record);
		break;
	case ST_KIND_remap:
		replay_host_remap(replay, (const void *)record);
		break;
	case ST_KIND_protect:
		replay_host_protect(replay, (const void *)record);
		break;
	case ST_KIND_alloc:
		replay_host_alloc(replay, (const void *)record);
		break;
	case ST_KIND_process:
		page_size_set(replay, ((const struct st_ev_process *)record)->page_size);
		break;
	case ST_KIND_sample:
		replay_vmm_settle_before(replay, record->time < BATCH_NS ? 0 : record->time - BATCH_NS);
		break;
	default:
		release_record(replay, record);
	}
}

static void vmm_record(struct replay *replay, const struct st_record *record)
{
	switch (record->kind) {
	case ST_KIND_handle_create:
		replay_vmm_create(replay, (const void *)record);
		break;
	case ST_KIND_handle_retain:
		replay_vmm_retain(replay, ((const struct st_ev_handle_retain *)record)->handle);
		break;
	case ST_KIND_handle_map:
		replay_vmm_map(replay, (const void *)record);
		break;
	default:
		release_record(replay, record);
	}
}

/* Everything else that the driver was asked for; with it a request for handles is over. */
static void driver_record(struct replay *replay, const struct st_record *record)
{
	replay_vmm_settle(replay, record->thread);
	switch (record->kind) {
	case ST_KIND_device_alloc:
		replay_device_alloc(replay, (const void *)record);
		break;
	case ST_KIND_pinned_alloc:
		replay_pinned_alloc(replay, (const void *)record);
		break;
	case ST_KIND_register:
		replay_host_register(replay, (const void *)record);
		break;
	case ST_KIND_pool_create:
		replay_pool_create(replay, (const void *)record);
		break;
	case ST_KIND_pool_state:
		replay_pool_state(replay, (const void *)record);
		break;
	case ST_KIND_sync:
		replay_pools_trim(replay);
		break;
	case ST_KIND_context:
		replay_device_context(replay, (const void *)record);
		break;
	default:
		release_record(replay, record);
	}
}

int replay_record(struct replay *replay, const struct st_record *record)
{
	if (record->kind < ST_KIND_device_alloc || record->kind >= ST_KIND_sample)
		host_record(replay, record);
	else if (record->kind >= ST_KIND_reserve && record->kind <= ST_KIND_handle_unmap)
		vmm_record(replay, record);
	else if (record->kind != ST_KIND_enter && record->kind != ST_KIND_get_info)
		driver_record(replay, record);
	return replay->error;
}

void replay_finish(struct replay *replay)
{
	replay_vmm_settle_before(replay, UINT64_MAX);
}

enum region replay_region(const struct replay *replay, uint64_t address, struct span *ret_span)
{
	if (livemap_find(&replay->blocks, address, ret_span) ||
	    livemap_find(&replay->ranges, address, ret_span))
		return REGION_DEVICE;
	if (livemap_find(&replay->pinned, address, ret_span))
		return REGION_PINNED;
	if (livemap_find(&replay->maps, address, ret_span))
		return REGION_MAPPING;
	if (livemap_find(&replay->host, address, ret_span))
		return REGION_HOST;
	return REGION_NONE;
}
