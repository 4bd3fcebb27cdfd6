/* SPDX-License-Identifier: Apache-2.0 */
/* Protects which traces are taken for one run: never two runs as one, and no run torn apart. */
#include <analyzer/run.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* Lives from `start` to `end`, of boot "b". */
static struct run_card card(uint64_t pid, uint64_t ppid, uint64_t start, uint64_t end)
{
	return (struct run_card){.boot_id = "b",
	                         .pid = pid,
	                         .ppid = ppid,
	                         .rank = ST_UNKNOWN,
	                         .world = ST_UNKNOWN,
	                         .start = start,
	                         .begin = start,
	                         .end = end,
	                         .gone = end};
}

static struct run_card rank_card(uint64_t rank, uint64_t world, char *port)
{
	struct run_card own = card(100 + rank, 1, 10, 20);

	own.rank = rank;
	own.world = world;
	own.keys[RUN_KEY_PORT] = port;
	return own;
}

static bool are_one(struct run_card a, struct run_card b)
{
	struct run_card cards[] = {a, b};

	cards_group(cards, 2, false);
	return cards[0].group == cards[1].group;
}

static void test_parent_and_child(void **state)
{
	struct run_card parent = card(10, 1, 10, 50), child = card(11, 10, 20, 60);
	uint32_t children[] = {12};

	(void)state;
	assert_true(are_one(parent, child));
	assert_true(are_one(child, parent));
	/* Its parent is gone and it has another one now, but the trace of the first knows it. */
	child = card(12, 1, 20, 60);
	assert_false(are_one(parent, child));
	parent.children = children;
	parent.child_count = 1;
	assert_true(are_one(parent, child));
	/* The same number long after: another process. */
	child = card(12, 10, 55, 60);
	assert_false(are_one(parent, child));
	/* A child of the first moment: both starts are told in ticks, each by another recorder. */
	parent = card(10, 1, 5000000000, 6000000000);
	child = card(11, 10, 5000000000 - 10, 6000000000);
	assert_true(are_one(parent, child));
	child.start -= 20000000;
	assert_false(are_one(parent, child));
}

static void test_roots(void **state)
{
	char root[] = "7.700 python", other[] = "8.800 python", shell[] = "7.700 bash";
	char titled[] = "7.700 pt_elastic";
	struct run_card a = card(10, 7, 10, 20), b = card(11, 7, 30, 40);

	(void)state;
	assert_false(are_one(a, b));
	a.root = b.root = root;
	assert_true(are_one(a, b)); /* workers one after the other */
	b.root = titled;
	assert_true(are_one(a, b)); /* which has a title of its own by now */
	b.root = other;
	assert_false(are_one(a, b));
	/* One script runs two programs: two runs, unless they run at the same time. */
	a.root = b.root = shell;
	a.shell = b.shell = true;
	assert_false(are_one(a, b));
	b.start = b.begin = 15;
	assert_true(are_one(a, b));
}

static void test_same_shell_is_no_run(void **state)
{
	(void)state;
	assert_false(are_one(card(10, 7, 10, 20), card(11, 7, 12, 22)));
}

static void test_launcher(void **state)
{
	char port[] = "29500", other[] = "29501";

	(void)state;
	assert_true(are_one(rank_card(0, 2, port), rank_card(1, 2, port)));
	assert_false(are_one(rank_card(0, 2, port), rank_card(1, 2, other)));
	assert_false(are_one(rank_card(0, 2, port), rank_card(1, 4, port)));
	assert_false(are_one(rank_card(0, 2, port), rank_card(0, 2, port)));
	assert_false(are_one(rank_card(0, 1, port), rank_card(1, 1, port)));
	assert_false(are_one(rank_card(0, 2, NULL), rank_card(1, 2, NULL)));
}

/* An older run of the same job, in the same folder. */
static void test_stale_ranks(void **state)
{
	char port[] = "29500";
	struct run_card now = rank_card(0, 2, port), before = rank_card(1, 2, port);

	(void)state;
	before.start = before.begin = 1;
	before.end = before.gone = 5;
	assert_false(are_one(now, before));
}

/* Two hosts have clocks of their own: only the day tells. */
static void test_hosts(void **state)
{
	char port[] = "29500";
	struct run_card a = rank_card(0, 2, port), b = rank_card(1, 2, port);

	(void)state;
	strcpy(b.boot_id, "c");
	a.day = 1000;
	b.day = 1005;
	assert_true(are_one(a, b));
	b.day = 2000;
	assert_false(are_one(a, b));
	/* On another boot nobody is anybody's parent. */
	b = card(11, 100, 12, 20);
	strcpy(b.boot_id, "c");
	assert_false(are_one(a, b));
}

/* The parent of one and the sibling of another: all of them hang together. */
static void test_chain(void **state)
{
	struct run_card cards[] = {card(20, 12, 30, 40), card(5, 1, 1, 100), card(12, 10, 20, 50),
	                           card(10, 1, 10, 60)};

	(void)state;
	cards_group(cards, 4, false);
	assert_int_equal(cards[0].group, 0);
	assert_int_equal(cards[2].group, 0);
	assert_int_equal(cards[3].group, 0);
	assert_int_equal(cards[1].group, 1);
	cards_group(cards, 4, true);
	assert_int_equal(cards[1].group, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parent_and_child),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_same_shell_is_no_run),
		cmocka_unit_test(test_launcher),
		cmocka_unit_test(test_stale_ranks),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_chain),
	};

	return cmocka_run_group_tests_name("run_group", tests, NULL, NULL);
}
