/* SPDX-License-Identifier: Apache-2.0 */
/* What victims that load weights share: checking calls, the driver's start, tensors of a safetensors file. */
#ifndef VICTIM_H
#define VICTIM_H

#include <cuda.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Ends the program with 3 when a call that must succeed does not. */
#define MUST(call)                                                                              \
	do {                                                                                    \
		int must_rc = (int)(call);                                                      \
		if (must_rc != 0) {                                                             \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, must_rc); \
			exit(3);                                                                \
		}                                                                               \
	} while (0)

struct tensor {
	uint64_t offset, size; /* in the file */
};

struct weights {
	int fd;
	uint64_t size;
	struct tensor *tensors;
	size_t count;
};

static inline void device_open(void)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
}

/* Reads only the header. Every data_offsets pair of it is a tensor, relative to the header's end. */
static inline void weights_open(const char *path, struct weights *ret_weights)
{
	struct weights w = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	uint64_t length;
	struct stat status;
	char *text;

	if (w.fd < 0 || fstat(w.fd, &status) || pread(w.fd, &length, 8, 0) != 8) {
		perror(path);
		exit(2);
	}
	text = malloc(length + 1);
	MUST(pread(w.fd, text, length, 8) != (ssize_t)length);
	text[length] = '\0';
	w.size = (uint64_t)status.st_size;
	w.tensors = malloc((length / 16 + 1) * sizeof(*w.tensors));
	for (char *at = text; (at = strstr(at, "\"data_offsets\":["));) {
		uint64_t first = strtoull(at + 16, &at, 10), end = strtoull(at + 1, &at, 10);

		w.tensors[w.count++] = (struct tensor){8 + length + first, end - first};
	}
	free(text);
	*ret_weights = w;
}

/* --hold SECONDS as the last two arguments: stay with what is held. Removes them from the arguments. */
static inline double hold_option(int *argc, char **argv)
{
	if (*argc < 3 || strcmp(argv[*argc - 2], "--hold") != 0)
		return 0;
	*argc -= 2;
	return atof(argv[*argc + 1]);
}

static inline void hold(double seconds)
{
	struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	fflush(stdout);
	nanosleep(&time, NULL);
}

#endif
