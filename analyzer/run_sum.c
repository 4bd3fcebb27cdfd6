/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the processes of a run at one instant. */
#include <analyzer/run_parts.h>

bool party_lives(const struct party *party)
{
	return party->begun && !party->gone;
}

/* What of H is counted with the process beside its rise since its own first sample: see struct run_total. */
static struct change host_brought(const struct party *party)
{
	const struct ledger *ledger = &party->build->ledger;

	if (!party->late || party->part->card->forked || !ledger->host_seen)
		return (struct change){0, 0};
	return (struct change){(int64_t)(ledger->rss_first - ledger->anon_first.lo),
	                       (int64_t)(ledger->rss_first - ledger->anon_first.hi)};
}

static void change_add(struct change *sum, struct change more)
{
	sum->lo += more.lo;
	sum->hi += more.hi;
}

/* The state of one process with its own N, which the sum has once, taken off. */
static struct peak_look party_look(const struct party *party)
{
	const struct ledger *ledger = &party->build->ledger;
	struct peak_look look = peaks_state(party->build);
	struct change off = host_brought(party);

	if (ledger->others > 0)
		change_add(&off, (struct change){-ledger->others, -ledger->others});
	change_add(&look.sampled[QUANTITY_DEMAND], off);
	change_add(&look.sampled[QUANTITY_REPAIRED], off);
	return look;
}

/* What others gave back is no room that a run could count on. */
static struct change others_taken(const struct joint *joint)
{
	struct change others = joint->others_seen ? joint->others : (struct change){0, 0};

	return (struct change){others.lo > 0 ? others.lo : 0, others.hi > 0 ? others.hi : 0};
}

struct peak_look joint_look(const struct joint *joint)
{
	struct peak_look sum = {0};
	int64_t cache = joint->newest ? (int64_t)ledger_cache(&joint->newest->build->ledger) : 0;

	for (size_t i = 0; i < joint->count; i++) {
		struct peak_look look;

		if (!party_lives(&joint->parties[i]))
			continue;
		look = party_look(&joint->parties[i]);
		sum.fresh += look.fresh;
		/* Of all but the one that is sampled, what came since its own sample is not in the next one of another. */
		sum.left += look.left + look.fresh;
		for (int q = 0; q < QUANTITY_COUNT; q++) {
			sum.exact[q] = range_add(sum.exact[q], look.exact[q]);
			if (q != QUANTITY_RESIDENT)
				change_add(&sum.sampled[q], look.sampled[q]);
		}
	}
	change_add(&sum.sampled[QUANTITY_DEMAND], others_taken(joint));
	change_add(&sum.sampled[QUANTITY_REPAIRED], others_taken(joint));
	sum.sampled[QUANTITY_RESIDENT] = sum.sampled[QUANTITY_DEMAND];
	change_add(&sum.sampled[QUANTITY_RESIDENT], (struct change){cache, cache});
	return sum;
}

struct range party_demand(const struct party *party)
{
	struct peak_look look = party_look(party);
	struct range range = range_move(look.exact[QUANTITY_DEMAND], look.sampled[QUANTITY_DEMAND]);

	return (struct range){bytes_min(range.lo, range.hi), bytes_max(range.lo, range.hi)};
}

struct layers party_layers(const struct party *party)
{
	struct layers layers = ledger_layers(&party->build->ledger);
	struct change brought = host_brought(party);

	if (change_is_known(layers.host)) {
		layers.host.lo += brought.lo < brought.hi ? brought.lo : brought.hi;
		layers.host.hi += brought.lo < brought.hi ? brought.hi : brought.lo;
	}
	return layers;
}
