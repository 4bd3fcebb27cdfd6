/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw system calls: what the shim does for itself passes no libc function that could be wrapped, be a
 * cancellation point, or touch errno. All return the value or a negative errno.
 */
#ifndef SPARKTRACE_SHIM_SYS_H
#define SPARKTRACE_SHIM_SYS_H

#if defined(__x86_64__)
#include "x86_64/syscall.h"
#elif defined(__aarch64__)
#include "aarch64/syscall.h"
#else
#error "sparktrace knows x86_64 and aarch64"
#endif

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Of the loader, declared in no header: where the kernel put argc, argv and the environment. */
extern void *__libc_stack_end;

static inline long sys_call3(long n, long a, long b, long c)
{
	return sys_call6(n, a, b, c, 0, 0, 0);
}

static inline long sys_call4(long n, long a, long b, long c, long d)
{
	return sys_call6(n, a, b, c, d, 0, 0);
}

/* Did a call that returns an address fail? */
static inline int sys_failed(const void *address)
{
	return (uintptr_t)address > -4096UL;
}

static inline void *sys_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	return (void *)sys_call6(SYS_mmap, (long)addr, (long)size, prot, flags, fd, offset);
}

static inline void *sys_mmap_anonymous(size_t size)
{
	return sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static inline long sys_munmap(void *addr, size_t size)
{
	return sys_call3(SYS_munmap, (long)addr, (long)size, 0);
}

static inline long sys_madvise(void *addr, size_t size, int advice)
{
	return sys_call3(SYS_madvise, (long)addr, (long)size, advice);
}

static inline long sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return sys_call4(SYS_openat, dirfd, (long)path, flags, (long)mode);
}

static inline long sys_close(int fd)
{
	return sys_call3(SYS_close, fd, 0, 0);
}

static inline long sys_read(int fd, void *buffer, size_t size)
{
	return sys_call3(SYS_read, fd, (long)buffer, (long)size);
}

static inline long sys_pread(int fd, void *buffer, size_t size, off_t offset)
{
	return sys_call4(SYS_pread64, fd, (long)buffer, (long)size, offset);
}

static inline long sys_write(int fd, const void *buffer, size_t size)
{
	return sys_call3(SYS_write, fd, (long)buffer, (long)size);
}

static inline long sys_lseek(int fd, off_t offset, int whence)
{
	return sys_call3(SYS_lseek, fd, offset, whence);
}

static inline long sys_fstat(int fd, struct stat *ret_status)
{
	return sys_call3(SYS_fstat, fd, (long)ret_status, 0);
}

static inline long sys_readlink(const char *path, char *ret_target, size_t size)
{
	return sys_call4(SYS_readlinkat, AT_FDCWD, (long)path, (long)ret_target, (long)size);
}

static inline long sys_unlink(const char *path)
{
	return sys_call3(SYS_unlinkat, AT_FDCWD, (long)path, 0);
}

static inline long sys_getcwd(char *ret_path, size_t size)
{
	return sys_call3(SYS_getcwd, (long)ret_path, (long)size, 0);
}

static inline uint32_t sys_getpid(void)
{
	return (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
}

static inline uint32_t sys_gettid(void)
{
	return (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
}

/* The beginning of a small file as text. Its length, or a negative errno; ret_text ends in NUL in any case. */
static inline long sys_read_text(const char *path, char *ret_text, size_t size)
{
	long fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	long length = fd < 0 ? fd : sys_read((int)fd, ret_text, size - 1);

	if (fd >= 0)
		sys_close((int)fd);
	ret_text[length > 0 ? length : 0] = '\0';
	return length;
}

/* The kernel's signal set, all 64 of them: libc keeps two signals for itself. `set`, `ret_old`: NULL: not wanted. */
static inline void sys_sigmask(int how, const uint64_t *set, uint64_t *ret_old)
{
	sys_call4(SYS_rt_sigprocmask, how, (long)set, (long)ret_old, sizeof(*set));
}

static inline void sys_yield(void)
{
	sys_call3(SYS_sched_yield, 0, 0, 0);
}

#endif
