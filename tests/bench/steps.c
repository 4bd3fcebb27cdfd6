/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the instructions that a program executes between two of its own stops (SIGSTOP), by single steps.
 *
 *	steps PROGRAM ARGUMENT...
 *
 * A line for each such stretch, on stdout: their number. System calls count as one, whatever the kernel does
 * in them; the vdso counts. The program is not otherwise changed, so that unlike under valgrind (which makes a fork
 * of the clone that the shim makes its ring in) all of the shim and its recorder run as ever.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
	exit(2);
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("ptrace");
	execvp(argv[0], argv);
	die(argv[0]);
	return -1;
}

/* Lets the program go on (by a step, or until something happens). Returns the signal it stopped for. */
static int go_on(pid_t pid, enum __ptrace_request how, int signal)
{
	int status;

	if (ptrace(how, pid, NULL, (void *)(long)signal))
		die("ptrace");
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (WIFSTOPPED(status))
		return WSTOPSIG(status);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
}

/* Until the next SIGSTOP; other signals are the program's. */
static long run_until_stop(pid_t pid, enum __ptrace_request how)
{
	int signal = 0;
	long count = 0;

	while ((signal = go_on(pid, how, signal)) != SIGSTOP) {
		count++;
		if (signal == SIGTRAP)
			signal = 0;
	}
	return count;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: steps PROGRAM ARGUMENT...\n");
		return 2;
	}
	pid = start(argv + 1);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		die(argv[1]);
	for (;;) {
		run_until_stop(pid, PTRACE_CONT);
		printf("%ld\n", run_until_stop(pid, PTRACE_SINGLESTEP));
		fflush(stdout);
	}
}
