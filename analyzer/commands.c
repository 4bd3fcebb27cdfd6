/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stdio.h>

int complain(const char *name, const char *words)
{
	fprintf(stderr, "sparktrace-analyze: %s: %s\n", name, words);
	return COMMAND_BAD;
}
