/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects against traces that no program would make: input is untrusted. Records of all kinds with fields drawn from
 * few values, so that they meet (the same addresses, files, handles), and from odd ones. Under the sanitizers
 * this finds what the other tests would not think of; here it checks that intervals stay intervals.
 */
#include <analyzer/event.h>
#include "scene.h"

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % bound;
}

/* Mostly sizes and addresses of a small world, now and then something absurd. */
static uint64_t random_field(const struct event_field *field)
{
	static const uint64_t odd[] = {
		0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_C(1) << 47, 4095};
	uint64_t dice = random_below(40);

	if (dice == 0)
		return odd[random_below(7)];
	if (field->type->form == EVENT_FORM_WORD)
		return random_below(field->type->word_count + 1);
	if (!strcmp(field->name, "result") || !strcmp(field->name, "flags") || !strcmp(field->name, "async"))
		return dice < 30 ? 0 : random_below(4);
	if (!strcmp(field->name, "file") || !strcmp(field->name, "stack") || !strcmp(field->name, "id") ||
	    !strcmp(field->name, "handle") || !strcmp(field->name, "pool") || !strcmp(field->name, "stream"))
		return 1 + random_below(5);
	if (field->type->form == EVENT_FORM_HEX)
		return (1 + random_below(3)) * GIB + random_below(16) * 16 * MIB;
	return random_below(16) * 16 * MIB + (dice < 10 ? random_below(5000) : 0);
}

static void play_random(struct scene *scene)
{
	const struct event_kind *kind;
	uint64_t words[128], tail[4];
	struct st_record *record = (struct st_record *)words;

	do
		kind = &event_kinds[random_below(event_kind_count)];
	while (kind->number == ST_KIND_block || kind->number == ST_KIND_trailer ||
	       kind->number == ST_KIND_exit);
	*record = (struct st_record){.seq = record_seq(),
	                             .time = record_now.time,
	                             .kind = kind->number,
	                             .thread = (uint32_t)random_below(4),
	                             .words = kind->words};
	for (size_t i = 0; i < kind->field_count; i++)
		words[3 + i] = random_field(&kind->fields[i]);
	for (size_t i = 0; i < 4; i++)
		tail[i] = (1 + random_below(3)) * GIB + random_below(64) * 4 * MIB;
	if (kind->tail == EVENT_TAIL_TEXT)
		memcpy(tail, "step\0load\0name=value", 20);
	play(scene, kind->tail == EVENT_TAIL_NONE ? record : record_tail(record, tail, random_below(5) * 8));
}

static void assert_ordered(struct range range)
{
	assert_true(range.lo <= range.hi);
}

static void check_at(const struct residency_at *at, uint64_t size)
{
	assert_ordered(at->on_device);
	assert_ordered(at->anon);
	assert_ordered(at->cached);
	assert_ordered(at->reclaimable);
	assert_true(at->on_device.hi <= size);
}

static void check_moment(const struct moment *moment)
{
	assert_ordered(moment->demand);
	assert_ordered(moment->modelled);
	assert_ordered(moment->resident);
	assert_ordered(moment->on_device);
	assert_ordered(moment->reclaimable);
	assert_ordered(moment->layers.anon);
	assert_ordered(moment->layers.weight_cache);
	assert_true(moment->layers.host.lo <= moment->layers.host.hi);
}

static void check_model(const struct model *model)
{
	for (int i = 0; i < MOMENT_COUNT; i++)
		if (model->moments[i].valid)
			check_moment(&model->moments[i]);
	for (size_t i = 0; i < model->file_count; i++) {
		check_at(&model->files[i].at_peak, model->files[i].payload);
		check_at(&model->files[i].at_settled, model->files[i].payload);
		check_at(&model->files[i].at_end, model->files[i].payload);
		assert_true(model->files[i].loaded.lo <= model->files[i].loaded.hi);
		assert_true(model->files[i].loaded.hi <= model->files[i].payload);
	}
	for (size_t i = 0; i < model->tensor_count; i++)
		check_at(&model->tensors[i].at_peak, model->tensors[i].size);
	assert_ordered(model->needed.demand);
	assert_ordered(model->needed.modelled);
	assert_ordered(model->load.remaining);
	assert_ordered(model->load.repaired);
	assert_true(model->needed.demand.hi >= model->moments[MOMENT_DEMAND_PEAK].demand.hi);
}

static void random_run(struct scene *scene, uint64_t seed)
{
	random_state = seed * 0x9E3779B97F4A7C15u;
	for (uint64_t id = 1; id <= 3; id++) {
		play(scene, RECORD_FILE(id, "/m/x-00001-of-00004.safetensors", 256 * MIB));
		play(scene, RECORD_TENSOR(id, "a", 0, 64 * MIB));
		play(scene, RECORD_TENSOR(id, "b", 64 * MIB, 128 * MIB));
	}
	for (unsigned i = 0; i < 4000; i++)
		play_random(scene);
	if (seed % 2)
		EXIT(seed % 4);
	check_model(scene_model(scene, seed % 3));
}

static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct scene **scene = (struct scene **)state;

		random_run(*scene, seed);
		scene_down(state);
		assert_int_equal(scene_up(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_random)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
