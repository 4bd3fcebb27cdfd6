/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects `--at`: what people may write for a moment, and that the pool shown is that of the moment, not of a record
 * more or less, whatever the order in which the recorder's own records stand in the trace.
 */
#include "scene.h"

#include <analyzer/model_snapshot.h>
#include <analyzer/when.h>
#include <errno.h>
#include <time.h>

#define DEVICE (200 * GIB)
#define MAPPED (100 * GIB)
#define SECOND UINT64_C(1000000000)

static void test_words(void **state)
{
	static const struct {
		const char *text;
		enum when_kind kind;
		uint64_t value;
	} rows[] = {
		{"12.5s", WHEN_SINCE, 12500000000},
		{"300ms", WHEN_SINCE, 300000000},
		{"2min", WHEN_SINCE, 120 * SECOND},
		{"14:03:07", WHEN_CLOCK, (14 * 3600 + 3 * 60 + 7) * SECOND},
		{"0:00", WHEN_CLOCK, 0},
		{"23:59:59.5", WHEN_CLOCK, 86399 * SECOND + SECOND / 2},
		{"peak", WHEN_WORD, WHEN_PEAK},
		{"load-peak", WHEN_WORD, WHEN_LOAD_PEAK},
		{"first-weight", WHEN_WORD, WHEN_FIRST_WEIGHT},
		{"end", WHEN_WORD, WHEN_END},
		{"settled", WHEN_WORD, WHEN_SETTLED},
		{"failure", WHEN_WORD, WHEN_FAILURE},
	};
	static const char *const wrong[] = {"",         "12",        "-1s",    "24:00",  "12:60",
	                                    "12:30:61", "12:30:nan", "12:30x", "peaks",  "12.5 sss",
	                                    "12:30:1x", ":30",       "12:",    "1:2:3:4"};
	struct when when;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (when_parse(rows[i].text, &when) || when.kind != rows[i].kind ||
		    when.value != rows[i].value)
			fail_msg("%s: %d, %llu", rows[i].text, when.kind, (unsigned long long)when.value);
	}
	when = (struct when){WHEN_NONE, 7};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (when_parse(wrong[i], &when) != -EINVAL || when.value != 7)
			fail_msg("\"%s\" is taken for a moment", wrong[i]);
}

/* As scene_model() of scene.h, of a trace that is read more than once. */
static const struct snapshot *at(struct scene *scene, const char *text)
{
	struct model_options options = {0};
	struct reader *reader;

	assert_int_equal(when_parse(text, &options.at), 0);
	model_free(scene->model);
	scene->model = NULL;
	assert_int_equal(reader_open(scene->path, &reader), 0);
	assert_int_equal(model_build(reader, &options, &scene->model), 0);
	reader_free(reader);
	assert_non_null(scene->model->at);
	return scene->model->at;
}

/*
 * From second 100 on, one record a second: a file, a mapping, 64 MiB of device memory, two copies of 32 MiB out of the
 * mapping, 16 MiB more, which are the first step, the mapping's end, a refused request, the program's end.
 */
static void play_run(struct scene *scene)
{
	record_now.time = 100 * SECOND;
	play_file(scene, 5, "/m/a.safetensors", 64 * MIB);
	play_tensor(scene, 5, "first", 0, 32 * MIB);
	play_tensor(scene, 5, "second", 32 * MIB, 32 * MIB);
	MAP(MAPPED, 64 * MIB, PROT_R, .file = 5, .stack = 3); /* 103 */
	ALLOC(DEVICE, 64 * MIB, .stack = 4);                  /* 104 */
	COPY(DEVICE, MAPPED, 32 * MIB);                       /* 105 */
	COPY(DEVICE + 32 * MIB, MAPPED + 32 * MIB, 32 * MIB); /* 106 */
	play(scene, RECORD(sync, .how = ST_SYNC_CONTEXT));    /* 107 */
	ALLOC(DEVICE + GIB, 16 * MIB, .stack = 6);            /* 108 */
	UNMAP(MAPPED, 64 * MIB);                              /* 109 */
	ALLOC(0, GIB, .result = 2, .stack = 7);               /* 110 */
	FREE(DEVICE + GIB);                                   /* 111 */
	EXIT(0);
	assert_int_equal(trace_finish(scene->trace, 0), 0);
}

static void test_times(void **state)
{
	struct scene *scene = *state;
	const struct snapshot *shown;

	play_run(scene);
	shown = at(scene, "5500ms"); /* the program's start is the first event: 100 s */
	assert_int_equal(shown->state, SNAPSHOT_SHOWN);
	assert_int_equal(shown->moment.time, 105 * SECOND + SECOND / 2);
	assert_int_equal(shown->moment.layers.device, 64 * MIB);
	assert_int_equal(shown->files[0].at.on_device.lo, 32 * MIB);
	assert_int_equal(shown->files[0].at.on_device.hi, 32 * MIB);
	assert_int_equal(shown->files[0].mapped, 64 * MIB);
	assert_int_equal(shown->mapping_count, 1);
	assert_int_equal(shown->mappings[0].bytes, 64 * MIB);
	assert_int_equal(shown->mappings[0].stack, 3);
	assert_string_equal(shown->event, "copy");
	assert_int_equal(shown->event_time, 105 * SECOND);
	assert_int_equal(shown->moment.tensor, 0);
	shown = at(scene, "8s"); /* that instant is part of it */
	assert_int_equal(shown->moment.layers.device, 80 * MIB);
	assert_int_equal(shown->block_count, 2);
	assert_int_equal(shown->blocks[0].bytes, 64 * MIB);
	assert_int_equal(shown->blocks[0].stack, 4);
	assert_int_equal(shown->blocks[1].stack, 6);
	shown = at(scene, "9.5s");
	assert_int_equal(shown->mapping_count, 0);
	assert_int_equal(shown->files[0].mapped, 0);
	assert_int_equal(shown->files[0].at.on_device.lo, 64 * MIB);
	assert_int_equal(at(scene, "1h")->state, SNAPSHOT_AFTER);
}

static void test_moments(void **state)
{
	struct scene *scene = *state;
	const struct snapshot *shown;

	play_run(scene);
	shown = at(scene, "first-weight");
	assert_int_equal(shown->state, SNAPSHOT_SHOWN);
	assert_int_equal(shown->moment.layers.device, 0);
	assert_false(shown->files[0].touched);
	shown = at(scene, "last-weight");
	assert_int_equal(shown->moment.time, 106 * SECOND);
	assert_int_equal(shown->files[0].at.on_device.lo, 64 * MIB);
	assert_int_equal(shown->block_count, 1);
	shown = at(scene, "failure");
	assert_int_equal(shown->moment.time, 110 * SECOND);
	assert_true(shown->moment.before);
	assert_int_equal(shown->moment.layers.device, 80 * MIB);
	assert_string_equal(shown->event, "device_alloc");
	assert_int_equal(shown->stack, 7);
	shown = at(scene, "peak");
	assert_int_equal(shown->moment.layers.device, 80 * MIB);
	shown = at(scene, "end");
	assert_int_equal(shown->moment.layers.device, 64 * MIB);
	assert_int_equal(shown->block_count, 1);
}

static void test_never(void **state)
{
	struct scene *scene = *state;

	record_now.time = 100 * SECOND;
	ALLOC(DEVICE, 64 * MIB);
	EXIT(0);
	assert_int_equal(trace_finish(scene->trace, 0), 0);
	assert_int_equal(at(scene, "failure")->state, SNAPSHOT_NEVER);
	assert_int_equal(at(scene, "first-weight")->state, SNAPSHOT_NEVER);
	assert_int_equal(at(scene, "end")->state, SNAPSHOT_SHOWN);
	/* The same of a time as of the moment it is. */
	assert_int_equal(at(scene, "0s")->moment.layers.device, 64 * MIB);
}

/* The time of day on the machine that recorded; an hour before the start is no time after the end. */
static void test_clock(void **state)
{
	struct scene *scene = *state;
	const struct snapshot *shown;
	const struct model *model;
	char text[40];
	struct tm tm;
	time_t second;

	play_run(scene);
	at(scene, "end");
	model = scene->model;
	second = (time_t)((int64_t)((model->realtime - model->monotonic + 106 * SECOND) / SECOND) +
	                  model->utc_offset);
	strftime(text, sizeof(text), "%H:%M:%S", gmtime_r(&second, &tm));
	shown = at(scene, text);
	assert_int_equal(shown->state, SNAPSHOT_SHOWN);
	assert_true(shown->moment.time > 105 * SECOND && shown->moment.time <= 106 * SECOND);
	assert_int_equal(shown->files[0].at.on_device.lo, 32 * MIB);
	second -= 3600;
	strftime(text, sizeof(text), "%H:%M:%S", gmtime_r(&second, &tm));
	assert_int_equal(at(scene, text)->state, SNAPSHOT_BEFORE);
	second += 7200;
	strftime(text, sizeof(text), "%H:%M:%S", gmtime_r(&second, &tm));
	assert_int_equal(at(scene, text)->state, SNAPSHOT_AFTER);
}

/* The recorder samples before it drains: its records of later stand in front of the program's. */
static void test_order_of_the_file(void **state)
{
	struct scene *scene = *state;
	const struct snapshot *shown;

	record_now.time = 200 * SECOND;
	play_sample(scene, GIB, GIB, MIB, 0);
	record_now.time = 100 * SECOND;
	ALLOC(DEVICE, 64 * MIB);
	record_now.time = 300 * SECOND;
	ALLOC(DEVICE + GIB, 64 * MIB);
	record_now.time = 250 * SECOND; /* another thread, which was slower to say it */
	ALLOC(DEVICE + 2 * GIB, 16 * MIB);
	EXIT(0);
	assert_int_equal(trace_finish(scene->trace, 0), 0);
	shown = at(scene, "50s");
	assert_int_equal(shown->moment.time, 150 * SECOND);
	assert_int_equal(shown->moment.layers.device, 64 * MIB);
	assert_int_equal(at(scene, "160s")->moment.layers.device, 80 * MIB);
	assert_int_equal(at(scene, "200s")->moment.layers.device, 144 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		TEST(test_times),
		TEST(test_moments),
		TEST(test_clock),
		TEST(test_never),
		TEST(test_order_of_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
