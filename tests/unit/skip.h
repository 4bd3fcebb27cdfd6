/* SPDX-License-Identifier: Apache-2.0 */
/* A skip says why: scripts/run-tests shows the line beside the test's name. */
#ifndef SPARKTRACE_TESTS_UNIT_SKIP_H
#define SPARKTRACE_TESTS_UNIT_SKIP_H

#include <stdio.h>

#define skip_because(why)                    \
	do {                                 \
		printf("# skip: %s\n", why); \
		fflush(stdout);              \
		skip();                      \
	} while (0)

#endif
