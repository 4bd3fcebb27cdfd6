/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third pass, peaks of the load that stand for themselves: each is looked at after every record, at the cost of some
 * comparisons, and what it consists of is kept where it is the highest yet.
 */
#include <analyzer/array.h>
#include <analyzer/event.h>
#include <analyzer/model_parts.h>
#include <analyzer/names.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_FRAMES 12 /* from the innermost on */

/* PyTorch's own allocator, or one that it was linked with. */
static bool frames_are_arena(const struct names *names, uint32_t stack)
{
	for (size_t i = 0; i < names_depth(names, stack) && i < ARENA_FRAMES; i++) {
		const char *module = names_base(names_frame(names, stack, i).module);

		if (module && (!strncmp(module, "libc10.so", 9) || !strncmp(module, "libmimalloc", 11)))
			return true;
	}
	return false;
}

bool build_is_arena(void *context, uint32_t stack)
{
	struct build *build = context;
	struct arena_answer *answer = &build->arena_answers[stack % ARENA_ANSWERS];

	if (!stack)
		return false;
	if (answer->stack != stack)
		*answer = (struct arena_answer){stack, frames_are_arena(build->model->names, stack)};
	return answer->is;
}

/* --- while records come --------------------------------------------------------------------------- */

void load_peaks_now(const struct build *build, struct range ret_now[LOAD_PEAK_COUNT])
{
	const struct residency *residency = &build->residency;
	const struct replay *replay = &residency->replay;

	ret_now[LOAD_PEAK_DEVICE] = range_of(replay->device);
	ret_now[LOAD_PEAK_STAGING] = range_of(replay_pinned(replay) + ledger_staging(&build->ledger));
	ret_now[LOAD_PEAK_ANON] = ledger_anon(&build->ledger);
	ret_now[LOAD_PEAK_HOST] = residency_host(residency);
	ret_now[LOAD_PEAK_MAPPED] = range_of(replay->weights_mapped);
}

/*
 * Device memory is often there long before it is filled: of a plateau its end tells most. Of all others, which go up
 * and down with every tensor, the first instant counts.
 */
bool load_peak_is_here(enum load_peak peak, struct range highest, struct range now)
{
	return peak == LOAD_PEAK_DEVICE ? now.hi >= highest.hi : now.hi > highest.hi;
}

static enum device_door door_of(const struct st_ev_device_alloc *record)
{
	switch ((enum st_device_how)record->how) {
	case ST_DEVICE_PLAIN:
	case ST_DEVICE_PITCHED:
		return DEVICE_DOOR_BLOCK;
	case ST_DEVICE_MANAGED:
		return DEVICE_DOOR_MANAGED;
	case ST_DEVICE_ASYNC:
	case ST_DEVICE_POOL:
		return DEVICE_DOOR_POOL;
	case ST_DEVICE_ARRAY:
		return DEVICE_DOOR_ARRAY;
	case ST_DEVICE_IPC:
	case ST_DEVICE_IMPORT:
	case ST_DEVICE_CONTEXT:
		break;
	}
	return DEVICE_DOOR_COUNT;
}

/* What the program asked for itself, until the steps: contexts and memory of others say nothing of its allocator. */
static void doors_note(struct build *build)
{
	const struct st_ev_device_alloc *block = (const void *)build->record;
	const struct st_ev_handle_create *handle = (const void *)build->record;
	enum device_door door = DEVICE_DOOR_COUNT;
	uint64_t bytes = 0;

	if (build->record->kind == ST_KIND_device_alloc && !block->result) {
		door = door_of(block);
		bytes = block->size;
	} else if (build->record->kind == ST_KIND_handle_create && !handle->result &&
	           handle->location == ST_LOCATION_DEVICE) {
		door = DEVICE_DOOR_VMM;
		bytes = handle->size;
	}
	if (door != DEVICE_DOOR_COUNT)
		build->model->doors[door] = bytes_add(build->model->doors[door], bytes);
}

static void reads_note(struct build *build)
{
	const struct st_ev_read *read = (const void *)build->record;

	if (read->r.kind == ST_KIND_read && catalog_weight(&build->catalog, read->file) != CATALOG_NONE)
		build->model->load.read_bytes = bytes_add(build->model->load.read_bytes, read->size);
}

void load_peaks_look(struct build *build)
{
	struct load *load = &build->model->load;
	struct range now[LOAD_PEAK_COUNT];

	if (build->phase != PHASE_STEPS && build->phase != PHASE_END)
		doors_note(build);
	if (!stretch_has(STRETCH_LOAD, build->phase))
		return;
	reads_note(build);
	load_peaks_now(build, now);
	load->mappings = bytes_max(load->mappings, build->residency.replay.mappings_live);
	for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++) {
		if (!build->joint && load_peak_is_here((enum load_peak)peak, load->peaks[peak], now[peak]))
			residency_keep_peak(&build->residency, (enum load_peak)peak);
		load->peaks[peak] = range_max(load->peaks[peak], now[peak]);
	}
}

/* --- afterwards: what they consisted of ----------------------------------------------------------- */

struct listing {
	struct load_part *parts;
	size_t count, room;
	int error;
};

static void part_add(struct listing *listing, const struct load_part *part)
{
	if (!part->bytes.hi || listing->error)
		return;
	listing->error =
		array_reserve(&listing->parts, sizeof(*listing->parts), listing->count, &listing->room);
	if (!listing->error)
		listing->parts[listing->count++] = *part;
}

static bool peak_counts(const struct build *build, enum load_peak peak)
{
	return !(build->peaks_absent & 1u << peak);
}

static void list_files(const struct build *build, struct listing *listing)
{
	const struct residency *residency = &build->residency;

	for (uint32_t i = 0; i < build->catalog.file_count && i < residency->weight_room; i++) {
		const struct weight *weight = &residency->weights[i];
		struct range bytes[LOAD_PEAK_COUNT] = {
			[LOAD_PEAK_DEVICE] = file_at(build, i, POINT_DEVICE_PEAK).on_device,
			[LOAD_PEAK_STAGING] = range_of(kept_staging(residency, &weight->kept)),
			[LOAD_PEAK_ANON] = kept_anon(residency, &weight->kept),
			[LOAD_PEAK_MAPPED] = range_of(kept_mapped(residency, weight))};

		for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++)
			if (peak_counts(build, (enum load_peak)peak))
				part_add(listing, &(struct load_part){(enum load_peak)peak, LOAD_PART_FILE, i,
				                                      bytes[peak]});
	}
}

static void list_tensors(const struct build *build, struct listing *listing)
{
	const struct residency *residency = &build->residency;

	for (size_t i = 0; residency->tensors && i < build->catalog.tensor_count; i++) {
		const struct kept *kept = &residency->tensors[i];
		struct range bytes[LOAD_PEAK_COUNT] = {
			[LOAD_PEAK_DEVICE] = tensor_device(build, i, POINT_DEVICE_PEAK),
			[LOAD_PEAK_STAGING] = range_of(kept_staging(residency, kept)),
			[LOAD_PEAK_ANON] = kept_anon(residency, kept)};

		for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++)
			if (peak_counts(build, (enum load_peak)peak))
				part_add(listing, &(struct load_part){(enum load_peak)peak, LOAD_PART_TENSOR,
				                                      (uint32_t)i, bytes[peak]});
	}
}

static void list_holdings(const struct build *build, struct listing *listing)
{
	const struct residency *residency = &build->residency;

	for (size_t i = 0; i < residency->holding_room && peak_counts(build, LOAD_PEAK_DEVICE); i++) {
		const struct holding *holding = &residency->holdings[i];

		if (holding->kept.epoch[0] == UINT32_MAX)
			continue;
		part_add(listing,
		         &(struct load_part){
				 LOAD_PEAK_DEVICE, LOAD_PART_STACK, holding->stack,
				 range_of(kept_at(residency, &holding->kept, POINT_DEVICE_PEAK)->device)});
	}
}

static void list_stacks(const struct build *build, struct listing *listing)
{
	for (int peak = 0; peak < LOAD_PEAK_COUNT; peak++) {
		const struct stack_sums *sums = &build->residency.sums[peak];

		for (size_t i = 0; i < sums->room && peak_counts(build, (enum load_peak)peak); i++)
			if (sums->sums[i].used)
				part_add(listing, &(struct load_part){(enum load_peak)peak, LOAD_PART_STACK,
				                                      sums->sums[i].stack,
				                                      stack_sum_then(sums, &sums->sums[i])});
	}
}

static int part_compare(const void *left, const void *right)
{
	const struct load_part *a = left, *b = right;

	if (a->peak != b->peak)
		return a->peak < b->peak ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->bytes.hi != b->bytes.hi)
		return a->bytes.hi < b->bytes.hi ? 1 : -1;
	return a->which < b->which ? -1 : a->which > b->which;
}

int build_load_parts(struct build *build)
{
	struct listing listing = {0};

	if (!build->model->load.present && !build->joint)
		return 0;
	list_files(build, &listing);
	list_tensors(build, &listing);
	list_holdings(build, &listing);
	list_stacks(build, &listing);
	if (listing.count)
		qsort(listing.parts, listing.count, sizeof(*listing.parts), part_compare);
	build->model->load_parts = listing.parts;
	build->model->load_part_count = listing.count;
	return listing.error;
}
