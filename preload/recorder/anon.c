/* SPDX-License-Identifier: Apache-2.0 */
#include "anon.h"
#include "clock.h"

#include <errno.h>
#include <string.h>

#define PIECES_MAX 64 /* records of one mapping in one scan: 131,072 ranges */

void anon_init(struct anon *anon, uint32_t pid, uint64_t page_size, void (*catch_up)(void *), void *context)
{
	*anon = (struct anon){.catch_up = catch_up, .context = context};
	anon->mappings.page_size = page_size;
	pagemap_open(&anon->pagemap, pid, page_size); /* an error shows at the first scan */
}

void anon_release(struct anon *anon)
{
	pagemap_close(&anon->pagemap);
	mappings_release(&anon->mappings);
}

static void refuse(struct anon *anon, struct out *out, int err)
{
	if (!anon->refused && err != -ESRCH)
		out_coverage(out, "anonymous pages of weight mappings are unknown: pagemap: %s",
		             strerror(-err));
	anon->refused = true;
}

static uint64_t hash_ranges(uint64_t hash, const struct pagemap_ranges *ranges)
{
	size_t i;

	for (i = 0; i < ranges->count; i++)
		hash = (hash ^ ranges->pairs[i][0] ^ ranges->pairs[i][1] << 20) *
		       UINT64_C(0x9e3779b97f4a7c15);
	return hash | 1;
}

static void put_ranges(struct out *out, const struct mapping *mapping, uint64_t start, enum st_moment reason,
                       enum st_source source, const struct pagemap_ranges *ranges)
{
	OUT_TAIL(out, anon, ranges->pairs, ranges->count * sizeof(ranges->pairs[0]), .addr = start,
	         .size = ranges->next - start, .file = mapping->file,
	         .offset = mapping->offset + (start - mapping->start), .bytes = ranges->bytes,
	         .reason = reason, .source = source, .complete = 1);
}

/* 0; -EAGAIN: the mappings have changed under it; or why it cannot be seen. */
static int scan_mapping(struct anon *anon, struct out *out, uint32_t index, enum st_moment reason, bool all)
{
	static struct pagemap_ranges ranges;
	struct mapping mapping = anon->mappings.all[index]; /* catching up may move the table */
	uint64_t at, hash = 1, changes = anon->mappings.changes;
	int pieces, err;

	for (at = mapping.start, pieces = 0; at < mapping.end && pieces < PIECES_MAX;
	     at = ranges.next, pieces++) {
		err = pagemap_find(&anon->pagemap, at, mapping.end, &ranges);
		if (err)
			return err;
		anon->catch_up(anon->context);
		if (changes != anon->mappings.changes)
			return -EAGAIN;
		hash = hash_ranges(hash, &ranges);
		if (all || pieces || ranges.next < mapping.end || hash != mapping.seen)
			put_ranges(out, &mapping, at, reason, pagemap_source(&anon->pagemap), &ranges);
	}
	if (at < mapping.end)
		OUT(out, anon, .addr = at, .size = mapping.end - at, .file = mapping.file,
		    .offset = mapping.offset + (at - mapping.start), .reason = reason,
		    .source = pagemap_source(&anon->pagemap));
	/* New mappings only shift it: nothing was taken away. */
	for (; index < anon->mappings.count; index++)
		if (anon->mappings.all[index].start == mapping.start)
			anon->mappings.all[index].seen = hash;
	return 0;
}

void anon_look(struct anon *anon, struct out *out, enum st_moment reason, bool all)
{
	uint64_t before = clock_cost(), next = 0;
	uint32_t i = 0;
	int err = 0, tries = 0;

	while (i < anon->mappings.count && !anon->refused) {
		const struct mapping *mapping = &anon->mappings.all[i];

		if (mapping->start < next || !(mapping->written || all)) {
			i++;
			continue;
		}
		next = mapping->start + 1;
		err = scan_mapping(anon, out, i, reason, all);
		if (err == -EAGAIN && tries++ < 16) /* from this mapping on again, wherever it stands now */
			next--;
		else if (err && err != -EAGAIN)
			refuse(anon, out, err);
		i = 0;
	}
	anon->cost = clock_cost() - before;
}
