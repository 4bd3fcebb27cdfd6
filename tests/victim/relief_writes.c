/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way in which bytes come into a mapping of weights, or the mapping changes, from several threads, some of which
 * have all signals blocked. Prints sums of what is in memory then: with SPARKTRACE_RELIEF they must be the same.
 *
 *	relief_writes FILE OTHER	OTHER: a file of the same size whose name is not that of a weight file
 */
#include "tests/victim/victim.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define THREADS  8
#define POPULATE 23 /* MADV_POPULATE_WRITE */

static const char *path, *other;
static size_t bytes;
static unsigned char *shared;

static unsigned char *map_file(const char *name, int prot)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	unsigned char *map = mmap(NULL, bytes, prot, MAP_PRIVATE, fd, 0);

	MUST(map == MAP_FAILED);
	close(fd);
	return map;
}

static unsigned char *map_weights(void)
{
	return map_file(path, PROT_READ | PROT_WRITE);
}

static void say(const char *what, const unsigned char *map, size_t size)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + map[i];
	printf("%s: %llx\n", what, (unsigned long long)sum);
}

/* --- threads ----------------------------------------------------------------------------------- */

static void *write_interleaved(void *arg)
{
	size_t number = (size_t)arg;
	sigset_t all;

	sigfillset(&all);
	if (number % 2)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (size_t i = number; i < bytes; i += THREADS)
		shared[i] ^= (unsigned char)(number + 1);
	return NULL;
}

/* Pages far apart, so that every thread meets pages that were never written, and the same as others do. */
static void *write_scattered(void *arg)
{
	size_t at = (size_t)arg * 4097;

	for (int i = 0; i < 20000; i++) {
		at = (at * 1103515245 + 12345) % bytes;
		__atomic_fetch_add(&shared[at], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void run_threads(const char *what, void *(*run)(void *))
{
	pthread_t threads[THREADS];

	shared = map_weights();
	for (size_t i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, run, (void *)i));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	say(what, shared, bytes);
	munmap(shared, bytes);
}

/* One writes all the time, while the permission of all pages is set again and again as it is. */
static void *protect_again(void *arg)
{
	for (int i = 0; i < 200; i++) {
		MUST(mprotect(shared, bytes / 2, PROT_READ | PROT_WRITE));
		munmap(map_weights(), bytes);
	}
	return arg;
}

static void protect_beside_stores(void)
{
	pthread_t thread;

	shared = map_weights();
	MUST(pthread_create(&thread, NULL, protect_again, NULL));
	for (size_t round = 0; round < 8; round++)
		for (size_t i = round; i < bytes; i += 1021)
			shared[i]++;
	pthread_join(thread, NULL);
	say("protected meanwhile", shared, bytes);
	munmap(shared, bytes);
}

/* --- children ---------------------------------------------------------------------------------- */

static void child_writes(void)
{
	unsigned char *map = map_weights();
	int status = 0;
	pid_t pid;

	map[1] ^= 0xff;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		memset(map, 9, bytes);
		say("child", map, bytes);
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) != pid || status);
	say("its parent", map, bytes);
	munmap(map, bytes);
}

/* --- changes of the mapping -------------------------------------------------------------------- */

static void mapping_changes(void)
{
	unsigned char *map = map_weights(), *moved;

	map[0]++;
	map[bytes / 2]++;
	MUST(munmap(map + bytes / 4, 1 << 16)); /* a hole */
	map[bytes / 4 - 1]++;
	map[bytes / 4 + (1 << 16)]++;
	MUST(mprotect(map, 1 << 16, PROT_READ));
	MUST(mprotect(map, 1 << 16, PROT_READ | PROT_WRITE));
	map[3]++;
	say("in front of the hole", map, bytes / 4);
	say("behind it", map + bytes / 4 + (1 << 16), bytes - bytes / 4 - (1 << 16));
	munmap(map, bytes);
	map = map_weights();
	for (size_t i = 0; i < bytes; i += bytes / 5)
		map[i]++;
	moved = mremap(map, bytes, bytes * 2, MREMAP_MAYMOVE);
	MUST(moved == MAP_FAILED);
	memset(moved + 100, 3, bytes / 2);
	say("moved", moved, bytes);
	munmap(moved, bytes * 2);
	map = map_weights();
	moved = mmap(map, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	moved[7] = 7;
	map[1 << 16] = 8;
	say("mapped over", map, bytes);
	munmap(map, bytes);
}

static void populate(void)
{
	unsigned char *map = map_weights();

	printf("populate: %d\n", madvise(map, bytes, POPULATE));
	map[9]++;
	MUST(mlock(map, 1 << 16));
	map[10]++;
	say("populated", map, bytes);
	munmap(map, bytes);
}

/* --- the kernel writes ------------------------------------------------------------------------- */

static void kernel_reads(void)
{
	unsigned char *map = map_weights();
	int fd = open(other, O_RDONLY | O_CLOEXEC);
	FILE *stream = fopen(other, "r");
	struct iovec pieces[2] = {{map + 70000, 5000}, {map + 300001, 100000}};

	printf("read %zd\n", read(fd, map + 12345, 40000));
	printf("pread %zd\n", pread(fd, map + 1000000, 250000, 77));
	printf("readv %zd\n", readv(fd, pieces, 2));
	printf("preadv %zd\n", preadv(fd, pieces, 2, 1 << 16));
	printf("fread %zu\n", fread(map + 2000000, 1, 333333, stream));
	printf("fread %zu\n", fread(map + 3000000, 1, 100, stream));
	say("read", map, bytes);
	fclose(stream);
	close(fd);
	munmap(map, bytes);
}

static void say_result(const char *what, ssize_t got)
{
	printf("%s %zd, errno %d\n", what, got, got < 0 ? errno : 0);
}

/* What is no vector, and no memory of ours, is the kernel's to refuse. */
static void kernel_refuses(void)
{
	unsigned char *map = map_weights();
	void *volatile nowhere = (void *)64;
	int fd = open(other, O_RDONLY | O_CLOEXEC), ends[2];

	map[1]++;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	MUST(send(ends[1], "x", 1, 0) != 1);
	say_result("readv", readv(fd, nowhere, 2));
	say_result("preadv", preadv(fd, nowhere, 1, 0));
	say_result("recvmsg", recvmsg(ends[0], nowhere, 0));
	close(ends[0]);
	close(ends[1]);
	close(fd);
	munmap(map, bytes);
}

/* Read-only memory that comes to lie where a mapping of weights was is nobody's to make writable. */
static void moved_over(void)
{
	unsigned char *map = map_weights();
	int fd = open(other, O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page == MAP_FAILED);
	MUST(mremap(page, 1 << 16, 1 << 16, MREMAP_MAYMOVE | MREMAP_FIXED, map + (1 << 16)) == MAP_FAILED);
	say_result("into read-only memory", read(fd, map + (1 << 16), 100));
	map[0]++;
	map[1 << 17]++;
	say("moved over", map, bytes);
	close(fd);
	munmap(map, bytes);
}

static void receives(void)
{
	unsigned char *map = map_weights();
	struct iovec piece = {map + 500000, 1000};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	char text[1000];
	int ends[2];

	memset(text, 5, sizeof(text));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	for (int i = 0; i < 3; i++)
		MUST(send(ends[1], text, sizeof(text), 0) != sizeof(text));
	printf("recv %zd\n", recv(ends[0], map + 4095, 1000, 0));
	printf("recvfrom %zd\n", recvfrom(ends[0], map + 200000, 1000, 0, NULL, NULL));
	printf("recvmsg %zd\n", recvmsg(ends[0], &message, 0));
	say("received", map, bytes);
	munmap(map, bytes);
}

/* --- the driver writes ------------------------------------------------------------------------- */

static void copy_rows(unsigned char *to, CUdeviceptr from)
{
	CUDA_MEMCPY2D rows = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.srcPitch = 1000,
		.WidthInBytes = 1000,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 100000,
		.Height = 10,
	};

	MUST(cuMemcpy2D(&rows));
}

static void device_writes(void)
{
	unsigned char *map = map_weights();
	CUstream stream;
	CUdeviceptr block;

	device_open();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc(&block, 1 << 20));
	MUST(cuMemsetD8(block, 0x5a, 1 << 20));
	MUST(cuMemcpyDtoH(map + 11, block, 9000));
	MUST(cuMemcpyDtoHAsync(map + 150000, block, 90000, stream));
	MUST(cuMemcpy((CUdeviceptr)(uintptr_t)(map + 400000), block, 77777));
	MUST(cuMemcpyAsync((CUdeviceptr)(uintptr_t)(map + 600000), block, 7, stream));
	copy_rows(map + 1000000, block);
	MUST(cuStreamSynchronize(stream));
	say("from the device", map, bytes);
	MUST(cuMemHostRegister(map + (2 << 20), 1 << 20, 0));
	MUST(cuMemcpyDtoHAsync(map + (2 << 20), block, 1 << 20, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemHostUnregister(map + (2 << 20)));
	say("registered", map, bytes);
	munmap(map, bytes);
}

/* --- what is left as it is --------------------------------------------------------------------- */

static void others(void)
{
	unsigned char *map = map_file(path, PROT_READ), *plain = map_file(other, PROT_READ | PROT_WRITE);

	memset(plain, 1, bytes);
	say("read-only", map, bytes);
	say("no weights", plain, bytes);
	munmap(map, bytes);
	munmap(plain, bytes);
}

int main(int argc, char **argv)
{
	struct stat status;

	if (argc != 3 || stat(argv[1], &status))
		return 2;
	path = argv[1];
	other = argv[2];
	bytes = (size_t)status.st_size & ~(size_t)0xffff;
	run_threads("interleaved", write_interleaved);
	run_threads("scattered", write_scattered);
	protect_beside_stores();
	child_writes();
	mapping_changes();
	populate();
	kernel_reads();
	kernel_refuses();
	moved_over();
	receives();
	device_writes();
	others();
	return 0;
}
