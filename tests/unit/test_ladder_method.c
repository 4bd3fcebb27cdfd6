/* SPDX-License-Identifier: Apache-2.0 */
/* Protects: rungs 3 and 4 by hand-computed figures, and that 4 comes last. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

#include "run.h"

#include <string.h>

static void test_full_to_lora(void **state)
{
	struct run run = run_init(100 * GIB, 100 * GIB, 120 * GIB);
	const struct rung_result *rung = &run.ladder.rungs[RUNG_METHOD];

	(void)state;
	run_load(&run, 20 * GIB, 120 * GIB);
	run.options.method = METHOD_FULL;
	run.options.optimizer_bytes = 100 * GIB;
	run.options.parameters = 10 * GIB;
	run.options.trainable_parameters = GIB;
	climb(&run);
	assert_int_equal(rung->state, RUNG_APPLIES);
	assert_int_equal(rung->relief.lo, 90 * GIB);
	assert_int_equal(rung->needed.hi, 30 * GIB);
	assert_int_equal(run.ladder.method.to, METHOD_LORA);
	assert_int_equal(run.ladder.method.half_step, 60 * GIB);
	assert_string_equal(next_of(&run), "3");

	run.options.trainable_parameters = ST_UNKNOWN;
	climb(&run);
	assert_int_equal(rung->state, RUNG_UNKNOWN);
	assert_int_equal(rung->relief.lo, 0);
	assert_int_equal(rung->relief.hi, 100 * GIB);
	assert_string_equal(next_of(&run), "3");
}

static void test_full_to_lora_fp32(void **state)
{
	struct run run = run_init(16 * GIB, 16 * GIB, 20 * GIB);
	struct tensor tensor = {.dtype = ST_DTYPE_F32, .size = 16 * GIB};

	(void)state;
	run_load(&run, 16 * GIB, 20 * GIB);
	run.model.tensors = &tensor;
	run.model.tensor_count = 1;
	run.options.method = METHOD_FULL;
	run.options.optimizer_bytes = 0;
	climb(&run);
	assert_int_equal(run.ladder.rungs[RUNG_METHOD].relief.lo, 8 * GIB);
}

static void test_lora_to_qlora(void **state)
{
	struct run run = run_init(16 * GIB, 16 * GIB, 20 * GIB);
	const struct rung_result *rung = &run.ladder.rungs[RUNG_METHOD];

	(void)state;
	run_load(&run, 16 * GIB, 20 * GIB);
	run.model.load.largest_tensor = GIB;
	run.options.method = METHOD_LORA;
	run.options.linear_parameters = 8 * GIB;
	run.options.quantised_bytes = 0.5;
	run.options.optimizer_bytes = 4 * GIB;
	climb(&run);
	assert_int_equal(rung->relief.lo, 10 * GIB);
	assert_int_equal(rung->relief.hi, 10 * GIB);
	run.options.quantised_bytes = 0;
	climb(&run);
	assert_true(rung->relief.lo < rung->relief.hi);
	assert_int_equal(rung->relief.lo, (uint64_t)(8 * GIB * (2 - 0.5625)) - 2 * GIB);
}

/* A QLoRA run that died: bf16 LoRA, whose relief is the quantiser's buffers, or nothing below. */
static void test_qlora(void **state)
{
	struct run run = run_init(16 * GIB, 16 * GIB, 20 * GIB);
	const struct rung_result *rung = &run.ladder.rungs[RUNG_METHOD];

	(void)state;
	run_load(&run, 4 * GIB, 20 * GIB);
	run.options.method = METHOD_QLORA;
	run.options.linear_parameters = GIB;
	run.options.quantised_bytes = 0.5;
	run.model.moments[MOMENT_DEMAND_PEAK].phase = PHASE_LOAD;
	run.model.load.device_other = 8 * GIB;
	climb(&run);
	assert_int_equal(rung->state, RUNG_UNKNOWN);
	assert_int_equal(rung->relief.hi, 8 * GIB - GIB - GIB / 2);
	assert_int_equal(rung->needed.hi, 20 * GIB + GIB + GIB / 2);
	assert_int_equal(run.ladder.method.to, METHOD_LORA);
	run.model.load.device_other = 0;
	climb(&run);
	assert_int_equal(rung->state, RUNG_NOT);
}

/* Layers are dequantised in the steps too: what was allocated there and is no optimizer state may be that. */
static void test_qlora_in_steps(void **state)
{
	struct run run = run_init(16 * GIB, 16 * GIB, 20 * GIB);
	const struct rung_result *rung = &run.ladder.rungs[RUNG_METHOD];

	(void)state;
	run_load(&run, 4 * GIB, 20 * GIB);
	run.options.method = METHOD_QLORA;
	run.options.linear_parameters = GIB;
	run.options.quantised_bytes = 0.5;
	run.options.optimizer_bytes = 6 * GIB;
	climb(&run);
	assert_int_equal(rung->state, RUNG_UNKNOWN);
	assert_int_equal(rung->relief.hi, 20 * GIB - 4 * GIB - 6 * GIB - GIB - GIB / 2);
	run.options.optimizer_bytes = 16 * GIB;
	climb(&run);
	assert_int_equal(rung->state, RUNG_NOT);
}

/* ceil(150 / (100 - 150 + 150)) = 2, each with 75 GiB. */
static void test_sparks(void **state)
{
	struct run run = too_big_case();

	(void)state;
	climb(&run);
	assert_int_equal(run.ladder.sparks.sparks, 2);
	assert_int_equal(run.ladder.rungs[RUNG_SPARKS].needed.hi, 75 * GIB);
	assert_true(fabs(run.ladder.sparks.model_share - 100.0 / 150) < 1e-9);
}

/* Weights that were seen, but not how much of them was on the device: another thing than none. */
static void test_sparks_bounded(void **state)
{
	struct run run = too_big_case();
	const struct rung_result *rung = &run.ladder.rungs[RUNG_SPARKS];

	(void)state;
	run.options.optimizer_bytes = 0;
	run.model.moments[MOMENT_SETTLED].on_device.lo = 0;
	climb(&run);
	assert_int_equal(rung->state, RUNG_UNKNOWN);
	assert_null(strstr(rung->missing, "none were seen"));
	run.model.moments[MOMENT_SETTLED].on_device.hi = 0;
	climb(&run);
	assert_non_null(strstr(rung->missing, "none were seen"));
}

/* Rung 4 comes when 3 has been tried or is proven not to help, not while it cannot be told. */
static void test_sparks_come_last(void **state)
{
	struct run run = too_big_case();

	(void)state;
	climb(&run);
	assert_string_equal(next_of(&run), "3");
	run.options.tried = 1u << RUNG_METHOD;
	climb(&run);
	assert_string_equal(next_of(&run), "4");
}

static void test_nothing_left(void **state)
{
	struct run run = too_big_case();

	(void)state;
	run.options.tried = 1u << RUNG_METHOD | 1u << RUNG_SPARKS;
	climb(&run);
	assert_string_equal(next_of(&run), "outside");
	assert_non_null(run.ladder.next_reason);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_to_lora),   cmocka_unit_test(test_full_to_lora_fp32),
		cmocka_unit_test(test_lora_to_qlora),  cmocka_unit_test(test_qlora),
		cmocka_unit_test(test_qlora_in_steps), cmocka_unit_test(test_sparks),
		cmocka_unit_test(test_sparks_bounded), cmocka_unit_test(test_sparks_come_last),
		cmocka_unit_test(test_nothing_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
