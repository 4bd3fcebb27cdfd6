/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the name of the loader: who decides is the outermost one that is known, its version is that of its
 * metadata or unknown, and whatever stands in a trace, tables stay small.
 */
#include "scene.h"

#include <analyzer/touches.h>

#define MAPPED (100 * GIB)
#define DEVICE (200 * GIB)
#define SITE   "/v/lib/python3.11/site-packages/"

enum { TRANSFORMERS = 1, SAFETENSORS, PEFT, TORCH, USER, THREADING };

static void play_text(struct scene *scene, const struct st_record *record, const char *text)
{
	play(scene, record_tail(record, text, strlen(text)));
}

static void play_package(struct scene *scene, const char *text)
{
	play_text(scene, RECORD(package), text);
}

static void play_codes(struct scene *scene)
{
	static const char *const codes[] = {
		[TRANSFORMERS] = "PreTrainedModel.from_pretrained " SITE "transformers/modeling_utils.py",
		[SAFETENSORS] = "load_file " SITE "safetensors/torch.py",
		[PEFT] = "PeftModel.from_pretrained " SITE "peft/peft_model.py",
		[TORCH] = "load " SITE "torch/serialization.py",
		[USER] = "main /home/u/train.py",
		[THREADING] = "Thread.run /usr/lib/python3.11/threading.py",
	};

	for (uint64_t i = TRANSFORMERS; i <= THREADING; i++)
		play_text(scene, RECORD(code, .id = i, .line = 1), codes[i]);
}

/* A stack of Python frames, innermost first: line 100 + code each. */
static void play_stack(struct scene *scene, uint64_t id, const uint64_t *codes, size_t count)
{
	uint64_t frames[8], address = id << 12;

	for (size_t i = 0; i < count; i++)
		frames[i] = codes[i] << 32 | (100 + codes[i]);
	play(scene, record_tail(RECORD(stack, .id = id), &address, 8));
	play(scene, record_tail(RECORD(frames, .id = id), frames, count * 8));
}

#define STACK(scene, id, ...) \
	play_stack(scene, id, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void play_packages(struct scene *scene)
{
	play_package(scene, "transformers 5.24.0 " SITE "transformers");
	play_package(scene, "safetensors 0.8.0 " SITE "safetensors");
	play_package(scene, "peft 0.21.2 " SITE "peft");
	play_package(scene, "torch 2.15.0 " SITE "torch");
}

/* One file of 1 GiB, mapped from stack 1 and copied from stack 2. */
static const struct loader *load_once(struct scene *scene)
{
	const struct model *model;

	play(scene, RECORD(process, .pid = 5, .pool = ST_POOL_SIMULATED, .page_size = 4096));
	play_file(scene, 1, "/m/w.safetensors", GIB);
	play_tensor(scene, 1, "t", 0, GIB);
	MAP(MAPPED, GIB, PROT_RW, .file = 1, .stack = 1);
	ALLOC(DEVICE, GIB);
	COPY(DEVICE, MAPPED, GIB, .stack = 2);
	EXIT(0);
	model = scene_model(scene, true);
	assert_int_equal(model->loader_count, 1);
	assert_int_equal(model->files[0].loader, 0);
	return &model->loaders[0];
}

static void assert_part(const struct loader *loader, unsigned i, const char *name, const char *version)
{
	assert_true(i < loader->part_count);
	assert_string_equal(loader->parts[i].name, name);
	if (version)
		assert_string_equal(loader->parts[i].version, version);
	else
		assert_null(loader->parts[i].version);
}

/* from_pretrained() of the main thread maps, a worker copies: one loader, by the line that maps. */
static void test_outermost_decides(void **state)
{
	const struct loader *loader;

	play_packages(*state);
	play_codes(*state);
	STACK(*state, 1, SAFETENSORS, TRANSFORMERS, USER);
	STACK(*state, 2, TORCH, TRANSFORMERS, THREADING);
	loader = load_once(*state);
	assert_int_equal(loader->part_count, 3);
	assert_part(loader, 0, "transformers", "5.24.0");
	assert_part(loader, 1, "safetensors", "0.8.0");
	assert_part(loader, 2, "torch", "2.15.0");
	assert_string_equal(loader->function, "PreTrainedModel.from_pretrained");
	assert_int_equal(loader->line, 100 + TRANSFORMERS);
	assert_string_equal(loader->caller, "main");
	assert_int_equal(loader->caller_line, 100 + USER);
	/* safetensors mapped, but did not copy: an upgrade of it would change nothing. */
	assert_int_equal(loader->parts[0].direct, GIB);
	assert_int_equal(loader->parts[1].direct, 0);
}

static void test_wrapper_is_outermost(void **state)
{
	const struct loader *loader;

	play_packages(*state);
	play_codes(*state);
	STACK(*state, 1, SAFETENSORS, TRANSFORMERS, PEFT, USER);
	STACK(*state, 2, TORCH, TRANSFORMERS, PEFT, USER);
	loader = load_once(*state);
	assert_part(loader, 0, "peft", "0.21.2");
	assert_part(loader, 1, "transformers", "5.24.0");
}

/* torch is the loader only where there is nothing else, also when it is outermost. */
static void test_base_gives_way(void **state)
{
	const struct loader *loader;

	play_packages(*state);
	play_codes(*state);
	STACK(*state, 1, SAFETENSORS, TORCH, USER);
	STACK(*state, 2, TORCH, USER);
	loader = load_once(*state);
	assert_string_equal(loader->function, "load_file");
	assert_int_equal(loader->line, 100 + SAFETENSORS);
}

/* Without metadata a path is no proof of what was installed there, and no version is made up. */
static void test_no_metadata(void **state)
{
	const struct loader *loader;

	play_codes(*state);
	STACK(*state, 1, SAFETENSORS, TRANSFORMERS, USER);
	STACK(*state, 2, TORCH, TRANSFORMERS, USER);
	loader = load_once(*state);
	assert_int_equal(loader->part_count, 0);
}

static void test_native(void **state)
{
	struct scene *scene = *state;
	const struct loader *loader;
	uint64_t address = 0x2000;

	play_text(scene, RECORD(module, .start = 0x1000, .end = 0x9000), "/usr/lib/libllama.so.1");
	play_text(scene, RECORD(symbol, .address = 0x2000), "llama_model_load");
	play(scene, record_tail(RECORD(stack, .id = 1), &address, 8));
	play(scene, record_tail(RECORD(stack, .id = 2), &address, 8));
	loader = load_once(scene);
	assert_int_equal(loader->part_count, 1);
	assert_part(loader, 0, "llama.cpp", NULL);
	assert_string_equal(loader->function, "llama_model_load");
}

static void test_unknown_stack(void **state)
{
	const struct loader *loader = load_once(*state);

	assert_int_equal(loader->part_count, 0);
	assert_null(loader->function);
	assert_null(loader->caller);
}

/* Thousands of files from as many lines: as many ways as are kept, and every file has one of them. */
static void test_many_ways(void **state)
{
	struct scene *scene = *state;
	const struct model *model;

	play_packages(scene);
	play_codes(scene);
	for (uint64_t i = 1; i <= 1000; i++) {
		char path[40];
		uint64_t address = i << 12, frame = (uint64_t)SAFETENSORS << 32 | i;

		snprintf(path, sizeof(path), "/m/%u.safetensors", (unsigned)i);
		play_file(scene, i, path, MIB);
		play(scene, record_tail(RECORD(stack, .id = i), &address, 8));
		play(scene, record_tail(RECORD(frames, .id = i), &frame, 8));
		MAP(MAPPED + i * GIB, MIB, PROT_RW, .file = i, .stack = i);
	}
	EXIT(0);
	model = scene_model(scene, true);
	assert_in_range(model->loader_count, 2, 64);
	for (size_t i = 0; i < model->file_count; i++)
		assert_true(model->files[i].loader < model->loader_count);
}

static void test_touches_end(void **state)
{
	struct touches touches = {0};
	uint64_t dropped = 0;

	(void)state;
	for (uint32_t stack = 0; stack < 200000; stack++)
		dropped += !touches_get(&touches, 0, stack);
	assert_int_equal(touches.count + dropped, 200000);
	assert_int_equal(touches.dropped, dropped);
	assert_true(touches.count < 100000);
	touches_get(&touches, 0, 7)->opens++;
	touches_sort(&touches);
	for (size_t i = 1; i < touches.count; i++)
		assert_true(touches.touches[i - 1].stack < touches.touches[i].stack);
	assert_int_equal(touches.touches[7].opens, 1);
	touches_release(&touches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_outermost_decides),
		TEST(test_wrapper_is_outermost),
		TEST(test_base_gives_way),
		TEST(test_no_metadata),
		TEST(test_native),
		TEST(test_unknown_stack),
		TEST(test_many_ways),
		cmocka_unit_test(test_touches_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
