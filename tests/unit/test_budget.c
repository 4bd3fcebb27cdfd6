/* SPDX-License-Identifier: Apache-2.0 */
/* Protects: the two budgets, and the verdict on each side of every boundary; unknown never looks like fine. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "analyzer/budget.h"
#include "analyzer/commands.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct options options_none(void)
{
	return (struct options){
		.budget = ST_UNKNOWN,
		.reserve = ST_UNKNOWN,
		.band = ST_UNKNOWN,
		.pool = ST_UNKNOWN,
		.optimizer_bytes = ST_UNKNOWN,
	};
}

static struct model model_sampled(uint64_t free, uint64_t available)
{
	struct model model;

	memset(&model, 0, sizeof(model));
	model.samples = 1;
	model.first.free = free;
	model.first.available = available;
	model.first.percpu = model.first.watermark = model.first.cgroup_limit = ST_UNKNOWN;
	model.needed.died_in = PHASE_COUNT;
	return model;
}

static struct budget budget_of(uint64_t now, uint64_t flush, uint64_t band)
{
	return (struct budget){
		.now = now, .flush = flush, .band_now = band, .band_flush = band, .host_limit = ST_UNKNOWN};
}

static void test_measured(void **state)
{
	struct model model = model_sampled(40 * GIB, 110 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	options.reserve = 8 * GIB;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget.now, 32 * GIB);
	assert_int_equal(budget.flush, 102 * GIB);
	assert_int_equal(budget.band_now, 32 * GIB / 20);
	assert_int_equal(budget.band_flush, 2 * GIB);
	assert_null(budget.missing);
}

/* Watermarks are in MemAvailable already: they lower the budget now only, and only beyond the reserve. */
static void test_watermark_and_parked_pages(void **state)
{
	struct model model = model_sampled(40 * GIB, 110 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	model.first.watermark = 6 * GIB;
	model.first.percpu = GIB;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget.now, 35 * GIB);
	assert_int_equal(budget.flush, 107 * GIB);
	model.first.watermark = 3 * GIB;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget.now, 37 * GIB);
}

static void test_flush_never_takes_away(void **state)
{
	struct model model = model_sampled(100 * GIB, 98 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget.now, 96 * GIB);
	assert_int_equal(budget.flush, 96 * GIB);
}

static void test_given_is_final(void **state)
{
	struct model model = model_sampled(40 * GIB, 110 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	options.budget = GIB + GIB / 4;
	options.band = 0;
	options.reserve = 8 * GIB;
	model.pool = ST_POOL_DISCRETE;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget.now, GIB + GIB / 4);
	assert_int_equal(budget.flush, budget.now);
	assert_int_equal(budget.band_flush, 0);
}

static void test_projected(void **state)
{
	struct model model = model_sampled(8 * GIB, 12 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	options.pool = 120 * GIB;
	options.uma = true;
	model.pool = ST_POOL_DISCRETE;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget.now, 116 * GIB);
	assert_int_equal(budget.flush, 116 * GIB);
}

/* No sample, half a sample, a machine with two pools: no budget, and the missing input has a name. */
static void test_unknown_inputs(void **state)
{
	struct model model = model_sampled(ST_UNKNOWN, 110 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	budget_find(&model, &options, &budget);
	assert_non_null(strstr(budget.missing, "--budget"));
	model = model_sampled(1, ST_UNKNOWN);
	budget_find(&model, &options, &budget);
	assert_non_null(budget.missing);
	model = model_sampled(40 * GIB, 110 * GIB);
	model.samples = 0;
	budget_find(&model, &options, &budget);
	assert_non_null(budget.missing);
	assert_int_equal(budget_judge(&budget, range_of(0)).verdict, VERDICT_CANNOT_TELL);
	assert_ptr_equal(budget_judge(&budget, range_of(0)).missing, budget.missing);
	model = model_sampled(40 * GIB, 110 * GIB);
	model.pool = ST_POOL_DISCRETE;
	budget_find(&model, &options, &budget);
	assert_non_null(strstr(budget.missing, "--uma"));
}

static void assert_verdict(const struct budget *budget, uint64_t lo, uint64_t hi, enum verdict expected)
{
	struct judgement judgement = budget_judge(budget, (struct range){lo, hi});

	assert_string_equal(verdict_names[judgement.verdict], verdict_names[expected]);
	assert_int_equal(judgement.missing != NULL, expected == VERDICT_CANNOT_TELL);
}

/* Bn = 50, Bf = 100, band = 2 GiB: each boundary from both sides; the upper end decides what fits. */
static void test_boundaries(void **state)
{
	struct budget b = budget_of(50 * GIB, 100 * GIB, 2 * GIB);

	(void)state;
	assert_verdict(&b, 0, 0, VERDICT_FITS);
	assert_verdict(&b, 48 * GIB, 48 * GIB, VERDICT_FITS);
	assert_verdict(&b, 0, 48 * GIB, VERDICT_FITS);
	assert_verdict(&b, 48 * GIB + 1, 48 * GIB + 1, VERDICT_AFTER_FLUSH);
	assert_verdict(&b, 0, 48 * GIB + 1, VERDICT_AFTER_FLUSH);
	assert_verdict(&b, 98 * GIB, 98 * GIB, VERDICT_AFTER_FLUSH);
	assert_verdict(&b, 98 * GIB + 1, 98 * GIB + 1, VERDICT_TIGHT);
	assert_verdict(&b, 100 * GIB, 100 * GIB, VERDICT_TIGHT);
	assert_verdict(&b, 100 * GIB, 100 * GIB + 1, VERDICT_CANNOT_TELL);
	assert_verdict(&b, 100 * GIB + 1, 100 * GIB + 1, VERDICT_DOES_NOT_FIT);
	assert_verdict(&b, 100 * GIB + 1, UINT64_MAX, VERDICT_DOES_NOT_FIT);
	assert_verdict(&b, 10 * GIB, UINT64_MAX, VERDICT_CANNOT_TELL);
}

static void test_band_larger_than_budget(void **state)
{
	struct budget b = budget_of(GIB, GIB, 2 * GIB);

	(void)state;
	assert_verdict(&b, 0, 0, VERDICT_TIGHT);
	assert_verdict(&b, GIB + 1, GIB + 1, VERDICT_DOES_NOT_FIT);
}

/* What was never seen never fits; what is too much already does not fit, whatever else is missing. */
static void test_unseen_needs(void **state)
{
	struct model model = model_sampled(40 * GIB, 110 * GIB);
	struct budget b = budget_of(50 * GIB, 100 * GIB, 2 * GIB);

	(void)state;
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_FITS);
	model.needed.lower_bound = true;
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_CANNOT_TELL);
	assert_int_equal(budget_verdict(&b, &model, range_of(101 * GIB)).verdict, VERDICT_DOES_NOT_FIT);
	/* A refused request is the need itself, but in a load more would have followed. */
	model.needed.request = GIB;
	model.needed.died_in = PHASE_START;
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_FITS);
	model.load.present = true;
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_CANNOT_TELL);
	model.needed.died_in = PHASE_SETTLE;
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_CANNOT_TELL);
	model.needed.died_in = PHASE_STEPS;
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_FITS);
	model.needed.lower_bound = false;
	b.blind = "something";
	assert_int_equal(budget_verdict(&b, &model, range_of(GIB)).verdict, VERDICT_CANNOT_TELL);
	assert_string_equal(budget_verdict(&b, &model, range_of(GIB)).missing, "something");
}

static void test_lost_events_blind(void **state)
{
	struct model model = model_sampled(40 * GIB, 110 * GIB);
	struct options options = options_none();
	struct budget budget;

	(void)state;
	model.lost_events = 1;
	budget_find(&model, &options, &budget);
	assert_int_equal(budget_verdict(&budget, &model, range_of(GIB)).verdict, VERDICT_CANNOT_TELL);
}

/* A cgroup's limit binds host memory, never device bytes. */
static void test_cgroup_binds_host_only(void **state)
{
	struct model model = model_sampled(40 * GIB, 110 * GIB);
	struct options options = options_none();
	struct layers *peak = &model.moments[MOMENT_DEMAND_PEAK].layers;
	struct budget budget;

	(void)state;
	model.first.cgroup_limit = 2 * GIB;
	model.host_seen = true;
	peak->device = 30 * GIB;
	peak->host = (struct change){(int64_t)GIB, (int64_t)GIB};
	budget_find(&model, &options, &budget);
	assert_int_equal(budget_verdict(&budget, &model, range_of(31 * GIB)).verdict, VERDICT_FITS);
	peak->anon = range_of(GIB + 1);
	assert_int_equal(budget_verdict(&budget, &model, range_of(31 * GIB)).verdict, VERDICT_DOES_NOT_FIT);
	/* A load that died would have made more of them. */
	peak->anon = range_of(0);
	model.needed.anon = range_of(GIB + 1);
	assert_int_equal(budget_verdict(&budget, &model, range_of(31 * GIB)).verdict, VERDICT_DOES_NOT_FIT);
	model.needed.demand = range_of(31 * GIB);
	assert_true(budget_limit_binds(&budget, &model));
	model.needed.demand = range_of(120 * GIB);
	assert_false(budget_limit_binds(&budget, &model));
}

static void test_exit_status(void **state)
{
	(void)state;
	assert_int_equal(verdict_status(VERDICT_FITS), COMMAND_OK);
	assert_int_equal(verdict_status(VERDICT_AFTER_FLUSH), COMMAND_OK);
	assert_int_equal(verdict_status(VERDICT_TIGHT), COMMAND_OK);
	assert_int_equal(verdict_status(VERDICT_CANNOT_TELL), COMMAND_CANNOT_TELL);
	assert_int_equal(verdict_status(VERDICT_DOES_NOT_FIT), COMMAND_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_watermark_and_parked_pages),
		cmocka_unit_test(test_flush_never_takes_away),
		cmocka_unit_test(test_given_is_final),
		cmocka_unit_test(test_projected),
		cmocka_unit_test(test_unknown_inputs),
		cmocka_unit_test(test_boundaries),
		cmocka_unit_test(test_band_larger_than_budget),
		cmocka_unit_test(test_unseen_needs),
		cmocka_unit_test(test_lost_events_blind),
		cmocka_unit_test(test_cgroup_binds_host_only),
		cmocka_unit_test(test_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
