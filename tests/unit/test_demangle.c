/* SPDX-License-Identifier: Apache-2.0 */
/* Protects: function names as people read them; odd names come through whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/unit/skip.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "analyzer/demangle.h"

static void assert_name(const char *name, const char *expected)
{
	char *text = demangle_name(name);

	assert_string_equal(text, expected);
	free(text);
}

static void test_plain_names(void **state)
{
	(void)state;
	assert_name("cuMemAlloc_v2", "cuMemAlloc_v2");
	assert_name("", "");
	assert_name("_", "_");
	assert_name("_Znonsense(", "_Znonsense(");
	assert_name("weird (name)", "weird (name)");
}

static void test_cxx_names(void **state)
{
	(void)state;
	if (!dlopen("libstdc++.so.6", RTLD_LAZY))
		skip_because("no libstdc++ to demangle with");
	assert_name("_ZN2at6native16copy_kernel_cudaERNS_14TensorIteratorEb", "at::native::copy_kernel_cuda");
	assert_name("_ZNK3foo3barEv", "foo::bar");
	assert_name("_ZN12_GLOBAL__N_13bazEi", "(anonymous namespace)::baz");
	assert_name("_ZN1AclEi", "A::operator()");
	assert_name("_Z3runPFvPvE", "run");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_cxx_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
