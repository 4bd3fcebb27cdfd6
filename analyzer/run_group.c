/* SPDX-License-Identifier: Apache-2.0 */
/* Which traces are of one run; the rules are in run.h. */
#include <analyzer/run.h>
#include <string.h>

/* The kernel tells starts in steps of a tick, and each recorder puts them on the clock by itself. */
#define TICK UINT64_C(10000000)

static bool texts_equal(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* The name may change while the process lives (launchers give themselves a title): its number and start do not. */
static bool roots_equal(const struct run_card *a, const struct run_card *b)
{
	size_t length = a->root ? strcspn(a->root, " ") : 0;

	return length && b->root && length == strcspn(b->root, " ") && !strncmp(a->root, b->root, length);
}

static bool times_overlap(const struct run_card *a, const struct run_card *b)
{
	return a->start <= b->end && b->start <= a->end;
}

static bool days_overlap(const struct run_card *a, const struct run_card *b)
{
	return card_day_begin(a) <= card_day_end(b) && card_day_begin(b) <= card_day_end(a);
}

/* A parent began before its child. Numbers of processes come again: then the child came when the parent was gone. */
static bool is_child(const struct run_card *parent, const struct run_card *child)
{
	if (child->start + TICK < parent->start || child->start > parent->end)
		return false;
	if (child->ppid == parent->pid && child->pid != parent->pid)
		return true;
	for (size_t i = 0; i < parent->child_count; i++)
		if (parent->children[i] == child->pid)
			return true;
	return false;
}

static bool one_launcher(const struct run_card *a, const struct run_card *b)
{
	if (a->world != b->world || a->world == ST_UNKNOWN || a->world < 2 || a->rank == b->rank)
		return false;
	for (int i = 0; i < RUN_KEY_COUNT; i++)
		if (texts_equal(a->keys[i], b->keys[i]))
			return true;
	return false;
}

static bool is_one_run(const struct run_card *a, const struct run_card *b, bool together)
{
	if (strcmp(a->boot_id, b->boot_id) != 0)
		return one_launcher(a, b) && days_overlap(a, b);
	if (roots_equal(a, b) && !a->shell && !b->shell)
		return true;
	if (!times_overlap(a, b))
		return false;
	return together || roots_equal(a, b) || is_child(a, b) || is_child(b, a) || one_launcher(a, b);
}

static void groups_join(struct run_card *cards, size_t count, size_t a, size_t b)
{
	size_t low = a < b ? a : b, high = a < b ? b : a;

	for (size_t i = 0; low != high && i < count; i++)
		if (cards[i].group == high)
			cards[i].group = low;
}

void cards_group(struct run_card *cards, size_t count, bool together)
{
	for (size_t i = 0; i < count; i++)
		cards[i].group = i;
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			if (cards[i].group != cards[j].group && is_one_run(&cards[i], &cards[j], together))
				groups_join(cards, count, cards[i].group, cards[j].group);
}
