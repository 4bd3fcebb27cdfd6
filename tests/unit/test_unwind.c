/* SPDX-License-Identifier: Apache-2.0 */
/* Protects threads that are about to be cancelled: a walk with libunwind happens inside malloc, where none ever is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/shim/unwind.h"
#include "tests/unit/skip.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* Code made at run time: push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret. */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

typedef void function(void);

static void walk(void)
{
	uintptr_t found[64];
	struct walk walk = {.frame = found, .room = 64};

	libunwind_walk(&walk);
}

/* No table tells how to leave such code, so libunwind looks whether it may read what seems to lie on the stack. */
static void *walk_cancelled(void *made)
{
	pthread_cancel(pthread_self());
	((void (*)(function *))made)(walk);
	*(unsigned char *)made = 0;
	pthread_testcancel();
	return NULL;
}

static void a_walk_is_no_place_to_be_cancelled_at(void **state)
{
	unsigned char *made = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC,
	                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	void *end;

	(void)state;
#ifndef __x86_64__
	skip_because("the code is x86_64's");
#endif
	if (!libunwind_open())
		skip_because("no libunwind.so.8 here");
	assert_true(made != MAP_FAILED);
	memcpy(made, code, sizeof(code));
	assert_int_equal(pthread_create(&thread, NULL, walk_cancelled, made), 0);
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_int_equal(made[0], 0); /* it came back from the walk */
	assert_ptr_equal(end, PTHREAD_CANCELED);
	munmap(made, sizeof(code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_is_no_place_to_be_cancelled_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
