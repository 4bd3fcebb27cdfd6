/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that open, map, read, allocate and end all at once, under a storm of signals whose handler does the same,
 * with cancellations and a longjmp out of the handler. Prints sums that do not depend on the order.
 *
 *	threads FILE ROUNDS
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define THREADS 8
#define BYTES   (1 << 20)

static const char *path;
static int rounds;
static _Atomic long handled, wrong;

static long look(int fd)
{
	unsigned char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	unsigned char *block = malloc(BYTES);
	long sum = 0;

	if (map == MAP_FAILED || !block || pread(fd, block, BYTES, 0) != BYTES)
		return -1;
	for (int i = 0; i < BYTES; i += 4096)
		sum += map[i] == block[i];
	map[4096]++;
	block = realloc(block, 2 * BYTES);
	free(block);
	munmap(map, BYTES);
	return sum;
}

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < rounds; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (look(fd) != BYTES / 4096)
			atomic_fetch_add(&wrong, 1);
		close(fd);
	}
	return NULL;
}

/* mmap and read are no functions for handlers by the book, but are by what they do; malloc is not. */
static void on_signal(int signal)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)signal;
	munmap(page, 4096);
	atomic_fetch_add(&handled, 1);
}

static void storm(int on)
{
	struct itimerval timer = {{0, on ? 500 : 0}, {0, on ? 500 : 0}};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void *wait_for_ever(void *arg)
{
	char byte;

	for (;;)
		if (read(*(int *)arg, &byte, 1) < 0)
			return arg;
}

static void cancel(void)
{
	pthread_t thread;
	void *result;
	int ends[2];

	if (pipe(ends) < 0 || pthread_create(&thread, NULL, wait_for_ever, &ends[0]) != 0)
		return;
	usleep(2000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled %d\n", result == PTHREAD_CANCELED);
	close(ends[0]);
	close(ends[1]);
}

static sigjmp_buf away;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(away, 1);
}

static void longjmp_out(void)
{
	char byte;
	int ends[2];

	if (pipe(ends) < 0)
		return;
	signal(SIGALRM, jump);
	if (sigsetjmp(away, 1) == 0) {
		ualarm(2000, 0);
		while (read(ends[0], &byte, 1) < 0)
			;
	}
	printf("jumped\n");
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc != 3)
		return 2;
	path = argv[1];
	rounds = atoi(argv[2]);
	storm(1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	storm(0);
	printf("wrong %ld, handled %d\n", wrong, handled > 0);
	cancel();
	longjmp_out();
	work(NULL);
	printf("wrong %ld\n", wrong);
	return 0;
}
