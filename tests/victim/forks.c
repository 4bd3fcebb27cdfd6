/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of every sort, some of which touch the weight file themselves; says what wait() says. Then looks that it
 * has no child, no descriptor and no thread more than it made itself, and that its thread is still recorded.
 *
 *	forks FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *path;

static void touch(size_t size)
{
	int fd = open(path, O_RDONLY);
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	p[5000]++;
	munmap(p, size);
	close(fd);
}

static void say_wait(const char *name)
{
	int status = 0;
	pid_t pid = wait(&status);

	printf("%s: %s, status %d, exit %d, signal %d\n", name, pid > 0 ? "child" : strerror(errno), status,
	       WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	fflush(stdout);
}

static void fork_ends(int how)
{
	if (fork() != 0)
		return;
	touch(1 << 20);
	if (how == 0)
		_exit(10);
	if (how == 1)
		exit(11);
	raise(SIGKILL);
}

static void fork_and_spawn(void)
{
	if (fork() != 0)
		return;
	touch(1 << 20);
	execl("/bin/sh", "sh", "-c", "exit 12", (char *)NULL);
	_exit(99);
}

static void vfork_and_exec(const char *program)
{
	if (vfork() != 0)
		return;
	close(0); /* of the child alone */
	execl(program, "sh", "-c", "exit 13", (char *)NULL);
	_exit(14);
}

static void spawn(void)
{
	char *arguments[] = {"sh", "-c", "exit 15", NULL};
	pid_t pid;

	printf("posix_spawn %d\n", posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ));
	printf("posix_spawn %d\n", posix_spawn(NULL, "/no/sh", NULL, NULL, arguments, environ));
	printf("posix_spawnp %d\n", posix_spawnp(NULL, "sh", NULL, NULL, arguments, environ));
}

static void execs_that_fail(void)
{
	char *arguments[] = {"x", NULL};

	printf("execv %d %d\n", execv("/no/such", arguments), errno);
	printf("execve %d %d\n", execve("/no/such", arguments, environ), errno);
	printf("execvp %d %d\n", execvp("/no/such", arguments), errno);
	printf("execvpe %d %d\n", execvpe("/no/such", arguments, environ), errno);
	printf("fexecve %d %d\n", fexecve(-1, arguments, environ), errno);
	printf("execveat %d %d\n", execveat(AT_FDCWD, "/no/such", arguments, environ, 0), errno);
	printf("execl %d %d\n", execl("/no/such", "x", "y", (char *)NULL), errno);
	printf("execlp %d %d\n", execlp("/no/such", "x", (char *)NULL), errno);
	printf("execle %d %d\n", execle("/no/such", "x", "y", "z", (char *)NULL, environ), errno);
}

static int entries_of(const char *folder)
{
	DIR *directory = opendir(folder);
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void on_child(int signal)
{
	(void)signal;
	if (write(1, "SIGCHLD\n", 8) < 0)
		_exit(3);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	path = argv[1];
	signal(SIGCHLD, on_child);
	touch(1 << 20);
	say_wait("none");
	signal(SIGCHLD, SIG_DFL);
	for (int how = 0; how < 3; how++) {
		fork_ends(how);
		say_wait("fork");
	}
	fork_and_spawn();
	say_wait("fork, exec");
	vfork_and_exec("/bin/sh");
	say_wait("vfork");
	vfork_and_exec("/no/sh");
	say_wait("vfork, no exec");
	printf("descriptor 0 %d\n", fcntl(0, F_GETFD) >= 0);
	spawn();
	say_wait("spawn");
	say_wait("spawn");
	execs_that_fail();
	touch(3 << 20);
	say_wait("none");
	printf("descriptors %d, threads %d\n", entries_of("/proc/self/fd"), entries_of("/proc/self/task"));
	return 0;
}
