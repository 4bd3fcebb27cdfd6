/* SPDX-License-Identifier: Apache-2.0 */
/* A baseline in a folder of its own, in which nothing else may be left. */
#ifndef SPARKTRACE_TEST_BASELINE_FILE_H
#define SPARKTRACE_TEST_BASELINE_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[200], path[300];

static inline int folder_up(void **state)
{
	const char *parent = getenv("T");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/baseline.XXXXXX", parent ? parent : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/b.json", folder);
	return 0;
}

static inline int folder_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

#endif
