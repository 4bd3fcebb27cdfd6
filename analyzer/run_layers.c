/* SPDX-License-Identifier: Apache-2.0 */
/* The pool as layers, and a moment, of all processes of a run. */
#include <analyzer/run_parts.h>

static int64_t signed_of(uint64_t bytes)
{
	return bytes < UINT64_C(1) << 56 ? (int64_t)bytes : 0;
}

/* What one process explains of the pool's use. One that is gone gave back what it had at the run's start. */
static int64_t party_explains(const struct party *party)
{
	const struct ledger *ledger = &party->build->ledger;
	const struct residency *residency = &party->build->residency;
	int64_t host =
		ledger->rss + (party->late && !party->part->card->forked ? signed_of(ledger->rss_first) : 0);

	if (!party->begun)
		return 0;
	if (party->gone)
		return party->late ? 0 : -signed_of(ledger->rss_first);
	host += signed_of(ledger->own) + signed_of(replay_pinned(&residency->replay));
	return host + (residency->pool == ST_POOL_DISCRETE ? 0 : signed_of(residency->replay.device));
}

void joint_kernel(struct joint *joint)
{
	const struct ledger *ledger = &joint->newest->build->ledger;
	const struct pool_state *last = &ledger->last;
	int64_t rest =
		(int64_t)(last->total - last->free) - signed_of(last->percpu) - signed_of(ledger->cache);

	if (!ledger->kernel_seen)
		return;
	for (size_t i = 0; i < joint->count; i++)
		rest -= party_explains(&joint->parties[i]);
	if (!joint->kernel_seen)
		joint->unexplained_first = rest;
	joint->kernel_seen = true;
	rest -= joint->unexplained_first;
	joint->kernel = (struct change){rest - joint->others.hi, rest - joint->others.lo};
}

static void layers_add(struct layers *sum, const struct layers *more)
{
	sum->device += more->device;
	sum->pinned += more->pinned;
	sum->staging += more->staging;
	sum->staging_pinned += more->staging_pinned;
	sum->anon = range_add(sum->anon, more->anon);
	sum->own = range_add(sum->own, range_is_open(more->own) ? range_of(0) : more->own);
	/* Each file is in the cache once, whoever asks for it: see joint_files(). */
	sum->weight_cache = (struct range){bytes_max(sum->weight_cache.lo, more->weight_cache.lo),
	                                   bytes_add(sum->weight_cache.hi, more->weight_cache.hi)};
	if (!change_is_known(more->host)) {
		sum->host = CHANGE_UNKNOWN;
	} else if (change_is_known(sum->host)) {
		sum->host.lo += more->host.lo;
		sum->host.hi += more->host.hi;
	}
}

static struct layers joint_layers(const struct joint *joint)
{
	struct layers sum = {.others = joint->others_seen ? joint->others : CHANGE_UNKNOWN,
	                     .kernel = joint->kernel_seen ? joint->kernel : CHANGE_UNKNOWN,
	                     .stale_cache = RANGE_UNKNOWN,
	                     .free = RANGE_UNKNOWN};
	uint64_t cache;

	for (size_t i = 0; i < joint->count; i++) {
		struct layers layers;

		if (!party_lives(&joint->parties[i]))
			continue;
		layers = party_layers(&joint->parties[i]);
		layers_add(&sum, &layers);
	}
	if (!joint->newest)
		return sum;
	sum.free = ledger_layers(&joint->newest->build->ledger).free;
	if (!joint->newest->build->ledger.cache_seen)
		return sum;
	cache = ledger_cache(&joint->newest->build->ledger);
	sum.weight_cache.hi = bytes_max(sum.weight_cache.lo, bytes_min(sum.weight_cache.hi, cache));
	sum.stale_cache = range_sub(range_of(cache), sum.weight_cache);
	return sum;
}

static struct range joint_on_device(const struct joint *joint)
{
	struct range sum = range_of(0);

	for (size_t i = 0; i < joint->count; i++)
		if (party_lives(&joint->parties[i]))
			sum = range_add(sum, residency_device(&joint->parties[i].build->residency));
	return sum;
}

static struct range moved(const struct peak_look *look, enum quantity quantity)
{
	struct range range = range_move(look->exact[quantity], look->sampled[quantity]);

	return (struct range){bytes_min(range.lo, range.hi), bytes_max(range.lo, range.hi)};
}

struct moment joint_moment(const struct joint *joint, const struct party *party)
{
	struct peak_look look = joint_look(joint);
	struct moment moment = {.valid = true,
	                        .time = party->time,
	                        .index = joint->index,
	                        .phase = joint->phase,
	                        .layers = joint_layers(joint),
	                        .demand = moved(&look, QUANTITY_DEMAND),
	                        .modelled = moved(&look, QUANTITY_MODELLED),
	                        .resident = moved(&look, QUANTITY_RESIDENT),
	                        .on_device = joint_on_device(joint),
	                        .reclaimable = RANGE_UNKNOWN,
	                        .file = MODEL_NONE,
	                        .tensor = MODEL_NONE};

	moment.duplicated =
		range_add(moment.layers.anon, range_of(moment.layers.staging + moment.layers.staging_pinned));
	for (size_t i = 0; i < joint->count; i++)
		if (party_lives(&joint->parties[i]))
			moment.mapped += joint->parties[i].build->residency.replay.weights_mapped;
	return moment;
}
