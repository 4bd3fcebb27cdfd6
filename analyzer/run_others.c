/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N of a run: what one recorder calls "other processes" holds the other processes of the run too. These have
 * traces, which say what they had in their last sample before that look; and recorders, which are a layer of their own.
 *
 * What counts is the sum of all that is anonymous on the machine, which a look tells whole. So what is taken off N is
 * what stands for a process in H at the same time: then the sum is right, however old that is. When the process is
 * sampled anew, H moves, and whether it had moved before the look is not known: from then on N has both bounds.
 *
 * One that was there at the start and was not sampled yet is taken to have had then what it had in its first sample
 * (its H begins there), and what it rose by in between stays in N, where it was seen. One that came later is N until
 * its first sample.
 */
#include <analyzer/run_parts.h>

uint64_t run_first_sample(struct run_card *const *cards, size_t count)
{
	uint64_t first = 0;

	for (size_t i = 0; i < count; i++)
		if (cards[i]->sample_count && (!first || cards[i]->samples[0].time < first))
			first = cards[i]->samples[0].time;
	return first;
}

/* Number of its samples up to `time`. */
static size_t samples_until(const struct run_card *card, uint64_t time)
{
	size_t low = 0, high = card->sample_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (card->samples[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The last known value in the first `count` samples, the first known one from there on; 0: none. */
static uint64_t anon_before(const struct run_card *card, size_t count)
{
	while (count-- > 0)
		if (card->samples[count].anon != ST_UNKNOWN)
			return card->samples[count].anon;
	return 0;
}

static uint64_t anon_from(const struct run_card *card, size_t from)
{
	for (; from < card->sample_count; from++)
		if (card->samples[from].anon != ST_UNKNOWN)
			return card->samples[from].anon;
	return 0;
}

/* What a process was of a look at `time`. Of a copy, looks see only what is its own: its rise, and what it had before. */
static struct range party_part(const struct party *party, uint64_t time)
{
	const struct run_card *card = party->part->card;
	size_t seen = samples_until(card, time);
	uint64_t before = anon_before(card, seen), after = anon_from(card, seen), shared;
	bool anew = party->samples > seen;

	if (time > card->gone)
		return range_of(0);
	if (!seen)
		return range_of(party->late || card->forked ? 0 : after);
	shared = card->forked ? anon_from(card, 0) : 0;
	before = bytes_sub(before, shared);
	after = anew ? bytes_sub(after, shared) : before;
	return (struct range){bytes_min(before, after), bytes_max(before, after)};
}

/* RssAnon of its recorder, which is there a little before the first sample and after the last. */
static struct range recorder_part(const struct run_card *card, uint64_t time)
{
	size_t seen = samples_until(card, time);
	uint64_t value;

	if (!card->sample_count || time < card->start)
		return range_of(0);
	value = card->samples[seen ? seen - 1 : 0].recorder;
	if (value == ST_UNKNOWN)
		return range_of(0);
	if (!seen || seen == card->sample_count)
		return (struct range){0, value};
	return (struct range){bytes_sub(value, card->ring_bytes), value};
}

/* What no process of the run has, nor a recorder of one, by the last look. */
static struct change others_absolute(const struct joint *joint)
{
	const struct run_sample *look = &joint->looker->part->card->samples[joint->look];
	struct change rest = {(int64_t)look->others, (int64_t)look->others};

	for (size_t i = 0; i < joint->count; i++) {
		const struct party *party = &joint->parties[i];
		struct range part;

		if (party == joint->looker)
			continue;
		part = range_add(party_part(party, look->time), recorder_part(party->part->card, look->time));
		rest.lo -= (int64_t)part.hi;
		rest.hi -= (int64_t)part.lo;
	}
	return rest;
}

void others_update(struct joint *joint)
{
	struct change now;

	if (!joint->looker)
		return;
	now = others_absolute(joint);
	joint->others = (struct change){now.lo - joint->others_first.hi, now.hi - joint->others_first.lo};
}

void others_look(struct joint *joint, const struct party *party)
{
	const struct run_card *card = party->part->card;

	if (party->samples <= card->sample_count && card->samples[party->samples - 1].fresh) {
		joint->looker = party;
		joint->look = party->samples - 1;
		if (!joint->others_seen)
			joint->others_first = others_absolute(joint);
		joint->others_seen = true;
	}
	others_update(joint);
}
