/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protects the shim's view of libcufile: its names are known, nothing is replaced that is not the library's own, without
 * it lookups and calls fail as they would without us, and a handle stands for its file as long as it is registered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/shim/cufile.h"
#include "preload/shim/door.h"
#include "preload/shim/event.h"

static const struct row {
	const char *name;
	void *wrapper;
} rows[] = {
#define C(name) {#name, (void *)&name},
#include "preload/shim/cufile.def"
#undef C
};

static void owned_names_are_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < CUFILE_COUNT; i++) {
		assert_true(cufile_owns(rows[i].name));
		assert_true(cufile_is_wrapper(rows[i].wrapper));
	}
	assert_false(cufile_owns("cuFileWrite"));
	assert_false(cufile_owns("cuFile"));
	assert_false(cufile_owns("cuFileReadX"));
	assert_false(cufile_owns(""));
	assert_false(cufile_owns(NULL));
	assert_false(cufile_is_wrapper(NULL));
}

/* Functions of this program, of libc: their files are not called libcufile. */
static void addresses_of_others_stay(void **state)
{
	(void)state;
	assert_ptr_equal(cufile_wrapped("cuFileRead", (void *)&owned_names_are_known),
	                 &owned_names_are_known);
	assert_ptr_equal(cufile_wrapped("cuFileRead", (void *)&strlen), &strlen);
	assert_null(cufile_wrapped("cuFileRead", NULL));
	assert_false(cufile_inside((void *)&strlen));
	assert_false(cufile_inside(NULL));
}

static void lookups_fail_without_the_library(void **state)
{
	void *libm = dlopen("libm.so.6", RTLD_NOW);
	struct door door = door_dlsym(libm, "cuFileRead", NULL, NULL);

	(void)state;
	assert_null(door.jump);
	assert_null(door.answer);
	assert_non_null(strstr(dlerror(), "undefined symbol: cuFileRead"));
	assert_null(door_dlsym(RTLD_DEFAULT, "cuFileRead", NULL, (void *)&owned_names_are_known).answer);
	assert_non_null(door_dlsym(libm, "cuFileWrite", NULL, NULL).jump);
	assert_non_null(door_dlsym(RTLD_NEXT, "cuFileRead", NULL, NULL).jump);
	dlclose(libm);
}

static void calls_fail_without_the_library(void **state)
{
	struct cufile_description description = {.type = CUFILE_FD};
	cufile_handle handle = &description;
	size_t size = 1;
	off_t offset = 0;
	ssize_t got = 7;

	(void)state;
	assert_int_equal(cuFileHandleRegister(&handle, &description).error, CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileBufRegister(&size, 1, 0).error, CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileBufDeregister(&size).error, CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileRead(handle, &size, 1, 0, 0), -CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileReadv(handle, NULL, 0, 0, 0), -CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileReadAsync(handle, &size, &size, &offset, &offset, &got, NULL).error,
	                 CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileBatchIOSubmit(NULL, 0, NULL, 0).error, CUFILE_NOT_INITIALIZED);
	assert_int_equal(cuFileBatchIOGetStatus(NULL, 0, NULL, NULL, NULL).error, CUFILE_NOT_INITIALIZED);
	cuFileHandleDeregister(handle);
	assert_ptr_equal(handle, &description);
	assert_int_equal(got, 7);
}

/* A file that looks like weights: a header of 8 bytes, as long as it says. */
static int weights_make(char *path)
{
	static const char bytes[] = "\x08\0\0\0\0\0\0\0{\"a\": 1}";
	int fd = mkstemps(path, (int)strlen(strrchr(path, '.')));

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
	return fd;
}

static void handles_stand_for_their_files(void **state)
{
	char path[] = "/tmp/test_cufile_XXXXXX.safetensors", plain[] = "/tmp/test_cufile_XXXXXX.safe_sensors";
	int fd = weights_make(path), other = weights_make(plain);
	static char handles[1100]; /* more than there is room for: the rest stays unknown */
	struct file file = {.id = 4711};

	(void)state;
	assert_false(event_wanted()); /* a process begins with an empty table of files */
	assert_false(cufile_file(&handles[0], &file));
	assert_int_equal(file.id, 4711);
	for (size_t i = 0; i < sizeof(handles); i++)
		cufile_remember(&handles[i], fd);
	assert_true(cufile_file(&handles[0], &file));
	assert_int_equal(file.format, ST_FILE_SAFETENSORS);
	assert_int_equal(file.size, 16);
	assert_true(cufile_file(&handles[1023], &file));
	assert_false(cufile_file(&handles[1024], &file));
	cufile_forget(&handles[0]);
	assert_false(cufile_file(&handles[0], &file));
	cufile_remember(&handles[1024], fd);
	assert_true(cufile_file(&handles[1024], &file));
	cufile_forget(&handles[5]);
	cufile_remember(&handles[5], other); /* no weights: its reads are no business of ours */
	assert_false(cufile_file(&handles[5], &file));
	assert_false(cufile_file(NULL, &file));
	close(fd);
	close(other);
	unlink(path);
	unlink(plain);
}

/* Nothing shall be recorded here. Before the shim's own constructor. */
static __attribute__((constructor(101))) void settings_set(void)
{
	setenv("SPARKTRACE", "off", 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(owned_names_are_known),
		cmocka_unit_test(addresses_of_others_stay),
		cmocka_unit_test(lookups_fail_without_the_library),
		cmocka_unit_test(calls_fail_without_the_library),
		cmocka_unit_test(handles_stand_for_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
