/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects: the ladder. Order of the rungs, the relief of each by hand-computed figures, `next` as
 * spec 03 has it: never a step that cannot matter, never 4 early, "cannot tell" is not zero.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "run.h"

/* Issue 3, line 9. */
static struct run order_case(void)
{
	struct run run = run_init(40 * GIB, 110 * GIB, 60 * GIB);

	run.options.reserve = 8 * GIB;
	run_failure(&run, PHASE_START, 0, 60 * GIB);
	return run;
}

static void test_order(void **state)
{
	struct run run = order_case();

	(void)state;
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_AFTER_FLUSH);
	assert_string_equal(next_of(&run), "1");
	assert_int_equal(run.ladder.rungs[RUNG_FLUSH].relief.lo, 70 * GIB);
	assert_int_equal(run.ladder.rungs[RUNG_FLUSH].judgement.verdict, VERDICT_FITS);
}

static void test_order_after_flush_was_tried(void **state)
{
	struct run run = order_case();

	(void)state;
	run.options.tried = 1u << RUNG_FLUSH;
	climb(&run);
	assert_string_not_equal(next_of(&run), "4");
	assert_string_not_equal(next_of(&run), "1");
	assert_string_not_equal(next_of(&run), "none");
	assert_true(run.ladder.rungs[RUNG_FLUSH].tried);
}

/* Issue 3, line 7. */
static struct run packing_case(void)
{
	struct run run = run_init(8 * GIB, 8 * GIB, GIB + 512 * MIB);

	run_load(&run, GIB, GIB + 512 * MIB);
	run.options.budget = GIB + GIB / 4;
	run.options.band = 0;
	run.options.pack = 2048;
	run.options.optimizer_bytes = 0;
	return run;
}

static void test_packing_exact(void **state)
{
	struct run run = packing_case();
	const struct rung_result *rung = &run.ladder.rungs[RUNG_PACK];

	(void)state;
	climb(&run);
	assert_true(run.ladder.pack.factor_lo == 0.5);
	assert_true(run.ladder.pack.factor_hi == 0.5);
	assert_int_equal(run.ladder.pack.pack, 1024);
	assert_string_equal(next_of(&run), "2");
	assert_int_equal(rung->relief.lo, 256 * MIB);
	assert_int_equal(rung->relief.hi, 256 * MIB);
	assert_int_equal(rung->needed.hi, GIB + 256 * MIB);
	assert_int_equal(rung->judgement.verdict, VERDICT_FITS);
	assert_int_equal(run.ladder.rungs[RUNG_LOAD].state, RUNG_NOT);
}

/* A byte over the edge costs a whole step of 128 tokens. */
static void test_packing_rounds_down(void **state)
{
	struct run run = packing_case();

	(void)state;
	run.model.needed.demand = range_of(GIB + 512 * MIB + 1);
	climb(&run);
	assert_int_equal(run.ladder.pack.pack, 896);
}

static void test_packing_without_its_inputs(void **state)
{
	struct run run = packing_case();

	(void)state;
	run.options.pack = ST_UNKNOWN;
	climb(&run);
	assert_string_equal(next_of(&run), "2");
	assert_non_null(strstr(run.ladder.rungs[RUNG_PACK].missing, "--pack"));
	assert_int_equal(run.ladder.rungs[RUNG_PACK].relief.hi, 256 * MIB);

	run = packing_case();
	run.options.optimizer_bytes = ST_UNKNOWN;
	climb(&run);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].state, RUNG_UNKNOWN);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].relief.lo, 0);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].relief.hi, 256 * MIB);
	assert_non_null(strstr(run.ladder.rungs[RUNG_PACK].missing, "--optimizer-bytes"));
	assert_string_equal(next_of(&run), "2");
}

static void test_batch_only_when_packing_is_fixed(void **state)
{
	struct run run = packing_case();

	(void)state;
	run.options.fixed_pack = true;
	run.options.batch = 8;
	climb(&run);
	assert_int_equal(run.ladder.pack.pack, ST_UNKNOWN);
	assert_int_equal(run.ladder.pack.batch, 4);
	run.options.fixed_pack = false;
	climb(&run);
	assert_int_equal(run.ladder.pack.batch, ST_UNKNOWN);
	run.options.pack = 1;
	climb(&run);
	assert_int_equal(run.ladder.pack.batch, 4);
}

/* f <= 0: all growth is the optimizer's, or it would not fit without activations. */
static void test_packing_cannot_help(void **state)
{
	struct run run = packing_case();

	(void)state;
	run.options.optimizer_bytes = 512 * MIB;
	climb(&run);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].state, RUNG_NOT);
	assert_non_null(run.ladder.rungs[RUNG_PACK].reason);

	run = packing_case();
	run.options.budget = GIB;
	climb(&run);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].state, RUNG_NOT);
	assert_non_null(strstr(run.ladder.rungs[RUNG_PACK].reason, "without any activations"));
}

static void test_death_in_step_is_an_upper_bound(void **state)
{
	struct run run = packing_case();

	(void)state;
	run.model.moments[MOMENT_STEPS_PEAK].layers.device = GIB + 256 * MIB;
	run_failure(&run, PHASE_STEPS, GIB + 256 * MIB, 256 * MIB);
	climb(&run);
	assert_true(run.ladder.pack.upper_bound);
	assert_true(run.ladder.pack.factor_hi == 0.5);
	assert_string_equal(next_of(&run), "2");
}

/* Issue 3, line 2: 1 GiB, each byte also anonymous; the peak is in the load. */
static struct run copy_on_write_case(void)
{
	struct run run = run_init(8 * GIB, 8 * GIB, 2 * GIB);

	run_load(&run, GIB, GIB);
	run.model.moments[MOMENT_DEMAND_PEAK].phase = PHASE_LOAD;
	run.model.needed.anon = range_of(GIB);
	run.model.load.repaired = range_of(GIB + 16 * MIB);
	run.options.budget = GIB + 512 * MIB;
	return run;
}

static void test_copy_on_write(void **state)
{
	struct run run = copy_on_write_case();
	const struct rung_result *rung = &run.ladder.rungs[RUNG_LOAD];

	(void)state;
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_DOES_NOT_FIT);
	assert_string_equal(next_of(&run), "1b");
	assert_int_equal(rung->relief.lo, GIB - 16 * MIB);
	assert_int_equal(rung->needed.hi, GIB + 16 * MIB);
	assert_int_equal(rung->judgement.verdict, VERDICT_FITS);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].state, RUNG_NOT);
	assert_int_equal(run.ladder.rungs[RUNG_METHOD].state, RUNG_UNKNOWN);
}

static void test_copy_on_write_read_only(void **state)
{
	struct run run = copy_on_write_case();

	(void)state;
	run.model.needed.demand = run.model.load.repaired = range_of(GIB);
	run.model.needed.anon = range_of(0);
	climb(&run);
	assert_int_equal(run.ladder.rungs[RUNG_LOAD].state, RUNG_NOT);
	assert_string_equal(next_of(&run), "none");
}

/* Device bytes that are neither weights nor context widen the relief upwards only. */
static void test_load_path_upper_end(void **state)
{
	struct run run = copy_on_write_case();
	const struct rung_result *rung = &run.ladder.rungs[RUNG_LOAD];

	(void)state;
	run.model.load.device_other = 128 * MIB;
	climb(&run);
	assert_int_equal(rung->relief.lo, GIB - 16 * MIB);
	assert_int_equal(rung->relief.hi, GIB + 112 * MIB);
	assert_int_equal(rung->needed.lo, GIB - 112 * MIB);
	assert_int_equal(rung->needed.hi, GIB + 16 * MIB);
}

/* Issue 3, line 6: the sixth of 8 shards of 256 MiB is refused. */
static struct run dead_load_case(void)
{
	struct run run = run_init(8 * GIB, 8 * GIB, 2 * GIB);

	run_load(&run, 2 * GIB, 0);
	run.model.load.finished = false;
	run.model.load.loaded = range_of(5 * 256 * MIB);
	run.model.moments[MOMENT_SETTLED].valid = false;
	run.model.needed.lower_bound = true;
	run_failure(&run, PHASE_LOAD, 5 * 256 * MIB, 256 * MIB);
	run.options.budget = GIB + GIB / 4;
	return run;
}

static void test_dead_load(void **state)
{
	struct run run = dead_load_case();

	(void)state;
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_DOES_NOT_FIT);
	assert_int_equal(run.ladder.rungs[RUNG_FLUSH].judgement.verdict, VERDICT_DOES_NOT_FIT);
	assert_int_equal(run.ladder.rungs[RUNG_PACK].state, RUNG_NOT);
	assert_string_equal(next_of(&run), "3");
	assert_non_null(strstr(run.ladder.rungs[RUNG_METHOD].missing, "--method"));
}

/* With room for what the load would have needed: the steps are unknown, so nothing is said to fit. */
static void test_dead_load_never_fits(void **state)
{
	struct run run = dead_load_case();

	(void)state;
	run.options.budget = ST_UNKNOWN;
	run.model.first.free = GIB;
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_CANNOT_TELL);
	assert_string_equal(next_of(&run), "1");
	for (unsigned i = 0; i < RUNG_COUNT; i++)
		assert_true(run.ladder.rungs[i].judgement.verdict >= VERDICT_CANNOT_TELL);
}

static void test_retry_is_no_failure(void **state)
{
	struct run run = run_init(8 * GIB, 8 * GIB, GIB);

	(void)state;
	run.model.failure_count = 1;
	run.failure.outcome = FAILURE_RETRIED;
	climb(&run);
	assert_string_equal(next_of(&run), "none");
	run.failure.outcome = FAILURE_SURVIVED;
	climb(&run);
	assert_string_equal(next_of(&run), "outside");
}

/* It completed: "none", however low MemFree went, up to the last byte of Bf. */
static void test_none_on_a_run_that_fits(void **state)
{
	struct run run = run_init(GIB, 100 * GIB, 100 * GIB);

	(void)state;
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_TIGHT);
	assert_string_equal(next_of(&run), "none");
	run.model.needed.demand = range_of(100 * GIB + 1);
	climb(&run);
	assert_string_not_equal(next_of(&run), "none");
}

/* A little cache is always there: 300 MiB of a gap of 20 GiB are not the next step. */
static void test_small_flush_is_not_next(void **state)
{
	struct run run = run_init(60 * GIB - 300 * MIB, 60 * GIB, 80 * GIB);

	(void)state;
	run_load(&run, 20 * GIB, 80 * GIB);
	run.options.optimizer_bytes = 0;
	run.options.pack = 4096;
	climb(&run);
	assert_int_equal(run.ladder.rungs[RUNG_FLUSH].relief.lo, 300 * MIB);
	assert_string_equal(next_of(&run), "2");

	run = run_init(4 * GIB, 4 * GIB + 300 * MIB, 24 * GIB);
	run_load(&run, 2 * GIB, 24 * GIB);
	run.options.optimizer_bytes = 0;
	run.options.pack = 4096;
	climb(&run);
	assert_string_equal(next_of(&run), "2");
}

/* Too much for either alone: the flush is half of the gap, so it comes before the job is changed. */
static void test_flush_belongs_to_the_combination(void **state)
{
	struct run run = run_init(50 * GIB, 60 * GIB, 65 * GIB);

	(void)state;
	run_load(&run, 40 * GIB, 65 * GIB);
	run.options.optimizer_bytes = 0;
	run.options.pack = 4096;
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_DOES_NOT_FIT);
	assert_string_equal(next_of(&run), "1");
	run.options.tried = 1u << RUNG_FLUSH;
	climb(&run);
	assert_string_equal(next_of(&run), "2");
}

/* It died although the pool had room: none of the rungs gives what was missing. */
static void test_outside_the_ladder(void **state)
{
	struct run run = run_init(100 * GIB, 100 * GIB, 10 * GIB);

	(void)state;
	run_failure(&run, PHASE_START, 5 * GIB, 5 * GIB);
	climb(&run);
	assert_int_equal(verdict_of(&run), VERDICT_FITS);
	assert_string_equal(next_of(&run), "outside");
}

/* Without a budget the flush cannot be told, which is not zero: it stays next and says what is missing. */
static void test_no_budget(void **state)
{
	struct run run = run_init(ST_UNKNOWN, ST_UNKNOWN, 10 * GIB);

	(void)state;
	climb(&run);
	assert_string_equal(next_of(&run), "1");
	assert_non_null(run.ladder.rungs[RUNG_FLUSH].missing);
}

/* Over all cases: the rungs in their order, never a negative relief, a reason wherever one does nothing. */
static void test_table(void **state)
{
	struct run runs[] = {order_case(),     packing_case(), copy_on_write_case(),
	                     dead_load_case(), too_big_case(), run_init(GIB, GIB, 0)};

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		climb(&runs[i]);
		for (unsigned k = 0; k < RUNG_COUNT; k++) {
			const struct rung_result *rung = &runs[i].ladder.rungs[k];

			assert_int_equal(rung->rung, k);
			assert_true(rung->relief.lo <= rung->relief.hi);
			assert_true(rung->needed.lo <= rung->needed.hi);
			assert_true(rung->needed.hi <= runs[i].model.needed.demand.hi);
			assert_non_null(rung->reason);
			assert_true(rung->state != RUNG_UNKNOWN || rung->missing);
			if (rung->state == RUNG_NOT)
				assert_int_equal(rung->relief.hi, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_after_flush_was_tried),
		cmocka_unit_test(test_packing_exact),
		cmocka_unit_test(test_packing_rounds_down),
		cmocka_unit_test(test_packing_without_its_inputs),
		cmocka_unit_test(test_batch_only_when_packing_is_fixed),
		cmocka_unit_test(test_packing_cannot_help),
		cmocka_unit_test(test_death_in_step_is_an_upper_bound),
		cmocka_unit_test(test_copy_on_write),
		cmocka_unit_test(test_copy_on_write_read_only),
		cmocka_unit_test(test_load_path_upper_end),
		cmocka_unit_test(test_dead_load),
		cmocka_unit_test(test_dead_load_never_fits),
		cmocka_unit_test(test_retry_is_no_failure),
		cmocka_unit_test(test_none_on_a_run_that_fits),
		cmocka_unit_test(test_small_flush_is_not_next),
		cmocka_unit_test(test_flush_belongs_to_the_combination),
		cmocka_unit_test(test_outside_the_ladder),
		cmocka_unit_test(test_no_budget),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
