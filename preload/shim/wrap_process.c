/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children and ends. A fork child starts afresh by itself (life.h); vfork is not wrapped, since it returns twice into
 * the frame of its caller: its child is noted at the exec. No guard is up during an exec, which may run in a vfork
 * child, in the memory of its parent.
 */
#include "event.h"
#include "export.h"
#include "finish.h"
#include "guard.h"
#include "life.h"
#include "real.h"
#include "relief.h"
#include "signals.h"
#include "sys.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "banned.h"

static uint64_t note_child(uint32_t pid, enum st_child_how how, const char *program)
{
	struct guard guard;
	uint64_t seq = 0;

	if (!guard_enter(&guard))
		return 0;
	if (event_wanted())
		seq = EVENT_TAIL(child, program, program ? strlen(program) : 0, .pid = pid, .how = how);
	guard_leave(&guard);
	return seq;
}

EXPORT pid_t fork(void)
{
	pid_t pid = real()->fork();

	if (pid == 0) {
		relief_forked();
		life_forked();
		life_get(); /* now: the first event may come from a vfork child of this one, and know another pid */
	} else if (pid > 0) {
		note_child((uint32_t)pid, ST_CHILD_FORK, NULL);
	}
	return pid;
}

/* Ends without destructors. */
EXPORT __attribute__((noreturn)) void _exit(int status)
{
	recording_finish();
	real()->_exit(status);
	__builtin_unreachable();
}

EXPORT __attribute__((noreturn)) void _Exit(int status) __attribute__((alias("_exit")));

/* A name that the kernel cannot read makes the exec fail, and is not for us to read either. */
static bool is_readable(const char *program)
{
	long r = sys_call3(SYS_faccessat, AT_FDCWD, (long)program, F_OK);

	return r != -EFAULT && r != -ENAMETOOLONG;
}

/* In a vfork child the record is its parent's, and names the child. */
static uint64_t note_exec(const char *program)
{
	struct life *life = life_get();
	uint32_t pid = sys_getpid();

	if (!life || !is_readable(program))
		return 0;
	return note_child(pid, pid == life->pid ? ST_CHILD_EXEC : ST_CHILD_VFORK, program);
}

struct exec {
	uint64_t seq;  /* of the record to be revoked, 0: none */
	uint64_t mask; /* to be put back */
};

static struct exec exec_begin(const char *program)
{
	struct exec exec = {.seq = note_exec(program)};

	if (relief_on(RELIEF_READONLY))
		signals_bare(&exec.mask);
	return exec;
}

/* The exec came back: it failed. */
static int exec_failed(const struct exec *exec, int r)
{
	struct guard guard;

	if (relief_on(RELIEF_READONLY))
		signals_cover(&exec->mask);
	if (exec->seq && guard_enter(&guard)) {
		EVENT(revoke, .target = event_target(exec->seq));
		guard_leave(&guard);
	}
	return r;
}

EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	struct exec exec = exec_begin(path);

	return exec_failed(&exec, real()->execve(path, arguments, environment));
}

EXPORT int execveat(int dirfd, const char *path, char *const arguments[], char *const environment[],
                    int flags)
{
	struct exec exec = exec_begin(path);

	return exec_failed(&exec, real()->execveat(dirfd, path, arguments, environment, flags));
}

EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	struct exec exec = exec_begin("");

	return exec_failed(&exec, real()->fexecve(fd, arguments, environment));
}

EXPORT int execv(const char *path, char *const arguments[])
{
	struct exec exec = exec_begin(path);

	return exec_failed(&exec, real()->execv(path, arguments));
}

EXPORT int execvp(const char *file, char *const arguments[])
{
	struct exec exec = exec_begin(file);

	return exec_failed(&exec, real()->execvp(file, arguments));
}

EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	struct exec exec = exec_begin(file);

	return exec_failed(&exec, real()->execvpe(file, arguments, environment));
}

/* Arguments up to and with the NULL that ends them. */
static size_t list_length(va_list list)
{
	size_t count = 1;
	va_list copy;

	va_copy(copy, list);
	while (va_arg(copy, const char *))
		count++;
	va_end(copy);
	return count;
}

/* The vector of a list whose first member is named; `list` stands behind the list's NULL afterwards. */
static void list_read(const char **vector, const char *first, va_list *list)
{
	*vector = first;
	while (*vector)
		*++vector = va_arg(*list, const char *);
}

EXPORT int execl(const char *path, const char *first, ...)
{
	va_list list;

	va_start(list, first);
	{
		const char *vector[1 + list_length(list)];

		list_read(vector, first, &list);
		va_end(list);
		return execv(path, (char *const *)vector);
	}
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	va_list list;

	va_start(list, first);
	{
		const char *vector[1 + list_length(list)];

		list_read(vector, first, &list);
		va_end(list);
		return execvp(file, (char *const *)vector);
	}
}

EXPORT int execle(const char *path, const char *first, ...)
{
	va_list list;

	va_start(list, first);
	{
		const char *vector[1 + list_length(list)];
		char *const *environment;

		list_read(vector, first, &list);
		environment = va_arg(list, char *const *);
		va_end(list);
		return execve(path, (char *const *)vector, environment);
	}
}

/* Mask and ignored signals go over to the child as they really are. */
static int spawn(__typeof__(&posix_spawn) call, pid_t *ret_pid, const char *program,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const arguments[], char *const environment[])
{
	uint64_t mask;
	int r;

	if (!relief_on(RELIEF_READONLY))
		return call(ret_pid, program, actions, attributes, arguments, environment);
	signals_bare(&mask);
	r = call(ret_pid, program, actions, attributes, arguments, environment);
	signals_cover(&mask);
	return r;
}

EXPORT int posix_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[],
                       char *const environment[])
{
	pid_t pid;
	int r = spawn(real()->posix_spawn, &pid, path, actions, attributes, arguments, environment);

	if (r == 0) {
		if (ret_pid)
			*ret_pid = pid;
		note_child((uint32_t)pid, ST_CHILD_SPAWN, path);
	}
	return r;
}

EXPORT int posix_spawnp(pid_t *ret_pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[],
                        char *const environment[])
{
	pid_t pid;
	int r = spawn(real()->posix_spawnp, &pid, file, actions, attributes, arguments, environment);

	if (r == 0) {
		if (ret_pid)
			*ret_pid = pid;
		note_child((uint32_t)pid, ST_CHILD_SPAWN, file);
	}
	return r;
}
