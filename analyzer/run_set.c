/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/run_set.h>
#include <analyzer/run_wait.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int run_set_read(struct run_set *set, bool together, run_set_bad *bad, void *context)
{
	set->cards = calloc(set->paths.count + 1, sizeof(*set->cards));
	if (!set->cards)
		return -ENOMEM;
	for (size_t i = 0; i < set->paths.count; i++) {
		int error = card_read_whole(set->paths.paths[i], &set->cards[set->count]);

		if (error)
			bad(context, set->paths.paths[i], error);
		else
			set->count++;
	}
	cards_group(set->cards, set->count, together);
	return 0;
}

void run_set_release(struct run_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		card_release(&set->cards[i]);
	free(set->cards);
	paths_release(&set->paths);
}

static bool same_machine(const struct run_card *a, const struct run_card *b)
{
	return a->group == b->group && !strcmp(a->boot_id, b->boot_id);
}

/* Of two scenarios written by hand all may be alike but what happens in them. */
static bool same_content(const char *a, const char *b)
{
	FILE *x = fopen(a, "re"), *y = fopen(b, "re");
	bool same = x && y;

	while (same) {
		char left[4096], right[sizeof(left)];
		size_t got = fread(left, 1, sizeof(left), x);

		same = got == fread(right, 1, sizeof(right), y) && !memcmp(left, right, got);
		if (got < sizeof(left))
			break;
	}
	if (x)
		fclose(x);
	if (y)
		fclose(y);
	return same;
}

bool card_is_again(const struct run_card *a, const struct run_card *b)
{
	return a->pid == b->pid && a->begin == b->begin && a->end == b->end &&
	       !strcmp(a->boot_id, b->boot_id) && same_content(a->path, b->path);
}

static bool is_again(const struct run_set *set, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (card_is_again(&set->cards[i], &set->cards[index]))
			return true;
	return false;
}

size_t run_set_machine(const struct run_set *set, size_t first, struct run_card **ret_cards)
{
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		if (same_machine(&set->cards[i], &set->cards[first]) && !is_again(set, i))
			ret_cards[count++] = &set->cards[i];
	return count;
}

bool run_set_is_first(const struct run_set *set, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (same_machine(&set->cards[i], &set->cards[index]))
			return false;
	return !is_again(set, index);
}

size_t run_set_newest(const struct run_set *set, size_t without)
{
	size_t newest = set->count;

	for (size_t i = 0; i < set->count; i++)
		if (set->cards[i].group != without &&
		    (newest == set->count ||
		     card_day_end(&set->cards[i]) > card_day_end(&set->cards[newest])))
			newest = i;
	return newest;
}
