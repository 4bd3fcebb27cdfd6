/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/event.h>
#include <analyzer/residency_parts.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PENDING_ROOM 4096u
#define GROUPS_MAX   64u

/* Memory that replay says is gone takes its content along. */
static void memory_gone(void *context, enum region region, const struct span *piece)
{
	struct residency *residency = context;
	struct mapping *mapping = region == REGION_MAPPING ? replay_mapping(&residency->replay, piece) : NULL;
	struct weight *weight;

	if (mapping) {
		breaks_gone(residency, piece->lo, piece->hi);
		weight = weight_get(residency, mapping->weight);
		if (!weight)
			return;
		mapped_move(residency, weight, mapping, -(int64_t)(piece->hi - piece->lo));
		if (mapping->group < weight->group_count)
			weight->groups[mapping->group].live -= piece->hi - piece->lo;
		return;
	}
	content_gone(residency, piece->lo, piece->hi);
	if (region == REGION_DEVICE)
		return;
	staging_gone(residency, piece->lo, piece->hi);
	held_gone(residency, piece->lo, piece->hi);
	block_waits_no_more(residency, piece->lo, piece->hi);
	block_move(residency, region, piece, -1);
}

static void memory_held(void *context, uint32_t stack, int64_t bytes)
{
	holding_move(context, stack, bytes);
}

static void request_refused(void *context, const struct st_record *record, const struct refusal *refusal)
{
	struct residency *residency = context;

	if (residency->watch.refused)
		residency->watch.refused(residency->watch.context, record, refusal);
}

static void request_granted(void *context, const struct st_record *record, uint64_t bytes)
{
	struct residency *residency = context;

	if (residency->watch.granted)
		residency->watch.granted(residency->watch.context, record, bytes);
}

static bool memory_is_arena(void *context, uint32_t stack)
{
	struct residency *residency = context;

	return residency->is_arena && residency->is_arena(residency->arena_context, stack);
}

void residency_init(struct residency *residency, const struct catalog *catalog,
                    const struct replay_watch *watch)
{
	struct replay_watch own = {residency,       memory_gone,     memory_held,
	                           request_refused, request_granted, memory_is_arena};

	*residency = (struct residency){
		.catalog = catalog, .exact = true, .last_file = CATALOG_NONE, .last_tensor = CATALOG_NONE};
	if (watch)
		residency->watch = *watch;
	replay_init(&residency->replay, catalog, &own);
	residency->pending = calloc(PENDING_ROOM, sizeof(*residency->pending));
	if (catalog->sorted && catalog->tensor_count)
		residency->tensors = calloc(catalog->tensor_count, sizeof(*residency->tensors));
	if (!residency->pending || (catalog->sorted && catalog->tensor_count && !residency->tensors))
		residency_note(residency, -ENOMEM);
}

void residency_release(struct residency *residency)
{
	for (uint32_t i = 0; i < residency->weight_room; i++)
		weight_release(&residency->weights[i]);
	free(residency->weights);
	free(residency->tensors);
	free(residency->uses);
	livemap_release(&residency->content);
	livemap_release(&residency->anon);
	livemap_release(&residency->staged);
	livemap_release(&residency->held.sources);
	livemap_release(&residency->held.written);
	livemap_release(&residency->held.judged);
	livemap_release(&residency->fills);
	livemap_release(&residency->awaited);
	for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++)
		stack_sums_release(&residency->sums[peak]);
	free(residency->pending);
	free(residency->caps);
	free(residency->holdings);
	free(residency->shared);
	replay_release(&residency->replay);
	*residency = (struct residency){0};
}

/* The group of a new mapping: equal protection, flags and stack. */
static uint32_t group_of(struct residency *residency, struct weight *weight, const struct st_ev_map *record)
{
	struct map_group group = {.prot = (uint32_t)record->prot,
	                          .flags = (uint32_t)record->flags,
	                          .stack = (uint32_t)record->stack};
	struct map_group *groups;

	for (uint32_t i = 0; i < weight->group_count; i++)
		if (weight->groups[i].prot == group.prot && weight->groups[i].flags == group.flags &&
		    (weight->groups[i].stack == group.stack || weight->group_count == GROUPS_MAX))
			return i;
	if (weight->group_count == GROUPS_MAX)
		return GROUPS_MAX - 1;
	groups = realloc(weight->groups, (weight->group_count + 1) * sizeof(group));
	if (!groups) {
		residency_note(residency, -ENOMEM);
		return GROUPS_MAX;
	}
	weight->groups = groups;
	weight->groups[weight->group_count] = group;
	return weight->group_count++;
}

static void map_seen(struct residency *residency, const struct st_ev_map *record)
{
	struct weight *weight;
	struct mapping *mapping;
	struct span span;

	if (!livemap_find(&residency->replay.maps, record->addr, &span))
		return;
	mapping = replay_mapping(&residency->replay, &span);
	if (!mapping)
		return;
	weight = weight_get(residency, mapping->weight);
	if (!weight)
		return;
	if (!weight->mapped)
		weight_forget(residency, weight);
	mapped_move(residency, weight, mapping, (int64_t)mapping->bytes);
	mapping->group = group_of(residency, weight, record);
	touch_of(residency, mapping->weight, record->stack)->mapped += mapping->bytes;
	if (mapping->group < weight->group_count) {
		struct map_group *group = &weight->groups[mapping->group];

		group->count++;
		group->live += mapping->bytes;
		group->bytes = bytes_max(group->bytes, record->size);
	}
	breaks_mapped(residency, mapping);
	weight_touch(residency, mapping->weight, record->offset, record->r.time);
	residency->signs |= SIGN_TOUCHED;
}

/* Only the part that stays in its mapping is followed; what a remap adds or drops is new or gone. */
static int remap_record(struct residency *residency, const struct st_ev_remap *record)
{
	bool moves = residency->anon.count && !(record->flags & MREMAP_DONTUNMAP);
	uint64_t hi = bytes_add(record->addr, bytes_min(record->size, record->new_size));
	uint64_t page = residency->replay.page_size - 1;
	struct anon_moved moved = {0};
	struct span before, after;
	bool mapped = livemap_find(&residency->replay.maps, record->addr, &before);

	hi = bytes_add(hi, page) & ~page;
	if (moves)
		breaks_take(residency, record->addr, hi, &moved);
	replay_record(&residency->replay, &record->r);
	if (moves)
		breaks_put(residency, &moved, record->new_addr - record->addr);
	/* Replay reported what is gone; what came in its place counts again. */
	if (mapped && livemap_find(&residency->replay.maps, record->new_addr, &after)) {
		struct mapping *mapping = replay_mapping(&residency->replay, &after);
		struct weight *weight = mapping ? weight_get(residency, mapping->weight) : NULL;

		if (weight) {
			mapped_move(residency, weight, mapping, (int64_t)(after.hi - record->new_addr));
			if (mapping->group < weight->group_count)
				weight->groups[mapping->group].live += after.hi - record->new_addr;
		}
	}
	return residency->replay.error;
}

static void open_record(struct residency *residency, const struct st_ev_open *record)
{
	uint32_t index = catalog_weight(residency->catalog, record->file);
	struct weight *weight = index == CATALOG_NONE ? NULL : weight_get(residency, index);

	if (weight)
		touch_of(residency, index, record->stack)->opens++;
	if (!weight || weight->opened)
		return;
	weight->opened = true;
	weight->open_stack = (uint32_t)record->stack;
	weight->open_flags = (uint32_t)record->flags;
	/* Nobody wants but the bytes of such a descriptor, and they may come in a way that nobody sees. */
	if (record->flags & EVENT_O_DIRECT)
		residency->signs |= SIGN_TOUCHED;
}

static void read_record(struct residency *residency, const struct st_ev_read *record)
{
	uint32_t index = catalog_weight(residency->catalog, record->file);

	if (index == CATALOG_NONE) {
		if (record->addr && record->addr <= UINT64_MAX - record->size)
			content_gone(residency, record->addr, record->addr + record->size);
		return;
	}
	weight_touch(residency, index, record->offset, record->r.time);
	residency->signs |= SIGN_TOUCHED;
	content_read(residency, record, index);
}

static void advise_record(struct residency *residency, const struct st_ev_advise *record)
{
	if (record->advice == MADV_DONTNEED && residency->anon.count &&
	    record->addr <= UINT64_MAX - record->size)
		breaks_gone(residency, record->addr, record->addr + record->size);
}

/* The entry of the thread, or a free one; NULL where there is none. */
static struct under_way *under_way_of(struct residency *residency, uint32_t thread)
{
	struct under_way *found = NULL;

	for (int i = 0; i < UNDER_WAY_MAX; i++) {
		if (residency->under_way[i].bytes && residency->under_way[i].thread == thread)
			return &residency->under_way[i];
		if (!residency->under_way[i].bytes)
			found = &residency->under_way[i];
	}
	return found;
}

static void enter_record(struct residency *residency, const struct st_ev_enter *record)
{
	struct under_way *under_way = under_way_of(residency, record->r.thread);
	struct span span;
	const struct mapping *mapping;

	if (!under_way || record->call != ST_KIND_copy ||
	    !livemap_find(&residency->replay.maps, record->addr, &span))
		return;
	mapping = replay_mapping(&residency->replay, &span);
	if (mapping && (span.a & PROT_WRITE) && (mapping->flags & MAP_PRIVATE))
		*under_way = (struct under_way){record->r.thread, record->r.time,
		                                bytes_min(record->size, span.hi - record->addr)};
}

/* The call is over: when it entered the driver, as far as that is known. */
static void enter_over(struct residency *residency, const struct st_ev_copy *record)
{
	struct under_way *under_way = under_way_of(residency, record->r.thread);

	residency->held.began = record->took ? bytes_sub(record->r.time, record->took) : ST_UNKNOWN;
	if (!under_way)
		return;
	if (under_way->bytes)
		residency->held.began = under_way->time;
	under_way->bytes = 0;
}

uint64_t residency_under_way(const struct residency *residency)
{
	uint64_t bytes = 0;

	for (int i = 0; i < UNDER_WAY_MAX; i++)
		bytes = bytes_add(bytes, residency->under_way[i].bytes);
	return bytes;
}

int residency_record(struct residency *residency, const struct st_record *record)
{
	residency->signs = 0;
	if (residency->pending_count)
		staging_over(residency);
	if (residency->held.leaving)
		held_leave(residency);
	if (residency->carried_count)
		carry_over(residency, record);
	if (record->kind == ST_KIND_free)
		carry_free(residency, (const void *)record);
	if (record->kind == ST_KIND_remap)
		return remap_record(residency, (const void *)record);
	replay_record(&residency->replay, record);
	switch (record->kind) {
	case ST_KIND_map:
		if (((const struct st_ev_map *)record)->file)
			map_seen(residency, (const void *)record);
		break;
	case ST_KIND_advise:
		advise_record(residency, (const void *)record);
		use_advise(residency, (const void *)record);
		break;
	case ST_KIND_fadvise:
		use_fadvise(residency, (const void *)record);
		break;
	case ST_KIND_open:
		open_record(residency, (const void *)record);
		break;
	case ST_KIND_read:
		read_record(residency, (const void *)record);
		break;
	case ST_KIND_enter:
		enter_record(residency, (const void *)record);
		break;
	case ST_KIND_copy:
		enter_over(residency, (const void *)record);
		content_copy(residency, (const void *)record);
		break;
	case ST_KIND_alloc:
		if (residency->replay.loading)
			block_asked(residency, REGION_HOST, &residency->replay.host,
			            ((const struct st_ev_alloc *)record)->addr);
		if (residency->carried_count)
			carry_alloc(residency, (const void *)record);
		break;
	case ST_KIND_pinned_alloc:
		held_pinned(residency, (const void *)record);
		if (!((const struct st_ev_pinned_alloc *)record)->result)
			block_asked(residency, REGION_PINNED, &residency->replay.pinned,
			            ((const struct st_ev_pinned_alloc *)record)->addr);
		break;
	case ST_KIND_memset:
		content_memset(residency, (const void *)record);
		break;
	case ST_KIND_sync:
		staging_sync(residency, (const void *)record);
		break;
	case ST_KIND_cached:
		cells_record(residency, (const void *)record);
		break;
	case ST_KIND_anon:
		breaks_scan(residency, (const void *)record);
		break;
	case ST_KIND_process:
		residency->pool = ((const struct st_ev_process *)record)->pool;
		break;
	default:
		break;
	}
	return residency->replay.error;
}

void residency_finish(struct residency *residency)
{
	replay_finish(&residency->replay);
}

void residency_keep(struct residency *residency, enum point point)
{
	residency->epoch[point]++;
	if (point != POINT_SETTLED)
		return;
	for (uint32_t i = 0; i < residency->weight_room; i++)
		for (uint32_t k = 0; k < residency->weights[i].group_count; k++)
			residency->weights[i].groups[k].kept = residency->weights[i].groups[k].live != 0;
}

const struct amounts *kept_at(const struct residency *residency, const struct kept *kept, enum point point)
{
	if (residency->epoch[point] && kept->epoch[point] == residency->epoch[point])
		return &kept->at[point];
	return &kept->now;
}

struct range amounts_device(const struct amounts *amounts, uint64_t size, uint64_t unknown)
{
	uint64_t lo = bytes_min(size, amounts->device + amounts->vague + amounts->shared);

	return (struct range){lo, bytes_min(size, bytes_add(lo, unknown))};
}
