/* SPDX-License-Identifier: Apache-2.0 */
/* What-ifs of the load, one way of loading each: what it would hold at this instant. */
#include <analyzer/model_parts.h>

/* fastsafetensors 0.5: a buffer of 16 MiB for each of 8 threads, as many as there is work for. */
#define BOUNCE_BUFFER  (UINT64_C(16) << 20)
#define BOUNCE_BUFFERS 8

static struct imagined imagine_as_it_is(const struct build *build)
{
	return (struct imagined){
		.pinned = range_of(replay_pinned(&build->residency.replay)),
		.anon = ledger_anon(&build->ledger),
		.staging = range_of(ledger_staging(&build->ledger)),
		.cache_left = UINT64_MAX,
	};
}

/* A that no mapping without write permission keeps away. */
static struct range written_now(const struct build *build)
{
	const struct held *held = &build->residency.held;

	return (struct range){held->written.bytes - held->doubt, held->written.bytes};
}

/*
 * Weights in the heap: what was read there, at most with all blocks that they were copied out of. Reads into
 * blocks below the shim's threshold may be gone unseen.
 */
struct range whatif_heap(const struct build *build)
{
	const struct held *held = &build->residency.held;
	uint64_t staging = ledger_staging(&build->ledger);
	struct range heap = {held->heap, bytes_add(held->heap, held->loose)};

	return (struct range){bytes_max(heap.lo, staging),
	                      bytes_max(bytes_max(heap.hi, staging), held->heap_sources)};
}

static struct range per_thread(const struct build *build, uint64_t bytes)
{
	return (struct range){bytes, bytes * (build->thread_count ? build->thread_count : 1)};
}

static struct imagined imagine_readonly(const struct build *build)
{
	struct imagined is = imagine_as_it_is(build);

	is.anon = written_now(build);
	return is;
}

static struct imagined imagine_slots(const struct build *build)
{
	struct imagined is = imagine_readonly(build);

	is.pinned = range_add(is.pinned, per_thread(build, build->residency.held.slots));
	return is;
}

static struct imagined imagine_tensor(const struct build *build)
{
	struct imagined is = imagine_readonly(build);

	is.staging.hi = bytes_add(is.staging.hi, 2 * per_thread(build, build->residency.held.largest).hi);
	is.other_staging = true;
	return is;
}

static struct imagined imagine_mapped(const struct build *build)
{
	struct imagined is = imagine_readonly(build);
	const struct held *held = &build->residency.held;

	is.staging = (struct range){0, bytes_sub(is.staging.hi, bytes_add(held->heap, held->loose))};
	is.heap = build->whatif.heap_then;
	is.other_staging = true;
	return is;
}

static struct imagined imagine_stream(const struct build *build)
{
	struct imagined is = imagine_mapped(build);
	uint64_t tensor = build->whatif.largest_tensor;

	is.anon = ledger_anon(&build->ledger);
	is.staging.hi = bytes_add(is.staging.hi, bytes_min(tensor, whatif_heap(build).hi));
	return is;
}

/* Page cache of weights. */
struct range whatif_cached(const struct build *build)
{
	const struct amounts *total = &build->residency.total.now;
	struct range cached = {total->cached, bytes_add(total->cached, total->cache_unknown)};

	if (build->ledger.cache_seen && cached.hi > cached.lo)
		cached.hi = bytes_max(cached.lo, bytes_min(cached.hi, build->ledger.cache));
	return cached;
}

/* Of it what remains when all that is on the device is dropped. */
static void imagine_dropped(const struct build *build, struct imagined *is)
{
	const struct residency *residency = &build->residency;

	is->uncached = residency_reclaimable(residency);
	is->cache_left = bytes_sub(residency->counted, residency_device(residency).lo);
}

static struct imagined imagine_bounce(const struct build *build)
{
	struct imagined is = imagine_as_it_is(build);
	uint64_t sources = build->residency.held.pinned_sources;

	if (!sources)
		return is;
	is.pinned = range_of(bytes_sub(is.pinned.lo, sources));
	is.pinned = range_add(is.pinned, (struct range){BOUNCE_BUFFER, BOUNCE_BUFFER * BOUNCE_BUFFERS});
	is.uncached = whatif_cached(build);
	is.cache_left = 0;
	return is;
}

static struct imagined imagine_one_thread(const struct build *build)
{
	struct imagined is = imagine_as_it_is(build);

	if (build->thread_count > 1) {
		is.staging.lo = is.staging.lo / build->thread_count;
		is.other_staging = true;
	}
	return is;
}

static struct imagined imagine_release(const struct build *build)
{
	struct imagined is = imagine_as_it_is(build);
	const struct held *held = &build->residency.held;

	is.anon = (struct range){bytes_sub(is.anon.lo, held->finished + held->finished_possible),
	                         bytes_sub(is.anon.hi, held->finished)};
	return is;
}

static struct imagined imagine_drop(const struct build *build)
{
	struct imagined is = imagine_as_it_is(build);

	imagine_dropped(build, &is);
	return is;
}

static struct imagined imagine_direct(const struct build *build)
{
	struct imagined is = imagine_as_it_is(build);

	is.uncached = whatif_cached(build);
	is.cache_left = 0;
	return is;
}

static struct imagined imagine_readonly_drop(const struct build *build)
{
	struct imagined is = imagine_readonly(build);

	imagine_dropped(build, &is);
	return is;
}

const struct effect_row effect_rows[EFFECT_COUNT] = {
	[EFFECT_READONLY] = {imagine_readonly, true},
	[EFFECT_SLOTS] = {imagine_slots, true},
	[EFFECT_TENSOR] = {imagine_tensor, true},
	[EFFECT_MAPPED] = {imagine_mapped, true},
	[EFFECT_STREAM] = {imagine_stream, false},
	[EFFECT_BOUNCE] = {imagine_bounce, false},
	[EFFECT_ONE_THREAD] = {imagine_one_thread, false},
	[EFFECT_RELEASE] = {imagine_release, false},
	[EFFECT_DROP] = {imagine_drop, false},
	[EFFECT_DIRECT] = {imagine_direct, false},
	[EFFECT_READONLY_DROP] = {imagine_readonly_drop, true},
};
