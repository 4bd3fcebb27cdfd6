/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tight loops whose cost scripts/bench compares with and without the shim.
 *
 *	loops [-s] [-t WEIGHT_FILE] [-n ROUNDS] [-b BATCHES] mmap | malloc | device | idle | load FILE
 *
 * Prints ns a round over the batches: median, lower quartile, least. With -t the weight file is opened
 * first, which is what starts a recording. `device` is cudaMalloc + cudaFree of the runtime found by
 * soname; a batch of `load` is a whole load (map, touch each page, unmap), a round of `idle` one ms of
 * sleep. Before several batches an eleventh of one is done unmeasured.
 *
 * -s: stops itself before and behind each batch, for tests/bench/steps, which counts what lies between.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCHES_MAX 1001

static int (*device_malloc)(void **, size_t);
static int (*device_free)(void *);
static const char *load_path;
static bool stops;

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "loops: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void round_mmap(long n)
{
	for (long i = 0; i < n; i++) {
		void *p = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die("mmap");
		munmap(p, 1 << 20);
	}
}

static void round_malloc(long n)
{
	for (long i = 0; i < n; i++) {
		void *p = malloc(64);

		__asm__ volatile("" : "+r"(p) : : "memory"); /* the pair must not be optimised away */
		free(p);
	}
}

static void round_device(long n)
{
	for (long i = 0; i < n; i++) {
		void *p;

		if (device_malloc(&p, 4096))
			die("cudaMalloc");
		device_free(p);
	}
}

static void round_load(long n)
{
	int fd = open(load_path, O_RDONLY);
	struct stat st;
	unsigned sum = 0;
	char *p;

	(void)n;
	if (fd < 0 || fstat(fd, &st))
		die(load_path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	for (off_t i = 0; i < st.st_size; i += 4096)
		sum += (unsigned char)p[i];
	__asm__ volatile("" : : "r"(sum));
	munmap(p, (size_t)st.st_size);
	close(fd);
}

static void round_idle(long n)
{
	const struct timespec pause = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

static void device_open(void)
{
	static const char soname[] = "libcuda"
				     "rt.so.13";
	void *lib = dlopen(soname, RTLD_NOW);

	if (!lib)
		die(dlerror());
	*(void **)&device_malloc = dlsym(lib, "cudaMalloc");
	*(void **)&device_free = dlsym(lib, "cudaFree");
	if (!device_malloc || !device_free)
		die("cudaMalloc");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void stop(void)
{
	if (stops)
		raise(SIGSTOP);
}

static void print(const double *took, int batches)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	printf("median_ns=%.2f quarter_ns=%.2f least_ns=%.2f hwm_kb=%ld user_us=%ld system_us=%ld\n",
	       took[batches / 2], took[batches / 4], took[0], ru.ru_maxrss,
	       ru.ru_utime.tv_sec * 1000000L + ru.ru_utime.tv_usec,
	       ru.ru_stime.tv_sec * 1000000L + ru.ru_stime.tv_usec);
}

static void run(void (*round)(long), long n, int batches)
{
	static double took[BATCHES_MAX];

	if (batches > 1)
		round(n / 10 + 1);
	for (int i = 0; i < batches; i++) {
		double t;

		stop();
		t = now_ns();
		round(n);
		took[i] = (now_ns() - t) / (double)n;
		stop();
	}
	qsort(took, (size_t)batches, sizeof(took[0]), compare);
	print(took, batches);
}

static void touch(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		die(path);
	close(fd);
}

static int run_named(char **words, int count, long n, int batches)
{
	if (!strcmp(words[0], "mmap"))
		run(round_mmap, n, batches);
	else if (!strcmp(words[0], "malloc"))
		run(round_malloc, n, batches);
	else if (!strcmp(words[0], "device"))
		device_open(), run(round_device, n, batches);
	else if (!strcmp(words[0], "idle"))
		run(round_idle, n, batches);
	else if (!strcmp(words[0], "load") && count > 1)
		load_path = words[1], run(round_load, 1, batches);
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	int opt, batches = 21;
	long n = 20000;

	while ((opt = getopt(argc, argv, "st:n:b:")) != -1) {
		if (opt == 's')
			stops = true;
		else if (opt == 't')
			touch(optarg);
		else if (opt == 'n')
			n = atol(optarg);
		else if (opt == 'b')
			batches = atoi(optarg);
		else
			return 2;
	}
	if (optind >= argc || n < 1 || batches < 1 || batches > BATCHES_MAX)
		return 2;
	return run_named(argv + optind, argc - optind, n, batches);
}
