/* SPDX-License-Identifier: Apache-2.0 */
/* What victims of SPARKTRACE_RELIEF share: weights that they store into, handlers that do the same, a choice of cases. */
#ifndef RELIEF_H
#define RELIEF_H

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define MAPPINGS 2     /* one to be written by the program, one by its handlers */
#define PAGE     65536 /* a multiple of every kernel's page */

static const char *path;
static volatile unsigned char *weights[MAPPINGS];
static size_t bytes;
static sigjmp_buf back;
static volatile sig_atomic_t seen;
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)64;

static inline void map_weights(void)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (weights[0])
		return;
	fstat(fd, &status);
	bytes = (size_t)status.st_size;
	for (int i = 0; i < MAPPINGS; i++)
		weights[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
}

/* A store into the n-th page; each page is written once. */
static inline void store(int mapping, size_t page)
{
	volatile unsigned char *at = weights[mapping] + page * PAGE * 2 % bytes;
	unsigned char before = *at;

	*at = (unsigned char)(before + 1);
	if (*at != (unsigned char)(before + 1))
		printf("a store is lost\n");
}

static size_t next_page;

static inline void store_somewhere(void)
{
	map_weights();
	store(0, next_page++);
}

static inline void set_action(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	sigemptyset(&action.sa_mask);
	if (sigaction(number, &action, NULL))
		perror("sigaction");
}

static inline void crash(void)
{
	fflush(stdout);
	*nowhere = 1;
}

static inline void say_blocked(const char *when)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	printf("%s: SIGSEGV %d, SIGUSR1 %d\n", when, sigismember(&set, SIGSEGV), sigismember(&set, SIGUSR1));
}

/* --- handlers: they store into weights too ----------------------------------------------------- */

static inline void tell(int number, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;

	if (weights[1])
		store(1, (size_t)seen);
	seen++;
	printf("handler: %d, code %d, at %d, of us %d\n", number, info->si_code,
	       info->si_code > 0 && info->si_addr == (void *)(uintptr_t)nowhere,
	       info->si_code <= 0 && info->si_pid == getpid());
	printf("interrupted: SIGSEGV %d\n", sigismember(&at->uc_sigmask, SIGSEGV));
	say_blocked("in the handler");
}

static inline void tell_and_jump(int number, siginfo_t *info, void *context)
{
	tell(number, info, context);
	siglongjmp(back, 1);
}

static inline void tell_and_exit(int number, siginfo_t *info, void *context)
{
	tell(number, info, context);
	fflush(stdout);
	_exit(42);
}

struct relief_case {
	const char *name; /* the last one has none */
	void (*run)(void);
};

/* Arguments as in the programs' heads. */
static inline int cases_run(const struct relief_case *cases, int argc, char **argv)
{
	for (; cases->name; cases++) {
		if (argc != 4) {
			puts(cases->name);
			continue;
		}
		if (strcmp(cases->name, argv[3]) != 0)
			continue;
		path = argv[1];
		if (strcmp(argv[2], "before") == 0) {
			map_weights();
			store_somewhere();
		}
		cases->run();
		printf("done\n");
		return 0;
	}
	return argc == 1 ? 0 : 2;
}

#endif
