/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/ledger.h>

void ledger_init(struct ledger *ledger, const struct residency *residency)
{
	*ledger = (struct ledger){.residency = residency,
	                          .lowest_available = ST_UNKNOWN,
	                          .lowest_free = ST_UNKNOWN,
	                          .own_peak = ST_UNKNOWN,
	                          .own = ST_UNKNOWN};
}

/* What no machine has is damage, and as good as unknown: sums of known values never overflow. */
static bool known(uint64_t value)
{
	return value < UINT64_C(1) << 56;
}

/* Unknown parts of a sum count nothing. */
static uint64_t or_zero(uint64_t value)
{
	return known(value) ? value : 0;
}

static struct pool_state pool_state_of(const struct st_ev_sample *s)
{
	return (struct pool_state){
		.time = s->r.time,
		.total = s->mem_total,
		.free = s->mem_free,
		.available = s->mem_available,
		.percpu = s->percpu_free,
		.swap_total = s->swap_total,
		.swap_free = s->swap_free,
		.watermark = s->watermark,
		.cma_total = s->cma_total,
		.cma_free = s->cma_free,
		.cached = s->cached,
		.buffers = s->buffers,
		.sreclaimable = s->sreclaimable,
		.shmem = s->shmem,
		.dirty = s->dirty,
		.writeback = s->writeback,
		.active = s->active,
		.inactive = s->inactive,
		.slab = s->slab,
		.page_tables = s->page_tables,
		.unevictable = s->unevictable,
		.cgroup_used = s->cgroup_used,
		.cgroup_limit = s->cgroup_limit,
		.oom_kills = s->oom_kills,
	};
}

struct range ledger_anon(const struct ledger *ledger)
{
	const struct amounts *total = &ledger->residency->total.now;

	return (struct range){total->anon, bytes_add(total->anon, total->anon_possible)};
}

uint64_t ledger_staging(const struct ledger *ledger)
{
	return bytes_sub(ledger->residency->total.now.staging, ledger->residency->staging_pinned);
}

/* Page cache of the pool: what is in the Cached line and is no shared memory. */
static uint64_t page_cache(const struct st_ev_sample *s)
{
	if (!known(s->cached))
		return ST_UNKNOWN;
	return bytes_sub(s->cached + or_zero(s->buffers) + or_zero(s->sreclaimable), or_zero(s->shmem));
}

/* Own memory of the program; a simulated device lies in it and is counted as device memory. */
static uint64_t own_memory(const struct st_ev_sample *s)
{
	if (!known(s->rss_anon))
		return ST_UNKNOWN;
	return s->rss_anon + bytes_sub(or_zero(s->rss_shmem), or_zero(s->sim_device));
}

static void extremes_note(struct ledger *ledger, const struct st_ev_sample *s)
{
	ledger->lowest_available = bytes_min(ledger->lowest_available, s->mem_available);
	if (known(s->mem_free))
		ledger->lowest_free = bytes_min(ledger->lowest_free, s->mem_free + or_zero(s->percpu_free));
	if (known(s->swap_free) && known(ledger->first.swap_free))
		ledger->swap_used =
			bytes_max(ledger->swap_used, bytes_sub(ledger->first.swap_free, s->swap_free));
	ledger->own = s->recorder;
	if (known(s->recorder))
		ledger->own_peak =
			known(ledger->own_peak) ? bytes_max(ledger->own_peak, s->recorder) : s->recorder;
}

/* Bytes of the pool that are neither free nor page cache. */
static int64_t pool_used(const struct ledger *ledger, const struct st_ev_sample *s)
{
	return (int64_t)(s->mem_total - s->mem_free - or_zero(s->percpu_free) - ledger->cache);
}

static int64_t device_in_pool(const struct ledger *ledger)
{
	return ledger->residency->pool == ST_POOL_DISCRETE ? 0 : (int64_t)ledger->residency->replay.device;
}

static void first_sample(struct ledger *ledger, const struct st_ev_sample *s)
{
	ledger->first = pool_state_of(s);
	ledger->rss_first = own_memory(s);
	ledger->others_first = s->other_anon;
	ledger->host_seen = known(ledger->rss_first);
	ledger->others_seen = known(ledger->others_first);
	ledger->cache_seen = known(page_cache(s));
	ledger->kernel_seen =
		ledger->cache_seen && ledger->host_seen && known(s->mem_total) && known(s->mem_free);
	ledger->cache = or_zero(page_cache(s));
	ledger->anon_first = ledger_anon(ledger);
	ledger->used_first = pool_used(ledger, s);
	ledger->used_device_first = device_in_pool(ledger);
	ledger->used_pinned_first = (int64_t)replay_pinned(&ledger->residency->replay);
	ledger->own_first = (int64_t)or_zero(s->recorder);
}

/* What no layer explains of the change of the pool's use. */
static int64_t kernel_change(const struct ledger *ledger, const struct st_ev_sample *s)
{
	int64_t explained = device_in_pool(ledger) - ledger->used_device_first;

	explained += (int64_t)replay_pinned(&ledger->residency->replay) - ledger->used_pinned_first;
	explained += (int64_t)or_zero(s->recorder) - ledger->own_first;
	return pool_used(ledger, s) - ledger->used_first - explained - ledger->rss - ledger->others;
}

/* H by the last sample, taking A as it was known to be then. */
static int64_t host_then(const struct ledger *ledger)
{
	return ledger->rss + (int64_t)ledger->anon_first.hi - (int64_t)ledger->anon_then.hi;
}

static void anon_then_add(struct ledger *ledger, uint64_t bytes)
{
	ledger->anon_then.lo += bytes;
	ledger->anon_then.hi += bytes;
}

/*
 * Calls take their time: an unmap is noted before it, a copy after it, and a sample may fall in between. What is
 * still there of released copies, and what a copy under way has made already, would then look like H. A rise of
 * H above what it was taken for is put down to A as far as the change of A suffices; where that was wrong, the
 * next sample shows it, and the peak's interval holds both.
 */
void ledger_follow(struct ledger *ledger)
{
	uint64_t anon = ledger_anon(ledger).hi;
	int64_t rise = host_then(ledger) - ledger->host_base;

	if (anon == ledger->anon_last)
		return;
	if (anon < ledger->anon_last)
		ledger->anon_going += ledger->anon_last - anon;
	else if (rise > 0)
		anon_then_add(ledger, bytes_min(anon - ledger->anon_last, (uint64_t)rise));
	ledger->anon_last = anon;
}

/* A sample has come: A, and what of it was released and is still there. */
static void anon_then_set(struct ledger *ledger)
{
	int64_t rise;

	ledger->anon_then = ledger_anon(ledger);
	rise = host_then(ledger) - ledger->host_certain;
	ledger->anon_going = rise > 0 ? bytes_min(ledger->anon_going, (uint64_t)rise) : 0;
	anon_then_add(ledger, ledger->anon_going);
	if (host_then(ledger) < ledger->host_base || ledger->samples == 1)
		ledger->host_base = host_then(ledger);
	rise = host_then(ledger) - ledger->host_certain;
	if (rise > 0)
		rise -= (int64_t)bytes_min(residency_under_way(ledger->residency), (uint64_t)rise);
	ledger->host_certain += rise;
}

void ledger_sample(struct ledger *ledger, const struct st_ev_sample *s)
{
	if (!ledger->samples++)
		first_sample(ledger, s);
	ledger->last = pool_state_of(s);
	extremes_note(ledger, s);
	if (ledger->host_seen && known(own_memory(s)))
		ledger->rss = (int64_t)(own_memory(s) - ledger->rss_first);
	if (ledger->others_seen && known(s->other_anon))
		ledger->others = (int64_t)(s->other_anon - ledger->others_first);
	if (ledger->cache_seen && known(page_cache(s)))
		ledger->cache = page_cache(s);
	if (ledger->kernel_seen && known(s->mem_total) && known(s->mem_free))
		ledger->kernel = kernel_change(ledger, s);
	anon_then_set(ledger);
	ledger->staging_then = ledger_staging(ledger);
}

struct range ledger_modelled(const struct ledger *ledger)
{
	uint64_t exact = ledger->residency->replay.device + replay_pinned(&ledger->residency->replay) +
	                 ledger_staging(ledger);

	return range_add(ledger_anon(ledger), range_of(exact));
}

/*
 * Without samples of the program's memory its staging buffers are all that is known of it. With them these are
 * part of the sample; what was filled since then may lie in memory that was counted already.
 */
struct range ledger_exact(const struct ledger *ledger)
{
	struct range range = ledger_modelled(ledger);
	uint64_t staging = ledger_staging(ledger);

	if (!ledger->host_seen)
		return range;
	return (struct range){range.lo - staging,
	                      range.hi - staging + bytes_sub(staging, ledger->staging_then)};
}

/*
 * What RssAnon rose by is H and A together, so at a sample it holds exactly how ever little is known of A
 * alone: A as it was known then is taken off again, bound by bound.
 */
struct change ledger_sampled(const struct ledger *ledger)
{
	int64_t lo = 0, hi = 0, others;

	if (ledger->host_seen) {
		lo = ledger->rss + (int64_t)ledger->anon_first.lo - (int64_t)ledger->anon_then.lo;
		hi = ledger->rss + (int64_t)ledger->anon_first.hi - (int64_t)ledger->anon_then.hi;
	}
	/* What others gave back is no room that a run could count on: its need would be below what it held. */
	others = ledger->others > 0 ? ledger->others : 0;
	return (struct change){lo + others, hi + others};
}

static struct range range_ordered(struct range range)
{
	return (struct range){bytes_min(range.lo, range.hi), bytes_max(range.lo, range.hi)};
}

struct range ledger_demand(const struct ledger *ledger)
{
	return range_ordered(range_move(ledger_exact(ledger), ledger_sampled(ledger)));
}

struct change ledger_sampled_without_anon(const struct ledger *ledger)
{
	struct change change = ledger_sampled(ledger);
	int64_t less = host_then(ledger) - ledger->host_certain;

	if (!ledger->host_seen || less < 0)
		less = 0;
	return (struct change){change.lo - less, change.hi - less};
}

uint64_t ledger_fresh(const struct ledger *ledger)
{
	uint64_t staged = bytes_sub(ledger_staging(ledger), ledger->staging_then);

	return ledger->host_seen ? bytes_sub(residency_fresh(ledger->residency), staged) : 0;
}

uint64_t ledger_cache(const struct ledger *ledger)
{
	return ledger->cache_seen ? ledger->cache : 0;
}

static struct range weight_cache(const struct ledger *ledger)
{
	const struct amounts *total = &ledger->residency->total.now;
	struct range range = {total->cached, bytes_add(total->cached, total->cache_unknown)};

	if (ledger->cache_seen && range.hi > range.lo)
		range.hi = bytes_max(range.lo, bytes_min(range.hi, ledger->cache));
	return range;
}

struct range ledger_resident_extra(const struct ledger *ledger)
{
	return ledger->cache_seen ? range_of(0) : weight_cache(ledger);
}

static struct change host_change(const struct ledger *ledger)
{
	struct change change = {ledger->rss + (int64_t)ledger->anon_first.lo - (int64_t)ledger->anon_then.hi,
	                        ledger->rss + (int64_t)ledger->anon_first.hi - (int64_t)ledger->anon_then.lo};

	return ledger->host_seen ? change : CHANGE_UNKNOWN;
}

struct layers ledger_layers(const struct ledger *ledger)
{
	const struct residency *residency = ledger->residency;
	const struct pool_state *last = &ledger->last;
	struct range cache = weight_cache(ledger);
	bool free_known = ledger->samples && known(last->free);

	return (struct layers){
		.device = residency->replay.device,
		.pinned = replay_pinned(&residency->replay),
		.anon = ledger_anon(ledger),
		.host = host_change(ledger),
		.others = ledger->others_seen ? (struct change){ledger->others, ledger->others}
	                                      : CHANGE_UNKNOWN,
		.staging = ledger_staging(ledger),
		.staging_pinned = residency->staging_pinned,
		.weight_cache = cache,
		.stale_cache = ledger->cache_seen ? range_sub(range_of(ledger->cache), cache) : RANGE_UNKNOWN,
		.free = free_known ? range_of(last->free + or_zero(last->percpu)) : RANGE_UNKNOWN,
		.own = known(ledger->own) ? range_of(ledger->own) : RANGE_UNKNOWN,
		.kernel = ledger->kernel_seen ? (struct change){ledger->kernel, ledger->kernel}
	                                      : CHANGE_UNKNOWN,
	};
}
