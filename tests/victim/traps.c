/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What once went wrong, or nearly did, under the shim: names that cannot be read, a vector that its own read
 * overwrites, forks beside threads whose stacks are walked, a list of objects whose reader maps memory, more files than
 * the shim has room for, a signal handler with little stack, children that would go to another pid namespace, orphans
 * that are adopted. Prints what came of it.
 *
 *	traps FILE	makes files in the working directory, and takes them away
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 100
#define FILES 5000  /* more than the shim remembers */
#define BYTES 65536 /* of each: a large read */
#define PAGE  65536 /* a multiple of every kernel's page */

static const char *path;
static _Atomic int over;

static void say(const char *call, int result)
{
	printf("%s: %d, errno %d\n", call, result, errno);
}

static void names(void)
{
	char *const none[] = {NULL};
	char *volatile nowhere = (char *)5;

	say("execve", execve(nowhere, none, none));
	say("execv", execv(nowhere, none));
	say("execveat", execveat(AT_FDCWD, nowhere, none, none, 0));
	say("open", open(nowhere, O_RDONLY));
}

/* The vector lies at the end of what is mapped, and is all zeros after the read. */
static void own_vector(void)
{
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec *pieces = (struct iovec *)(void *)(page + PAGE - 2 * sizeof(*pieces));
	int fd = open("zeros.pt", O_RDWR | O_CREAT | O_TRUNC, 0600);

	mprotect(page + PAGE, PAGE, PROT_NONE);
	if (ftruncate(fd, 32 << 20))
		perror("zeros.pt");
	close(fd);
	fd = open("zeros.pt", O_RDONLY);
	pieces[0] = pieces[1] = (struct iovec){pieces, 2 * sizeof(*pieces)};
	printf("readv: %zd\n", readv(fd, pieces, 1));
	close(fd);
	unlink("zeros.pt");
	munmap(page, 2 * PAGE);
}

/* A stack to be walked. */
static void *note(void *arg)
{
	munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	return arg;
}

static int see(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	note(data);
	return 0;
}

static void *list(void *arg)
{
	dl_iterate_phdr(see, NULL);
	return arg;
}

static void *make_threads(void *arg)
{
	pthread_t thread;

	while (!over) {
		pthread_create(&thread, NULL, note, NULL);
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, list, NULL);
		pthread_join(thread, NULL);
	}
	return arg;
}

static void child(void)
{
	alarm(10);
	close(open(path, O_RDONLY));
	note(NULL);
	_exit(0);
}

static void forks(void)
{
	pthread_t makers[2];
	int well = 0;

	for (int i = 0; i < 2; i++)
		pthread_create(&makers[i], NULL, make_threads, NULL);
	for (int i = 0, status; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			child();
		well += waitpid(pid, &status, 0) == pid && status == 0;
	}
	over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(makers[i], NULL);
	printf("forks: %d of %d\n", well, FORKS);
}

static void read_one(int number, int make)
{
	static char buffer[BYTES];
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "%d.jpg", number);
	fd = open(name, O_RDWR | (make ? O_CREAT : 0), 0600);
	if (make && ftruncate(fd, BYTES))
		perror(name);
	if (read(fd, buffer, BYTES) != BYTES)
		printf("%s: %s\n", name, strerror(errno));
	close(fd);
}

/* Behind all of them a weight file is one still. */
static void many_files(void)
{
	int fd, in = open(path, O_RDONLY);
	char name[32];

	for (int i = 0; i < FILES; i++)
		read_one(i, 1);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%d.jpg", i);
		unlink(name);
	}
	fd = open("late.safetensors", O_WRONLY | O_CREAT, 0600);
	printf("copied: %d\n", sendfile(fd, in, NULL, 64 << 20) > 0);
	close(fd);
	close(open("late.safetensors", O_RDONLY));
	unlink("late.safetensors");
	close(in);
}

static void other_namespace(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		if (unshare(CLONE_NEWPID))
			_exit(1);
		close(open(path, O_RDONLY));
		pid = fork();
		if (pid == 0)
			_exit(getpid() == 1 ? 7 : 8);
		_exit(pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 2);
	}
	waitpid(pid, &status, 0);
	printf("namespace: %d\n", WEXITSTATUS(status));
}

/* Of the recorder, which becomes its child, it hears nothing as long as it lives. */
static void adopter(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		close(open(path, O_RDONLY));
		usleep(300000);
		_exit(waitpid(-1, NULL, WNOHANG) > 0);
	}
	waitpid(pid, &status, 0);
	printf("strange children that ended: %d\n", WEXITSTATUS(status));
}

static void on_small_stack(int number)
{
	void *map;

	(void)number;
	close(open(path, O_RDONLY));
	map = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(map, PAGE);
}

/* A handler's own stack with room for its frame and 4 KB; the page below it is not there. */
static void small_stack(void)
{
	size_t size = getauxval(AT_MINSIGSTKSZ) + 4096;
	char *low = mmap(NULL, PAGE + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {.sa_handler = on_small_stack, .sa_flags = SA_ONSTACK};
	stack_t own = {.ss_sp = low + PAGE, .ss_size = size};

	mprotect(low + PAGE, size, PROT_READ | PROT_WRITE);
	say("sigaltstack", sigaltstack(&own, NULL));
	sigaction(SIGUSR1, &action, NULL);
	say("raise", raise(SIGUSR1));
	own.ss_flags = SS_DISABLE;
	sigaltstack(&own, NULL);
	munmap(low, PAGE + size);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	path = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	close(open(path, O_RDONLY));
	names();
	own_vector();
	small_stack();
	many_files();
	forks();
	other_namespace();
	adopter();
	return 0;
}
