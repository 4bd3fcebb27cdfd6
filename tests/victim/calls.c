/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes every libc call that the shim wraps, well and badly, and prints what came of it: the same with the shim and
 * without. Addresses are printed as yes or no.
 *
 *	calls FILE FOLDER	FILE is read and mapped, FOLDER takes a copy of its first bytes
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off_t offset, size_t room);
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);

#define MIB  (1u << 20)
#define PAGE 65536u /* a multiple of every kernel's page */

static const char *path, *folder;
static char buffer[3 * MIB];
static void *volatile nowhere = (void *)1;

/* Says a result and, where it is a failure, the error; SAY(call) resets errno first. */
#define SAY(call)                                                 \
	do {                                                      \
		errno = 0;                                        \
		long r_ = (long)(call);                           \
		printf("%s = %ld, errno %d\n", #call, r_, errno); \
	} while (0)
#define SAY_ADDRESS(call)                           \
	({                                          \
		errno = 0;                          \
		void *p_ = (call);                  \
		printf("%s: %s, errno %d\n", #call, \
		       p_ == MAP_FAILED ? "failed"  \
		       : p_             ? "address" \
		                        : "NULL",               \
		       errno);                      \
		p_;                                 \
	})

static uint32_t sum(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint32_t total = 0;

	while (count--)
		total = total * 31 + *at++;
	return total;
}

static void opens(void)
{
	int (*const checked[])(const char *, int) = {__open_2, __open64_2};
	int (*const checked_at[])(int, const char *, int) = {__openat_2, __openat64_2};
	FILE *stream;

	SAY(close(open(path, O_RDONLY)));
	SAY(close(open64(path, O_RDONLY)));
	SAY(close(openat(AT_FDCWD, path, O_RDONLY)));
	SAY(close(openat64(AT_FDCWD, path, O_RDONLY)));
	for (int i = 0; i < 2; i++) {
		SAY(close(checked[i](path, O_RDONLY)));
		SAY(close(checked_at[i](AT_FDCWD, path, O_RDONLY)));
	}
	SAY(open("/no/such.safetensors", O_RDONLY));
	SAY(openat(-1, "such.safetensors", O_RDONLY));
	SAY(close(open(path, O_PATH)));
	SAY(open(folder, O_WRONLY));
	stream = fopen(path, "r");
	SAY(fclose(freopen(path, "rb", stream)));
	stream = fopen64(path, "rbe");
	SAY(fclose(freopen64(path, "r", stream)));
	SAY(fopen("/no/such.gguf", "r") != NULL);
}

static void reads(void)
{
	struct iovec pieces[2] = {{buffer, 1000}, {buffer + 2000, 3000}};
	int fd = open(path, O_RDONLY);

	SAY(read(fd, buffer, 100));
	SAY(read(fd, buffer + 100, sizeof(buffer) - 100));
	SAY(sum(buffer, sizeof(buffer)));
	SAY(lseek(fd, 0, SEEK_CUR));
	SAY(pread(fd, buffer, MIB, 5000));
	SAY(pread64(fd, buffer, MIB, 7000));
	SAY(readv(fd, pieces, 2));
	SAY(preadv(fd, pieces, 2, 11));
	SAY(preadv64(fd, pieces, 2, 12));
	SAY(preadv2(fd, pieces, 2, 13, 0));
	SAY(preadv64v2(fd, pieces, 2, -1, 0));
	SAY(lseek(fd, 0, SEEK_CUR));
	SAY(__read_chk(fd, buffer, 500, sizeof(buffer)));
	SAY(__pread_chk(fd, buffer, 500, 3, sizeof(buffer)));
	SAY(__pread64_chk(fd, buffer, 500, 3, sizeof(buffer)));
	SAY(pread(fd, buffer, MIB, -1));
	SAY(read(fd, nowhere, 10));
	SAY(sum(buffer, sizeof(buffer)));
	SAY(close(fd));
	SAY(read(fd, buffer, 10));
	SAY(read(-1, buffer, 10));
}

static void streams(void)
{
	FILE *stream = fopen(path, "r");

	SAY(fread(buffer, 1, 100, stream));
	SAY(fread(buffer, 4, 200000, stream));
	SAY(fread_unlocked(buffer, 3, 7, stream));
	SAY(__fread_chk(buffer, sizeof(buffer), 2, 9, stream));
	SAY(__fread_unlocked_chk(buffer, sizeof(buffer), 2, 9, stream));
	SAY(ftell(stream));
	SAY(fseek(stream, -10, SEEK_END));
	SAY(fread(buffer, 1, 100, stream));
	SAY(feof(stream));
	SAY(sum(buffer, sizeof(buffer)));
	SAY(fclose(stream));
}

static void copies(void)
{
	int in = open(path, O_RDONLY), dirfd = open(folder, O_DIRECTORY);
	int out = openat(dirfd, "copy", O_RDWR | O_CREAT | O_TRUNC, 0640);
	off_t offset = 10;
	off64_t from = 20, to = 30;
	struct stat status;

	SAY(sendfile(out, in, &offset, 100000));
	SAY(offset);
	SAY(sendfile64(out, in, NULL, 100000));
	SAY(copy_file_range(in, &from, out, &to, 5000, 0));
	SAY(from + to);
	SAY(sendfile(out, -1, NULL, 1));
	SAY(fstat(out, &status));
	SAY(status.st_size);
	SAY(status.st_mode);
	SAY(posix_fadvise(in, 0, 0, POSIX_FADV_SEQUENTIAL));
	SAY(posix_fadvise64(in, 0, 4096, POSIX_FADV_WILLNEED));
	SAY(posix_fadvise(-1, 0, 0, 0));
	SAY(readahead(in, 0, 4096));
	SAY(readahead(-1, 0, 4096));
	close(in);
	close(out);
	close(dirfd);
}

/* An io_uring that was not made is none: nothing is to be said of it. */
static void rings(void)
{
	SAY(syscall(SYS_io_uring_setup, 0, NULL));
}

/* A descriptor's number says nothing: it is taken over by another file, and a copy of it was never opened. */
static void numbers(void)
{
	int dirfd = open(folder, O_DIRECTORY), plain = openat(dirfd, "copy", O_RDONLY);
	int weights = open(path, O_RDONLY), copy = dup(weights);

	SAY(read(weights, buffer, 1000));
	SAY(dup2(plain, weights) == weights);
	SAY(read(weights, buffer, 2000));
	SAY(read(weights, buffer, 100000));
	SAY(read(copy, buffer, 100000));
	close(weights);
	SAY(open(path, O_RDONLY) == weights);
	SAY(read(weights, buffer, 3000));
	close(weights);
	close(copy);
	close(plain);
	close(dirfd);
}

static void maps(void)
{
	int fd = open(path, O_RDONLY);
	char *area = SAY_ADDRESS(mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	char *other = SAY_ADDRESS(mmap64(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE));

	SAY(sum(area, 8 * PAGE));
	memset(area + PAGE, 'x', 3 * PAGE);
	SAY(sum(area, 8 * PAGE));
	SAY(mprotect(other, PAGE, PROT_READ | PROT_WRITE));
	SAY(mprotect(area, PAGE, PROT_READ));
	SAY(madvise(area + PAGE, PAGE, MADV_DONTNEED));
	SAY(sum(area, 8 * PAGE));
	SAY(posix_madvise(area, PAGE, POSIX_MADV_WILLNEED));
	SAY(posix_madvise(area, PAGE, POSIX_MADV_DONTNEED));
	SAY(madvise(area + 1, PAGE, MADV_WILLNEED));
	SAY(munmap(area + 4 * PAGE, PAGE));
	SAY(mmap(area, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
	SAY(sum(area, 4 * PAGE));
	area = SAY_ADDRESS(mremap(area + 2 * PAGE, 2 * PAGE, 16 * PAGE, MREMAP_MAYMOVE));
	SAY(sum(area, 2 * PAGE));
	SAY(mremap(area, 16 * PAGE, PAGE, 0) == area);
	SAY(mremap(other, 4 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, area) == area);
	SAY(sum(area, PAGE));
	SAY(munmap(area, PAGE));
	SAY(munmap((char *)1, PAGE));
	SAY_ADDRESS(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	SAY_ADDRESS(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0));
	SAY_ADDRESS(mremap((void *)1, PAGE, PAGE, 0));
	close(fd);
}

static void locks(void)
{
	static char pages[2 * PAGE];

	SAY(mlock(pages, PAGE));
	SAY(mlock2(pages, PAGE, MLOCK_ONFAULT));
	SAY(munlock(pages, PAGE));
	SAY(mlockall(0));
	SAY(munlockall());
	SAY(mlock((void *)UINTPTR_MAX, 2 * PAGE));
}

/* The compiler must not know that these cannot succeed, nor what becomes of a block whose enlargement is refused. */
static volatile size_t enormous = SIZE_MAX / 2 + 2;
static void *(*volatile enlarge)(void *, size_t) = realloc;
static void *(*volatile enlarge_array)(void *, size_t, size_t) = reallocarray;

static void heap(size_t size)
{
	void *block = SAY_ADDRESS(malloc(size)), *aligned = NULL;

	memset(block, 1, size);
	block = SAY_ADDRESS(enlarge(block, 3 * size));
	SAY(sum(block, size));
	SAY_ADDRESS(enlarge(block, enormous));
	SAY(sum(block, size));
	block = SAY_ADDRESS(enlarge_array(block, 2, size));
	SAY_ADDRESS(enlarge_array(block, enormous, 4));
	SAY(sum(block, size));
	free(block);
	block = SAY_ADDRESS(calloc(2, size));
	SAY(sum(block, 2 * size));
	SAY(malloc_usable_size(block) >= 2 * size);
	SAY(enlarge(block, 0) == NULL);
	SAY(posix_memalign(&aligned, 4096, size));
	SAY((uintptr_t)aligned % 4096);
	free(aligned);
	SAY(posix_memalign(&aligned, 3, size));
	free(SAY_ADDRESS(aligned_alloc(64, size)));
	free(SAY_ADDRESS(memalign(PAGE, size)));
	free(SAY_ADDRESS(valloc(size)));
	free(SAY_ADDRESS(pvalloc(size)));
	SAY_ADDRESS(malloc(enormous));
	SAY_ADDRESS(calloc(enormous, 2));
	SAY_ADDRESS(calloc(enormous, 1));
	SAY_ADDRESS(aligned_alloc(64, enormous));
	SAY(posix_memalign(&aligned, 64, enormous));
}

/* errno must survive a release: glibc promises it, programs rely on it. */
static void errno_after_free(void)
{
	void *small = malloc(100), *large = malloc(5 * MIB);

	errno = EXDEV;
	free(small);
	free(large);
	printf("errno after free %d\n", errno);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	path = argv[1];
	folder = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	opens();
	reads();
	streams();
	copies();
	rings();
	numbers();
	maps();
	locks();
	heap(1000);
	heap(2 * MIB);
	errno_after_free();
	return 0;
}
