/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_parts.h"

#include <sparktrace/ring.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MIN_RING 64u
#define SIZE_MAX_RING (UINT64_C(1) << 30)
#define RECORD_WORDS  (sizeof(struct st_record) / 8)
#define TRIES         100 /* a copy takes about a millisecond, the recorder comes every few tens of them */

/* One walk through the records of a mapped ring. */
struct walk {
	const uint64_t *data;
	uint64_t size, position, head;
	bool alive;
};

/* --- whose ring it is ---------------------------------------------------------------------------- */

/* The magic is written last. `size` is the ring's own word for its bytes of data, read once: others may write there. */
static bool ring_valid(const struct st_ring *ring, uint64_t size, uint64_t file_bytes)
{
	bool made = !memcmp(ring->magic, ST_RING_MAGIC, sizeof(ring->magic));

	atomic_thread_fence(memory_order_acquire);
	return made && ring->version == ST_RING_VERSION && size >= SIZE_MIN_RING && size <= SIZE_MAX_RING &&
	       !(size & (size - 1)) && size <= file_bytes - ST_RING_DATA;
}

static void copy_text(char *to, size_t room, const char *from, size_t from_room)
{
	size_t length = strnlen(from, from_room < room ? from_room : room - 1);

	memcpy(to, from, length);
	memset(to + length, 0, room - length);
}

static void make_head(const struct st_ring *ring, struct st_file_head *ret_head)
{
	struct st_file_head head = {
		.major = ST_FORMAT_MAJOR,
		.minor = ST_FORMAT_MINOR,
		.pid = ring->pid,
		.start_time = ring->start_time,
	};

	memcpy(head.magic, ST_FILE_MAGIC, sizeof(head.magic));
	copy_text(head.boot_id, sizeof(head.boot_id), ring->boot_id, sizeof(ring->boot_id));
	copy_text(head.ring, sizeof(head.ring), ring->path, sizeof(ring->path));
	*ret_head = head;
}

static bool same_process(const struct st_file_head *a, const struct st_file_head *b)
{
	return a->pid == b->pid && a->start_time == b->start_time &&
	       !strncmp(a->boot_id, b->boot_id, sizeof(a->boot_id) - 1);
}

/* The first line of a small file of /proc, without its newline. */
static bool read_line(const char *path, char *line, int room)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(line, room, file);

	if (file)
		fclose(file);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

/* Of a process' stat line what says whether it is over. */
struct process {
	char state;              /* field 3 */
	uint64_t threads, start; /* fields 20 and 22 */
};

static bool read_stat(uint32_t pid, struct process *ret_process)
{
	char path[64], line[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	if (!read_line(path, line, sizeof(line)))
		return false;
	at = strrchr(line, ')'); /* the name before it may hold anything */
	if (!at || at[1] != ' ')
		return false;
	ret_process->state = at[2];
	for (int field = 2; at && field < 22; field++) {
		if (field == 20)
			ret_process->threads = strtoull(at, NULL, 10);
		at = strchr(at + 1, ' ');
	}
	if (!at)
		return false;
	ret_process->start = strtoull(at, NULL, 10);
	return true;
}

/*
 * Does this process still run, on this boot? A zombie writes nothing any more, unless it is only the first thread that
 * has ended.
 */
static bool process_alive(const struct st_file_head *head)
{
	struct process process;
	char boot[64];

	if (!read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) || strcmp(boot, head->boot_id))
		return false;
	return read_stat(head->pid, &process) && process.start == head->start_time &&
	       ((process.state != 'Z' && process.state != 'X') || process.threads > 1);
}

/* --- the walk ------------------------------------------------------------------------------------ */

static const uint64_t *walk_words(const struct walk *walk, uint64_t position)
{
	return walk->data + (position & (walk->size - 1)) / 8;
}

static bool committed(const struct walk *walk, uint64_t position)
{
	const _Atomic uint64_t *first = (const _Atomic uint64_t *)walk_words(walk, position);

	return atomic_load_explicit(first, memory_order_acquire) == (ST_SEQ_MAGIC | position);
}

/* Bytes from here to the end of the lap. */
static uint64_t lap_left(const struct walk *walk)
{
	return walk->size - (walk->position & (walk->size - 1));
}

/* A committed record's length in bytes, 0 when it cannot be one. */
static uint64_t record_bytes(const struct walk *walk)
{
	const struct st_record *record = (const struct st_record *)walk_words(walk, walk->position);
	uint64_t bytes = (uint64_t)record->words * 8;

	if (record->kind == ST_RING_PAD)
		return lap_left(walk);
	if (record->words < RECORD_WORDS || bytes > lap_left(walk) || bytes > walk->head - walk->position)
		return 0;
	return bytes;
}

/* Past a record that was reserved and never committed, to the next that was. */
static void walk_over_torn(struct walk *walk)
{
	do {
		if (lap_left(walk) < sizeof(struct st_record))
			walk->position += lap_left(walk);
		else
			walk->position += 8;
	} while (walk->position < walk->head && !committed(walk, walk->position));
}

static int copy_record(struct ring_copy *copy, const struct walk *walk, uint64_t bytes)
{
	if (copy->count + bytes / 8 > copy->room) {
		size_t room = 2 * copy->room + bytes / 8 + 8192;
		uint64_t *words = realloc(copy->words, room * 8);

		if (!words)
			return -ENOMEM;
		copy->words = words;
		copy->room = room;
	}
	if (!copy->count)
		copy->position = walk->position;
	memcpy(copy->words + copy->count, walk_words(walk, walk->position), bytes);
	copy->count += bytes / 8;
	return 0;
}

static int walk_records(struct walk *walk, struct ring_copy *copy)
{
	while (walk->position < walk->head) {
		uint64_t bytes = 0;
		int error;

		if (lap_left(walk) < sizeof(struct st_record)) {
			walk->position += lap_left(walk);
			continue;
		}
		if (committed(walk, walk->position))
			bytes = record_bytes(walk);
		if (!bytes && walk->alive)
			return 0; /* still being written: later ones may come only after it */
		if (!bytes) {
			copy->torn++;
			walk_over_torn(walk);
			continue;
		}
		if (((const struct st_record *)walk_words(walk, walk->position))->kind != ST_RING_PAD) {
			error = copy_record(copy, walk, bytes);
			if (error)
				return error;
		}
		walk->position += bytes;
	}
	return 0;
}

/*
 * One try. Space below the tail may be written again at any time, so a copy is good only when the tail has
 * not moved: -EAGAIN.
 */
static int copy_once(const struct st_ring *ring, uint64_t size, struct ring_copy *copy)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct walk walk = {
		.data = (const uint64_t *)((const unsigned char *)ring + ST_RING_DATA),
		.size = size,
		.position = tail,
		.head = atomic_load_explicit(&ring->head, memory_order_acquire),
		.alive = copy->alive,
	};
	int error = -EBADMSG;

	copy->count = 0;
	copy->torn = 0;
	if (walk.head >= tail && walk.head - tail <= size && !(tail % 8) && !(walk.head % 8))
		error = walk_records(&walk, copy);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&ring->tail, memory_order_relaxed) != tail)
		return -EAGAIN;
	return error;
}

static int copy_ring(const struct st_ring *ring, uint64_t size, const struct st_file_head *expect,
                     struct ring_copy *copy)
{
	int error = -EAGAIN;

	make_head(ring, &copy->head);
	if (expect && !same_process(&copy->head, expect))
		return -EXDEV;
	copy->alive = process_alive(&copy->head);
	for (int i = 0; error == -EAGAIN && i < TRIES; i++)
		error = copy_once(ring, size, copy);
	copy->lost = atomic_load(&ring->lost_count);
	copy->lost_bytes = atomic_load(&ring->lost_bytes);
	return error;
}

static int map_ring(const char *path, const struct st_ring **ret_ring, size_t *ret_bytes)
{
	/* The name comes out of an untrusted file: nothing that could block or act is opened. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = 0;
	struct stat st;
	void *map = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)ST_RING_DATA)
		error = -EBADMSG;
	else
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (!error && map == MAP_FAILED)
		error = -errno;
	close(fd);
	if (error)
		return error;
	*ret_ring = map;
	*ret_bytes = (size_t)st.st_size;
	return 0;
}

int ring_copy_init(struct ring_copy *copy, const char *path, const struct st_file_head *expect)
{
	const struct st_ring *ring = NULL;
	size_t bytes = 0;
	uint64_t size;
	int error = map_ring(path, &ring, &bytes);

	memset(copy, 0, sizeof(*copy));
	if (!ring)
		return error;
	size = *(const volatile uint64_t *)&ring->size;
	error = ring_valid(ring, size, bytes) ? copy_ring(ring, size, expect, copy) : -EBADMSG;
	munmap((void *)(uintptr_t)ring, bytes);
	if (error)
		ring_copy_release(copy);
	return error;
}

void ring_copy_release(struct ring_copy *copy)
{
	free(copy->words);
	memset(copy, 0, sizeof(*copy));
}
