/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the passes: the model of all processes together. What was followed at common instants is there already; the
 * rest is the sum, the largest, or, of what cannot be known from the parts, the interval that they leave.
 */
#include <analyzer/run_parts.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const struct model *party_model(const struct joint *joint, size_t index)
{
	return joint->parties[index].build->model;
}

/* Which process' facts about the machine hold for all: the first that was sampled. */
static const struct model *first_model(const struct joint *joint)
{
	const struct model *first = party_model(joint, 0);

	for (size_t i = 1; i < joint->count; i++) {
		const struct model *m = party_model(joint, i);

		if (m->samples && (!first->samples || m->first.time < first->first.time))
			first = m;
	}
	return first;
}

static void model_identity(struct joint *joint)
{
	struct model *model = joint->model;
	const struct model *first = first_model(joint);

	model->pid = first->pid;
	model->ppid = first->ppid;
	model->uid = first->uid;
	model->rank = MODEL_NONE;
	model->world = first->world;
	model->page_size = first->page_size;
	model->cpus = first->cpus;
	model->pool = first->pool;
	model->first = first->first;
	model->last = joint->newest ? joint->newest->build->model->last : first->last;
	model->realtime = first->realtime;
	model->monotonic = first->monotonic;
	model->utc_offset = first->utc_offset;
	model->begin = first->begin;
	model->synced = first->synced;
}

/* How the run ended is how the worst of its processes did. */
static void end_add(struct model *model, const struct model *m)
{
	bool worse = m->exit_how == ST_EXIT_SIGNALED ||
	             (m->exit_how == ST_EXIT_EXITED && m->exit_status && model->exit_how != ST_EXIT_SIGNALED);

	model->exited &= m->exited;
	if (!m->exited || (m->exit_how == ST_EXIT_EXECED || (!worse && model->exit_how)))
		return;
	if (worse && model->exit_how == ST_EXIT_SIGNALED)
		return;
	model->exit_how = m->exit_how;
	model->exit_status = m->exit_status;
}

static void sums_add(struct model *model, const struct model *m)
{
	model->begin = bytes_min(model->begin, m->begin);
	model->end = bytes_max(model->end, m->end);
	model->synced = bytes_min(model->synced, m->synced);
	model->records += m->records;
	model->lost_events += m->lost_events;
	model->lost_bytes += m->lost_bytes;
	model->samples += m->samples;
	model->host_seen &= m->host_seen;
	model->others_seen |= m->others_seen;
	model->lowest_available = bytes_min(model->lowest_available, m->lowest_available);
	model->lowest_free = bytes_min(model->lowest_free, m->lowest_free);
	model->swap_used = bytes_max(model->swap_used, m->swap_used);
	model->own = bytes_add(model->own, m->own == ST_UNKNOWN ? 0 : m->own);
	model->attempted_peak = bytes_max(model->attempted_peak, m->attempted_peak);
	model->context_bytes += m->context_bytes;
	model->optimizer = range_add(model->optimizer, m->optimizer);
	model->failures_dropped += m->failures_dropped;
}

static void load_add(struct load *load, const struct load *l)
{
	load->threads += l->threads;
	load->spare = bytes_add(load->spare, l->spare);
	load->slots = bytes_add(load->slots, l->slots);
	load->largest_tensor = bytes_max(load->largest_tensor, l->largest_tensor);
	load->parameters += l->parameters;
	if (!l->present)
		return;
	load->finished = (load->finished || !load->present) && l->finished;
	load->begin = load->present ? bytes_min(load->begin, l->begin) : l->begin;
	load->present = true;
	load->end = bytes_max(load->end, l->end);
	load->weights += l->weights;
	load->would_load = range_add(load->would_load, l->would_load);
	load->shards_missing = bytes_max(load->shards_missing, l->shards_missing);
	load->loaded = range_add(load->loaded, l->loaded);
	load->remaining = range_add(load->remaining, l->remaining);
	load->anon_copied = range_add(load->anon_copied, l->anon_copied);
	load->host =
		(struct range){bytes_max(load->host.lo, l->host.lo), bytes_add(load->host.hi, l->host.hi)};
	load->reclaimable.lo = bytes_max(load->reclaimable.lo, l->reclaimable.lo);
	load->reclaimable.hi = bytes_add(load->reclaimable.hi, l->reclaimable.hi);
	load->ahead += l->ahead;
	load->read_bytes = bytes_add(load->read_bytes, l->read_bytes);
	load->from_private_writable |= l->from_private_writable;
	for (int i = 0; i < COPY_SOURCE_COUNT; i++)
		load->copied_from[i] += l->copied_from[i];
}

static void load_finish(struct joint *joint)
{
	struct model *model = joint->model;
	struct load *load = &model->load;
	const struct moment *modelled = &model->moments[MOMENT_LOAD_MODELLED_PEAK];

	load->repaired = peak_range(&joint->peaks[PEAK_REPAIRED]);
	if (!load->present)
		return;
	load->modelled = peak_range(&joint->peaks[PEAK_LOAD_MODELLED]);
	load->resident = peak_range(&joint->peaks[PEAK_LOAD_RESIDENT]);
	load->demand = range_sub(peak_range(&joint->peaks[PEAK_LOAD_DEMAND]),
	                         model->moments[MOMENT_FIRST_WEIGHT].demand);
	for (size_t i = 0; i < joint->count; i++)
		load->demand = load_doubted(load->demand, joint->parties[i].build->first_doubt);
	load->device_other =
		bytes_sub(modelled->layers.device, modelled->on_device.lo + model->context_bytes);
	if (!load->weights)
		return;
	load->factor_lo = (double)load->modelled.lo / (double)load->weights;
	load->factor_hi =
		range_is_open(load->modelled) ? INFINITY : (double)load->modelled.hi / (double)load->weights;
}

/* Own bytes that a process which died would still have taken. */
static struct range rest_of(const struct model *m)
{
	const struct moment *at =
		m->moments[MOMENT_FAILURE].valid ? &m->moments[MOMENT_FAILURE] : &m->moments[MOMENT_END];

	return (struct range){bytes_sub(m->needed.modelled.lo, at->modelled.lo),
	                      bytes_sub(m->needed.modelled.hi, at->modelled.hi)};
}

/*
 * A run whose processes all ended well needed its maximum. Where some died it needed at least what all had at one of
 * these deaths and what that one would still have taken; at most, all that each would have come to, at one time.
 */
static void needed_fill(struct joint *joint)
{
	struct model *model = joint->model;
	struct needed *needed = &model->needed;
	const struct moment *peak = &model->moments[MOMENT_DEMAND_PEAK];
	uint64_t most = 0;

	*needed = (struct needed){.demand = peak->demand,
	                          .modelled = peak_range(&joint->peaks[PEAK_MODELLED]),
	                          .anon = peak->layers.anon,
	                          .staging = range_of(peak->layers.staging),
	                          .died_in = PHASE_COUNT};
	for (size_t i = 0; i < joint->count; i++) {
		const struct party *party = &joint->parties[i];
		const struct needed *own = &party->build->model->needed;
		struct range rest = rest_of(party->build->model);

		most = bytes_add(most, own->modelled.hi);
		needed->lower_bound |= own->lower_bound;
		if (own->died_in == PHASE_COUNT || !party->dead_at.valid)
			continue;
		if (needed->died_in == PHASE_COUNT || own->died_in == PHASE_LOAD)
			needed->died_in = own->died_in;
		needed->request = bytes_max(needed->request, own->request);
		needed->at_least |= own->at_least;
		needed->anon = range_max(needed->anon, own->anon);
		needed->demand.lo = bytes_max(needed->demand.lo, party->dead_at.demand.lo + rest.lo);
		needed->modelled.lo = bytes_max(needed->modelled.lo, party->dead_at.modelled.lo + rest.lo);
		needed->demand.hi = bytes_max(needed->demand.hi, party->dead_at.demand.hi + rest.hi);
	}
	if (needed->died_in == PHASE_COUNT)
		return;
	needed->modelled.hi = bytes_max(needed->modelled.hi, most);
	needed->demand.hi = bytes_max(needed->demand.hi, bytes_add(most, joint->most_sampled));
}

/* Stacks, threads and files have their meaning in that process' trace alone. */
static void failures_add(struct model *model, const struct model *m)
{
	for (size_t i = 0; i < m->failure_count; i++) {
		struct failure *failure = &model->failures[model->failure_count++];

		*failure = m->failures[i];
		failure->at.stack = failure->at.thread = 0;
		failure->at.file = failure->at.tensor = MODEL_NONE;
	}
}

static int failures_copy(struct joint *joint)
{
	struct model *model = joint->model;
	size_t count = 0;

	for (size_t i = 0; i < joint->count; i++)
		count += party_model(joint, i)->failure_count;
	model->failures = calloc(count + 1, sizeof(*model->failures));
	if (!model->failures)
		return -ENOMEM;
	for (size_t i = 0; i < joint->count; i++)
		failures_add(model, party_model(joint, i));
	return 0;
}

int joint_model(struct joint *joint)
{
	struct model *model = joint->model;

	model->host_seen = model->exited = true;
	model->lowest_available = model->lowest_free = ST_UNKNOWN;
	model_identity(joint);
	for (size_t i = 0; i < joint->count; i++) {
		sums_add(model, party_model(joint, i));
		end_add(model, party_model(joint, i));
		load_add(&model->load, &party_model(joint, i)->load);
	}
	load_finish(joint);
	needed_fill(joint);
	return failures_copy(joint);
}
