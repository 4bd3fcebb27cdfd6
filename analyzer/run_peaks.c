/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks of the sum over all processes of a run, at common instants. */
#include <analyzer/run_parts.h>
#include <string.h>

static bool in_load(const struct joint *joint)
{
	return stretch_has(STRETCH_LOAD, joint->phase);
}

/* Most records of a long run change nothing that a peak could see: as peaks_worth_a_look(), for the sum. */
bool joint_worth_a_look(struct joint *joint, const struct st_record *record)
{
	uint64_t blocks = 0, host = 0;
	uint16_t kind = record->kind;
	bool worth = kind == ST_KIND_sample || kind == ST_KIND_cached || kind == ST_KIND_anon;

	for (size_t i = 0; i < joint->count; i++) {
		const struct residency *residency = &joint->parties[i].build->residency;

		if (!party_lives(&joint->parties[i]))
			continue;
		blocks += residency->replay.device + replay_pinned(&residency->replay);
		host += residency->total.now.anon + residency->total.now.anon_possible +
		        residency->total.now.staging;
	}
	worth |= in_load(joint) && (kind == ST_KIND_copy || kind == ST_KIND_read || kind == ST_KIND_map ||
	                            kind == ST_KIND_remap);
	worth |= blocks > joint->seen_blocks || host != joint->seen_host;
	if (worth) {
		joint->seen_blocks = kind == ST_KIND_sample || host != joint->seen_host
		                             ? blocks
		                             : bytes_max(blocks, joint->seen_blocks);
		joint->seen_host = host;
	}
	return worth;
}

/* Maxima of the load that are no moment of their own. */
static void load_note(struct joint *joint, const struct moment *now)
{
	struct load *load = &joint->model->load;
	const struct layers *layers = &now->layers;

	load->anon = range_max(load->anon, layers->anon);
	load->duplicated = range_max(load->duplicated, now->duplicated);
	load->staging = bytes_max(load->staging, layers->staging);
	load->staging_all = bytes_max(load->staging_all, layers->staging + layers->staging_pinned);
	load->pinned = bytes_max(load->pinned, layers->pinned);
	load->device = bytes_max(load->device, layers->device);
	load->mapped = bytes_max(load->mapped, now->mapped);
}

static void party_keep(struct party *party)
{
	struct run_part *part = party->part;

	part->there = party_lives(party);
	if (!part->there) {
		part->layers = (struct layers){0};
		part->demand = range_of(0);
		return;
	}
	part->phase = party->build->phase;
	part->layers = party_layers(party);
	part->demand = party_demand(party);
	residency_keep(&party->build->residency, POINT_RUN_PEAK);
	if (party->looked_news)
		memcpy(party->looked_then, party->looked,
		       party->build->catalog.file_count * sizeof(*party->looked));
	party->looked_news = false;
}

void joint_show(struct joint *joint, struct party *party, const struct st_record *record)
{
	struct peak_look look = joint_look(joint);
	struct instant instant = {.time = party->time,
	                          .thread = record->thread,
	                          .file = MODEL_NONE,
	                          .tensor = MODEL_NONE,
	                          .phase = (int)joint->phase};
	struct peak_sight sight = {joint->phase, in_load(joint) || record->kind == ST_KIND_cached,
	                           record->kind == ST_KIND_sample};
	unsigned risen = peaks_show(joint->peaks, &look, &instant, &sight);
	struct moment now;

	if (look.sampled[QUANTITY_DEMAND].hi > 0)
		joint->most_sampled =
			bytes_max(joint->most_sampled, (uint64_t)look.sampled[QUANTITY_DEMAND].hi);
	if (!risen && !in_load(joint))
		return;
	now = joint_moment(joint, party);
	if (in_load(joint))
		load_note(joint, &now);
	if (risen & 1u << PEAK_DEMAND)
		for (size_t i = 0; i < joint->count; i++)
			party_keep(&joint->parties[i]);
	for (unsigned i = 0; i < PEAK_COUNT; i++)
		if (risen & 1u << i && peak_rows[i].moment != MOMENT_COUNT)
			joint->model->moments[peak_rows[i].moment] = now;
}

void joint_close(struct joint *joint, const struct peak_look *before, const struct peak_look *after,
                 uint64_t left)
{
	for (unsigned i = 0; i < PEAK_COUNT; i++)
		peak_close(&joint->peaks[i], before->sampled[peak_rows[i].quantity],
		           after->sampled[peak_rows[i].quantity], left);
}
