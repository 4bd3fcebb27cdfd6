/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a file, touches none of it, and stays a while: what is cached of it must be told without the program's help.
 *
 *	map_only FILE MILLISECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct timespec pause;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) ||
	    mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
		fprintf(stderr, "usage: map_only FILE MILLISECONDS\n");
		return 2;
	}
	pause = (struct timespec){atol(argv[2]) / 1000, atol(argv[2]) % 1000 * 1000000};
	nanosleep(&pause, NULL);
	return 0;
}
