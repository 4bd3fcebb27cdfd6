/* SPDX-License-Identifier: Apache-2.0 */
/* Marks its phases through the public header, with the shim and without it. marks [FILE] */
#include <sparktrace/sparktrace.h>

#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	sparktrace_mark("before");
	if (argc > 1 && open(argv[1], O_RDONLY) < 0)
		return 1;
	sparktrace_mark("load");
	puts("marked");
	return 0;
}
