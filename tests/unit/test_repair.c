/* SPDX-License-Identifier: Apache-2.0 */
/* Protects the choice among repairs: only those that are true for the loader and version and that help, best first. */
#include "run.h"

#include "analyzer/repair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

struct made {
	struct run run;
	struct weight_file file;
	struct loader loader;
	struct repairs repairs;
};

static struct outcome outcome_of(uint64_t bytes)
{
	return (struct outcome){true, range_of(bytes), range_of(bytes), range_of(bytes)};
}

/* safetensors copied 1 GiB straight out of a private writable mapping. */
static void made_init(struct made *made, const char *version)
{
	struct model *model = &made->run.model;

	memset(made, 0, sizeof(*made));
	made->run = run_init(8 * GIB, 8 * GIB, 2 * GIB);
	run_load(&made->run, GIB, 0);
	model->load.modelled = model->load.resident = range_of(2 * GIB);
	model->load.anon = range_of(GIB);
	model->load.threads = 1;
	model->load.outcomes[EFFECT_READONLY] = outcome_of(GIB);
	model->load.outcomes[EFFECT_SLOTS] = outcome_of(GIB + 16 * MIB);
	made->file = (struct weight_file){.path = "/m/w.safetensors", .format = ST_FILE_SAFETENSORS};
	made->loader = (struct loader){.parts = {{"safetensors", "safetensors", version, false, GIB, 0}},
	                               .part_count = 1,
	                               .bytes = GIB,
	                               .file_count = 1,
	                               .mapped = GIB,
	                               .copied[COPY_PRIVATE_WRITABLE] = GIB};
	model->files = &made->file;
	model->file_count = 1;
	model->loaders = &made->loader;
	model->loader_count = 1;
}

static void assert_repairs(struct made *made, const char *first, const char *second)
{
	repairs_find(&made->run.model, &made->repairs);
	assert_int_equal(made->repairs.count, !!first + !!second);
	if (first)
		assert_string_equal(made->repairs.found[0].row->id, first);
	if (second)
		assert_string_equal(made->repairs.found[1].row->id, second);
}

static void test_by_version(void **state)
{
	struct made made;

	(void)state;
	made_init(&made, "0.7.0");
	assert_repairs(&made, "relief-readonly", "safetensors-0.8");
	assert_int_equal(made.repairs.found[1].relief.lo, GIB - 16 * MIB);
	made_init(&made, "0.10.0");
	assert_repairs(&made, "relief-readonly", "safetensors-get-tensor");
	/* What is not known is neither old nor new. */
	made_init(&made, NULL);
	assert_repairs(&made, "relief-readonly", NULL);
}

/* Somebody else copied out of the mapping that safetensors made: no version of safetensors changes that. */
static void test_not_its_copies(void **state)
{
	struct made made;

	(void)state;
	made_init(&made, "0.7.0");
	made.loader.parts[0].direct = 0;
	assert_repairs(&made, "relief-readonly", NULL);
}

/* Most saved first; as much: what needs no change of the program. */
static void test_order(void **state)
{
	struct made made;

	(void)state;
	made_init(&made, "0.7.0");
	made.run.model.load.outcomes[EFFECT_SLOTS] = outcome_of(GIB - 16 * MIB);
	assert_repairs(&made, "safetensors-0.8", "relief-readonly");
	made.run.model.load.outcomes[EFFECT_SLOTS] = outcome_of(GIB);
	assert_repairs(&made, "relief-readonly", "safetensors-0.8");
}

static void test_no_help(void **state)
{
	struct made made;

	(void)state;
	made_init(&made, "0.7.0");
	made.run.model.load.outcomes[EFFECT_SLOTS] = outcome_of(2 * GIB);
	made.run.model.load.outcomes[EFFECT_READONLY].valid = false;
	assert_repairs(&made, NULL, NULL);
	assert_null(repairs_best(&made.repairs));
}

/* Rung 1b is the best of them, end by end. */
static void test_rung(void **state)
{
	struct made made;

	(void)state;
	made_init(&made, "0.7.0");
	made.run.model.moments[MOMENT_DEMAND_PEAK].phase = PHASE_LOAD;
	made.run.options.budget = GIB + 512 * MIB;
	climb(&made.run);
	assert_string_equal(next_of(&made.run), "1b");
	assert_int_equal(made.run.ladder.rungs[RUNG_LOAD].relief.lo, GIB);
	assert_int_equal(made.run.ladder.rungs[RUNG_LOAD].needed.hi, GIB);
}

/* The command is the run's own, whatever is in it, and there is one where nobody recorded it. */
static void test_command(void **state)
{
	struct info infos[] = {{"cmdline", "python 'my train.py' %s%n"},
	                       {"env.LD_PRELOAD", "/l/libsparktrace.so"}};
	struct made made;
	char *command;

	(void)state;
	made_init(&made, "0.7.0");
	assert_repairs(&made, "relief-readonly", "safetensors-0.8");
	command = repair_command(&made.run.model, &made.repairs.found[0]);
	assert_string_equal(command, "SPARKTRACE_RELIEF=readonly <your command>");
	free(command);
	made.run.model.infos = infos;
	made.run.model.info_count = 2;
	command = repair_command(&made.run.model, &made.repairs.found[0]);
	assert_string_equal(command, "SPARKTRACE_RELIEF=readonly LD_PRELOAD=/l/libsparktrace.so "
	                             "python 'my train.py' %s%n");
	free(command);
	command = repair_command(&made.run.model, &made.repairs.found[1]);
	assert_string_equal(command, "pip install --upgrade 'safetensors>=0.8.0'");
	free(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_version), cmocka_unit_test(test_not_its_copies),
		cmocka_unit_test(test_order),      cmocka_unit_test(test_no_help),
		cmocka_unit_test(test_rung),       cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
