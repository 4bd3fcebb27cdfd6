/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls wrapped functions before any constructor has run, the shim's included: from .preinit_array, then from a
 * constructor, then from main, then from a destructor and from atexit.
 *
 *	early FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *path = "/dev/null";

static void step(const char *name)
{
	char line[128], byte;
	void *large = calloc(1, 3 << 20),
	     *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(path, O_RDONLY);
	long got = read(fd, &byte, 1);

	snprintf(line, sizeof(line), "%s: %s %s %d %ld\n", name, large ? "block" : "NULL",
	         page != MAP_FAILED ? "page" : "failed", fd, got);
	if (write(1, line, strlen(line)) < 0)
		_exit(3);
	free(large);
	munmap(page, 4096);
	close(fd);
}

static void before_all(int argc, char **argv, char **environment)
{
	(void)environment;
	if (argc > 1)
		path = argv[1];
	step("preinit");
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **,
                                                                              char **) = before_all;

static __attribute__((constructor)) void construct(void)
{
	step("constructor");
}

static __attribute__((destructor)) void destruct(void)
{
	step("destructor");
}

static void at_exit(void)
{
	step("atexit");
}

int main(void)
{
	atexit(at_exit);
	step("main");
	return 7;
}
