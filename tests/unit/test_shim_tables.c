/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the shim's small tables: what counts as a weight file, the remembered mappings under partial unmaps, the
 * large host blocks, and the lookup of the real functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "preload/shim/heap.h"
#include "preload/shim/maps.h"
#include "preload/shim/real.h"
#include "preload/shim/weights.h"

#define MIB (UINT64_C(1) << 20)

static const unsigned char safetensors[16] = {0x40, 0, 0, 0, 0, 0, 0, 0, '{', '"'};
static const unsigned char gguf[16] = "GGUF\3";
static const unsigned char zip[16] = "PK\3\4";
static const unsigned char pickle[16] = "\x80\2\x8a";
static const unsigned char plain[16] = "import sys; exec";

static void weights_are_told_by_name_and_magic(void **state)
{
	static const struct {
		const char *path;
		uint64_t size;
		const unsigned char *bytes;
		enum st_file_format format;
	} rows[] = {
		{"/m/model-00001-of-00002.safetensors", 1000, safetensors, ST_FILE_SAFETENSORS},
		{"model.SAFETENSORS", 1000, safetensors, ST_FILE_SAFETENSORS},
		{"m.safetensors", 64, safetensors, ST_FILE_OTHER}, /* header longer than the file */
		{"m.safetensors", 0, plain, ST_FILE_OTHER},
		{"m.gguf", 100, gguf, ST_FILE_GGUF},
		{"pytorch_model.bin", 100, zip, ST_FILE_TORCH},
		{"old.pt", 100, pickle, ST_FILE_TORCH},
		{"distutils-precedence.pth", 151, plain, ST_FILE_OTHER},
		{"firmware.bin", 16 * MIB - 1, plain, ST_FILE_OTHER},
		{"weights.bin", 16 * MIB, plain, ST_FILE_WEIGHTS},
		{"__0_0.distcp", 64 * MIB, zip, ST_FILE_WEIGHTS},
		{"4a1bd9c0", 64 * MIB, safetensors, ST_FILE_OTHER}, /* the blob behind a hub link */
		{".bin", 64 * MIB, zip, ST_FILE_OTHER},
		{"archive.zip", 64 * MIB, zip, ST_FILE_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(file_format(rows[i].path, rows[i].size, rows[i].bytes, 16), rows[i].format);
}

static void unreadable_bytes_leave_the_size(void **state)
{
	(void)state;
	assert_int_equal(file_format("m.safetensors", MIB, NULL, 0), ST_FILE_OTHER);
	assert_int_equal(file_format("m.safetensors", 16 * MIB, NULL, 0), ST_FILE_WEIGHTS);
}

static void add(uintptr_t start, uintptr_t end, uint64_t offset)
{
	struct mapping mapping = {start, end, offset, 7, true};

	assert_true(maps_add(&mapping));
}

static void expect(uintptr_t start, uintptr_t end, unsigned *cursor, uintptr_t part, uintptr_t part_end,
                   uint64_t offset)
{
	struct mapping mapping;

	assert_true(maps_next(start, end, cursor, &mapping));
	assert_int_equal(mapping.start, part);
	assert_int_equal(mapping.end, part_end);
	assert_int_equal(mapping.offset, offset);
	assert_int_equal(mapping.file, 7);
}

static void a_partial_unmap_leaves_the_rest(void **state)
{
	struct mapping mapping;
	unsigned cursor = 0;

	(void)state;
	maps_reset();
	add(0x10000, 0x20000, 0x4000);
	maps_cut(0x14000, 0x18000);
	assert_int_equal(maps_count(), 2);
	expect(0, UINTPTR_MAX, &cursor, 0x10000, 0x14000, 0x4000);
	expect(0, UINTPTR_MAX, &cursor, 0x18000, 0x20000, 0xc000);
	assert_false(maps_next(0, UINTPTR_MAX, &cursor, &mapping));
	maps_cut(0, 0x12000);
	maps_cut(0x1f000, 0x30000);
	cursor = 0; /* what stays behind a cut has moved to a slot of its own */
	expect(0, UINTPTR_MAX, &cursor, 0x18000, 0x1f000, 0xc000);
	expect(0, UINTPTR_MAX, &cursor, 0x12000, 0x14000, 0x6000);
	maps_cut(0, UINTPTR_MAX);
	assert_int_equal(maps_count(), 0);
}

static void a_look_sees_only_its_range(void **state)
{
	struct mapping mapping;
	unsigned cursor = 0;

	(void)state;
	maps_reset();
	add(0x10000, 0x20000, 0);
	add(0x20000, 0x30000, 0x100000);
	assert_false(maps_next(0x30000, 0x40000, &cursor, &mapping));
	cursor = 0;
	expect(0x18000, 0x21000, &cursor, 0x18000, 0x20000, 0x8000);
	expect(0x18000, 0x21000, &cursor, 0x20000, 0x21000, 0x100000);
	maps_cut(0, UINTPTR_MAX);
}

static void a_full_table_refuses(void **state)
{
	struct mapping mapping = {0x10000, 0x20000, 0, 7, false};
	unsigned count = 0;

	(void)state;
	maps_reset();
	while (count < 100000 && maps_add(&mapping))
		count++;
	assert_in_range(count, 1000, 99999);
	assert_int_equal(maps_count(), count);
	maps_reset();
	assert_int_equal(maps_count(), 0);
}

static void a_large_block_is_known_once(void **state)
{
	const char *block = (const char *)(uintptr_t)0x7f1234500010;

	(void)state;
	assert_false(heap_suspect(block));
	assert_false(heap_remove(block));
	assert_true(heap_add(block));
	assert_true(heap_suspect(block));
	assert_true(heap_suspect(block + 32)); /* the same MiB: the table decides */
	assert_false(heap_remove(block + 32));
	assert_true(heap_remove(block));
	assert_false(heap_remove(block));
	assert_false(heap_suspect(block));
}

static void many_blocks_come_and_go(void **state)
{
	const uintptr_t first = 0x7e0000000010, step = 3 * MIB;
	unsigned added = 0;

	(void)state;
	for (uintptr_t i = 0; i < 4000; i++)
		added += heap_add((const void *)(first + i * step));
	assert_in_range(added, 3900, 4000);
	for (uintptr_t i = 0; i < 4000; i++)
		added -= heap_remove((const void *)(first + i * step));
	assert_int_equal(added, 0);
	for (uintptr_t i = 0; i < 4000; i++)
		assert_false(heap_suspect((const void *)(first + i * step)));
}

/* Every row of real.def exists here; and it is what the loader itself would say. */
static void real_functions_are_those_of_libc(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	(void)state;
	assert_non_null(libc);
#define REAL(ret, name, ...) assert_non_null((void *)real()->name);
#include "preload/shim/real.def"
#undef REAL
	assert_ptr_equal((void *)real()->mmap, real()->dlsym(libc, "mmap"));
	assert_ptr_equal((void *)real()->posix_spawn, real()->dlsym(libc, "posix_spawn")); /* two versions */
	assert_ptr_equal((void *)real()->read, real()->dlsym(libc, "read"));
	assert_null(real_next("no_such_function_anywhere"));
	assert_null(real_object("libnowhere.so.1"));
	assert_non_null(real_own());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_told_by_name_and_magic),
		cmocka_unit_test(unreadable_bytes_leave_the_size),
		cmocka_unit_test(a_partial_unmap_leaves_the_rest),
		cmocka_unit_test(a_look_sees_only_its_range),
		cmocka_unit_test(a_full_table_refuses),
		cmocka_unit_test(a_large_block_is_known_once),
		cmocka_unit_test(many_blocks_come_and_go),
		cmocka_unit_test(real_functions_are_those_of_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
