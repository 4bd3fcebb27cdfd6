/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers its calls: opens WEIGHT_FILE, then maps n pages for n = 1, 2, ... and, when the n-th mmap has
 * returned, writes n (8 bytes) to descriptor FD. It runs until it is killed: whatever it wrote must be in
 * the trace or the ring.
 *
 *	count WEIGHT_FILE FD PAUSE_US
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec pause = {0, 0};
	int out;

	if (argc != 4 || open(argv[1], O_RDONLY) < 0)
		return 2;
	out = atoi(argv[2]);
	pause.tv_nsec = atol(argv[3]) * 1000;
	for (uint64_t n = 1;; n++) {
		size_t size = n * 4096;
		void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED || write(out, &n, sizeof(n)) != sizeof(n))
			return 1;
		munmap(p, size);
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
	}
}
