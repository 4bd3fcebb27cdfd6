/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects what stands between a program and its driver: that the table of owned entries leaves no entry out that
 * moves memory and gives each the name and version the driver knows it by; that dlsym and the resolver
 * replace addresses of the driver and nothing else; that a wrapper returns what the driver returned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shim/door.h"
#include "preload/shim/driver.h"

#ifdef __aarch64__
#define LIBM_VERSION "GLIBC_2.17"
#else
#define LIBM_VERSION "GLIBC_2.2.5"
#endif

static const struct row {
	const char *name, *base;
	int version;
	const char *twin;
	void *wrapper;
} rows[] = {
#define D(name, base, version, twin) {#name, #base, version, #twin, (void *)&name},
#define N(name, type)
#include "preload/shim/driver.def"
#undef N
#undef D
};

static const struct row *row_find(const char *name)
{
	for (size_t i = 0; i < DRIVER_OWNED; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* How the names begin of entries that may allocate, release, map, copy, set or wait, ... */
static const char *const families[] = {"cuMem",
                                       "cuArrayCreate",
                                       "cuArray3DCreate",
                                       "cuArrayDestroy",
                                       "cuMipmappedArrayC",
                                       "cuMipmappedArrayD",
                                       "cuIpc",
                                       "cuCtxCreate",
                                       "cuCtxDestroy",
                                       "cuCtxSynchronize",
                                       "cuDevicePrimaryCtxR",
                                       "cuDeviceGetDefaultMemPool",
                                       "cuDeviceGetMemPool",
                                       "cuDeviceSetMemPool",
                                       "cuStreamSynchronize",
                                       "cuStreamWaitEvent",
                                       "cuEventSynchronize",
                                       "cuImportExternalMem",
                                       "cuExternalMemory",
                                       "cuDestroyExternalMem",
                                       "cuInit",
                                       "cuGetProcAddress",
                                       NULL};

/* ... and of those among them that do none of it: questions, hints, rights, exports of what is ours. */
static const char *const harmless[] = {"cuMemAdvise",
                                       "cuMemBatchDecompress",
                                       "cuMemDiscard",
                                       "cuMemExportToShareableHandle",
                                       "cuMemGetAccess",
                                       "cuMemGetAddressRange",
                                       "cuMemGetAllocation",
                                       "cuMemGetHandleForAddressRange",
                                       "cuMemHostGet",
                                       "cuMemMapArray",
                                       "cuMemPoolExport",
                                       "cuMemPoolGetA",
                                       "cuMemPoolSetAccess",
                                       "cuMemPrefetch",
                                       "cuMemRangeGet",
                                       "cuMemSetAccess",
                                       "cuIpcGet",
                                       "cuIpcOpenEventHandle",
                                       "cuExternalMemoryGetMappedMipmappedArray",
                                       NULL};

static bool begins_with_one_of(const char *name, const char *const *list)
{
	while (*list && strncmp(name, *list, strlen(*list)) != 0)
		list++;
	return *list;
}

/* An entry of CUDA 2 with 32-bit sizes, superseded by an owned _v2. */
static bool is_narrow(const char *name)
{
	char wide[96];

	snprintf(wide, sizeof(wide), "%s_v2", name);
	return row_find(wide) != NULL;
}

static FILE *exports_open(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		fail_msg("%s: run the test from the root of the repository", path);
	return file;
}

static void every_entry_that_moves_memory_is_owned(void **state)
{
	FILE *file = exports_open("tests/simcuda/exports/driver.txt");
	char name[80];
	int seen = 0;

	(void)state;
	while (fscanf(file, "%79s", name) == 1) {
		if (!begins_with_one_of(name, families))
			continue;
		seen++;
		if (!row_find(name) && !begins_with_one_of(name, harmless) && !is_narrow(name))
			fail_msg("%s is in no row of driver.def and not on the list of harmless ones", name);
	}
	fclose(file);
	assert_in_range(seen, 150, 400);
}

static void every_row_is_an_export_of_the_driver(void **state)
{
	char found[DRIVER_OWNED] = "";
	FILE *file = exports_open("tests/simcuda/exports/driver.txt");
	char name[80];

	(void)state;
	while (fscanf(file, "%79s", name) == 1)
		if (row_find(name))
			found[row_find(name) - rows] = 1;
	fclose(file);
	for (size_t i = 0; i < DRIVER_OWNED; i++)
		if (!found[i])
			fail_msg("%s is no export of the driver", rows[i].name);
}

static void names_and_versions_are_those_of_the_resolver(void **state)
{
	char found[DRIVER_OWNED] = "";
	FILE *file = exports_open("tests/simcuda/exports/resolver.txt");
	char base[80], version[16], export[80];

	(void)state;
	while (fscanf(file, "%79s %15s %79s", base, version, export) == 3) {
		const struct row *row = row_find(export);

		if (!row)
			continue;
		assert_string_equal(row->base, base);
		assert_int_equal(row->version, strtol(version, NULL, 10));
		found[row - rows] = 1;
	}
	fclose(file);
	for (size_t i = 0; i < DRIVER_OWNED; i++)
		if (!found[i])
			fail_msg("the resolver does not know %s", rows[i].name);
}

static void twins_are_the_rows_with_a_suffix(void **state)
{
	(void)state;
	for (size_t i = 0; i < DRIVER_OWNED; i++) {
		const char *suffix = strstr(rows[i].name, "_pt");

		assert_string_equal(rows[i].twin, suffix ? suffix : "");
	}
}

static void owned_names_are_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < DRIVER_OWNED; i++)
		assert_true(driver_owns(rows[i].name));
	assert_false(driver_owns("cuMemAlloc"));
	assert_false(driver_owns("cuMemGetAddressRange_v2"));
	assert_false(driver_owns("cuGetExportTable"));
	assert_false(driver_owns("cudaMalloc"));
	assert_false(driver_owns("cu"));
	assert_false(driver_owns(""));
	assert_false(driver_owns(NULL));
}

/* A driver made of bytes: every real entry has an address of its own. */
static char entries[DRIVER_COUNT];

static void driver_pretend(void)
{
	for (size_t i = 0; i < DRIVER_COUNT; i++)
		atomic_store(&driver_address[i], &entries[i]);
}

static int driver_forget(void **state)
{
	(void)state;
	for (size_t i = 0; i < DRIVER_COUNT; i++)
		atomic_store(&driver_address[i], NULL);
	return 0;
}

static void addresses_of_the_driver_become_wrappers(void **state)
{
	int stranger;

	(void)state;
	driver_pretend();
	for (size_t i = 0; i < DRIVER_OWNED; i++)
		assert_ptr_equal(driver_wrapped(&entries[i]), rows[i].wrapper);
	for (size_t i = DRIVER_OWNED; i < DRIVER_COUNT; i++)
		assert_ptr_equal(driver_wrapped(&entries[i]), &entries[i]);
	assert_ptr_equal(driver_wrapped(&stranger), &stranger);
	assert_null(driver_wrapped(NULL));
}

static void dlsym_jumps_for_all_that_is_not_ours(void **state)
{
	void *libm = dlopen("libm.so.6", RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct door door = door_dlsym(libm, "cos", NULL, NULL);

	(void)state;
	assert_non_null(door.jump);
	assert_ptr_equal(door.jump, dlvsym(libc, "dlsym", "GLIBC_2.34"));
	assert_non_null(door_dlsym(libm, NULL, NULL, NULL).jump);
	assert_non_null(door_dlsym(RTLD_NEXT, "cuMemAlloc_v2", NULL, NULL).jump);
	assert_non_null(door_dlvsym(RTLD_NEXT, "cuMemAlloc_v2", "V", NULL).jump);
	assert_ptr_equal(door_dlvsym(libm, "cos", LIBM_VERSION, NULL).jump,
	                 dlvsym(libc, "dlvsym", "GLIBC_2.34"));
	dlclose(libm);
	dlclose(libc);
}

static void dlsym_answers_for_our_names(void **state)
{
	void *libm = dlopen("libm.so.6", RTLD_NOW);
	struct door door = door_dlsym(libm, "cuMemAlloc_v2", NULL, NULL);

	(void)state;
	assert_null(door.jump);
	assert_null(door.answer);
	assert_non_null(strstr(dlerror(), "undefined symbol: cuMemAlloc_v2"));
	assert_null(dlsym(libm, "cuMemAlloc_v2"));
	assert_ptr_equal(dlsym(libm, "cos"), dlvsym(libm, "cos", LIBM_VERSION));
	dlclose(libm);
}

static void dlsym_finds_no_driver_where_there_is_none(void **state)
{
	(void)state;
	assert_null(door_dlsym(RTLD_DEFAULT, "cuInit", NULL, (void *)&row_find).answer);
	assert_non_null(strstr(dlerror(), "undefined symbol: cuInit"));
}

/* A resolver whose addresses are no exports; it knows two versions of one name. */
static char old_entry, new_entry;

static CUresult resolver(const char *symbol, void **address, int version, cuuint64_t flags,
                         CUdriverProcAddressQueryResult *status)
{
	(void)flags;
	assert_null(status);
	if (strcmp(symbol, "cuMemAlloc") != 0)
		return CUDA_ERROR_NOT_FOUND;
	*address = version < 3020 ? &old_entry : &new_entry;
	return CUDA_SUCCESS;
}

static void addresses_that_are_no_exports_are_known_by_asking(void **state)
{
	(void)state;
	driver_pretend();
	atomic_store(&driver_address[DRIVER_cuGetProcAddress_v2], (void *)&resolver);
	assert_ptr_equal(driver_resolved(&new_entry, "cuMemAlloc", 0), (void *)&cuMemAlloc_v2);
	assert_ptr_equal(driver_resolved(&old_entry, "cuMemAlloc", 0), &old_entry);
	assert_ptr_equal(driver_resolved(&old_entry, "cuMemFree", 0), &old_entry);
	assert_ptr_equal(driver_resolved(&old_entry, "", 0), &old_entry);
	assert_ptr_equal(driver_resolved(&old_entry, NULL, 0), &old_entry);
	assert_ptr_equal(driver_resolved(&entries[DRIVER_cuMemFree_v2], "cuMemFree", 0),
	                 (void *)&cuMemFree_v2);
}

static void without_a_driver_wrappers_refuse(void **state)
{
	CUdeviceptr ptr = 7;
	size_t free_bytes = 8;

	(void)state;
	assert_int_equal(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuMemAlloc_v2(&ptr, 1), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuMemGetInfo_v2(&free_bytes, NULL), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuMemcpyBatchAsync(NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, NULL),
	                 CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(ptr, 7);
	assert_int_equal(free_bytes, 8);
}

static int calls;

static CUresult refuse(CUdeviceptr *ptr, size_t size)
{
	calls++;
	assert_int_equal(errno, 5);
	assert_int_equal(size, 4711);
	errno = 77;
	return ptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

static CUresult give(CUdeviceptr *ptr, size_t size)
{
	calls++;
	*ptr = size + 1;
	return CUDA_SUCCESS;
}

static void wrappers_return_what_the_driver_returned(void **state)
{
	CUdeviceptr ptr = 7;

	(void)state;
	calls = 0;
	atomic_store(&driver_address[DRIVER_cuMemAlloc_v2], (void *)&refuse);
	errno = 5;
	assert_int_equal(cuMemAlloc_v2(&ptr, 4711), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(errno, 77);
	assert_int_equal(ptr, 7);
	errno = 5;
	assert_int_equal(cuMemAlloc_v2(NULL, 4711), CUDA_ERROR_INVALID_VALUE);
	atomic_store(&driver_address[DRIVER_cuMemAlloc_v2], (void *)&give);
	assert_int_equal(cuMemAlloc_v2(&ptr, 99), CUDA_SUCCESS);
	assert_int_equal(ptr, 100);
	assert_int_equal(calls, 3);
}

/* Wrappers would start a recording; this is about what they return. Before the shim's own constructor. */
static __attribute__((constructor(101))) void settings_set(void)
{
	setenv("SPARKTRACE", "off", 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_that_moves_memory_is_owned),
		cmocka_unit_test(every_row_is_an_export_of_the_driver),
		cmocka_unit_test(names_and_versions_are_those_of_the_resolver),
		cmocka_unit_test(twins_are_the_rows_with_a_suffix),
		cmocka_unit_test(owned_names_are_known),
		cmocka_unit_test_teardown(addresses_of_the_driver_become_wrappers, driver_forget),
		cmocka_unit_test(dlsym_jumps_for_all_that_is_not_ours),
		cmocka_unit_test(dlsym_answers_for_our_names),
		cmocka_unit_test(dlsym_finds_no_driver_where_there_is_none),
		cmocka_unit_test_teardown(addresses_that_are_no_exports_are_known_by_asking, driver_forget),
		cmocka_unit_test(without_a_driver_wrappers_refuse),
		cmocka_unit_test_teardown(wrappers_return_what_the_driver_returned, driver_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
