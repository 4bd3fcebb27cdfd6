/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/peak.h>

static struct instant *instant_at(struct peak *peak, uint32_t i)
{
	return &peak->instants[(peak->first + i) % PEAK_INSTANTS];
}

static void instant_push(struct peak *peak, const struct instant *instant)
{
	while (peak->count && instant_at(peak, 0)->value + PEAK_NEAR < instant->value) {
		peak->first = (peak->first + 1) % PEAK_INSTANTS;
		peak->count--;
	}
	if (peak->count && instant_at(peak, peak->count - 1)->value + PEAK_STEP > instant->value)
		return;
	*instant_at(peak, peak->count++) = *instant;
}

static struct range range_ordered(struct range range)
{
	return (struct range){bytes_min(range.lo, range.hi), bytes_max(range.lo, range.hi)};
}

bool peak_note(struct peak *peak, struct range exact, struct change sampled, uint64_t fresh,
               const struct instant *instant)
{
	struct range now = range_ordered(range_move(exact, sampled));
	struct instant here = *instant;

	peak->most = bytes_max(peak->is_open ? peak->most : 0, bytes_add(exact.hi, fresh));
	peak->open = peak->is_open ? range_max(peak->open, exact) : exact;
	peak->is_open = true;
	if (peak->any && now.hi <= peak->value)
		return false;
	peak->any = true;
	peak->value = here.value = now.hi;
	instant_push(peak, &here);
	return true;
}

bool peak_is_at(const struct peak *peak, struct range exact, struct change sampled)
{
	return peak->any && range_ordered(range_move(exact, sampled)).hi == peak->value;
}

uint64_t peak_unseen(struct range open, uint64_t most, struct change before, struct change after,
                     uint64_t left)
{
	uint64_t by_first = range_move(range_of(most), before).hi;
	uint64_t by_second = bytes_add(range_move(open, after).hi, left);

	return bytes_min(by_first, by_second);
}

void peak_close(struct peak *peak, struct change before, struct change after, uint64_t left)
{
	struct change between = {before.lo < after.lo ? before.lo : after.lo,
	                         before.hi > after.hi ? before.hi : after.hi};

	if (!peak->is_open)
		return;
	peak->largest = range_max(peak->largest, range_ordered(range_move(peak->open, between)));
	peak->largest.hi =
		bytes_max(peak->largest.hi, peak_unseen(peak->open, peak->most, before, after, left));
	peak->is_open = false;
}

void peak_sampled(struct peak *peak, struct range exact, struct change sampled)
{
	peak->largest = range_max(peak->largest, range_ordered(range_move(exact, sampled)));
}

struct range peak_range(const struct peak *peak)
{
	return peak->largest;
}

const struct instant *peak_instant(const struct peak *peak)
{
	return &peak->instants[peak->first];
}
