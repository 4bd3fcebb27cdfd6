/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include "event.h"
#include "sys.h"
#include "text.h"
#include "weights.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "banned.h"

#define FILES 4096 /* a power of two */
#define UNNAMED      \
	(FILES / 4 * \
	 3) /* the rest is for those opened by a weight file's name, however many others are mapped */
#define MARKS    8192 /* descriptors */
#define PATIENCE 1000
#define PAGE     4096 /* what a descriptor with O_DIRECT takes as length and alignment */

/*
 * An entry is empty, being written by one thread, or known; it never goes away. `said` is a hash of what its last
 * record said, 0 as long as none found room: then the next one that meets it tries again.
 */
enum entry_state { ENTRY_EMPTY, ENTRY_BUSY, ENTRY_KNOWN };

static struct entry {
	_Atomic uint32_t state; /* enum entry_state */
	_Atomic uint64_t said;
	uint64_t dev, ino;
	_Atomic uint32_t format;
} entries[FILES];

static _Atomic unsigned taken;
static _Atomic bool any_weights;
static _Atomic uint8_t marks[MARKS];

bool file_marked(int fd)
{
	return (unsigned)fd < MARKS && atomic_load_explicit(&marks[fd], memory_order_relaxed);
}

static void file_mark(int fd, bool weights)
{
	if ((unsigned)fd < MARKS && atomic_load_explicit(&marks[fd], memory_order_relaxed) != weights)
		atomic_store_explicit(&marks[fd], weights, memory_order_relaxed);
	if (weights && !atomic_load_explicit(&any_weights, memory_order_relaxed))
		atomic_store(&any_weights, true);
}

bool file_any_weights(void)
{
	return atomic_load_explicit(&any_weights, memory_order_relaxed);
}

static bool entry_settled(const struct entry *entry)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (atomic_load_explicit(&entry->state, memory_order_acquire) != ENTRY_BUSY)
			return true;
		sys_yield();
	}
	return false;
}

/* Takes an entry that was empty a moment ago. */
static bool entry_take(struct entry *entry)
{
	uint32_t empty = ENTRY_EMPTY;

	if (!atomic_compare_exchange_strong(&entry->state, &empty, ENTRY_BUSY))
		return false;
	atomic_fetch_add(&taken, 1);
	return true;
}

/*
 * The entry of a file; a new one is BUSY, and the caller's to fill. NULL: not known, and `most` entries are taken.
 */
static struct entry *entry_find(uint64_t dev, uint64_t ino, unsigned most, bool *ret_new)
{
	uint64_t hash = (ino ^ dev << 32) * UINT64_C(0x9E3779B97F4A7C15) >> 40;

	for (unsigned i = 0; i < FILES; i++) {
		struct entry *entry = &entries[(hash + i) % FILES];

		if (atomic_load_explicit(&entry->state, memory_order_relaxed) == ENTRY_EMPTY) {
			if (atomic_load_explicit(&taken, memory_order_relaxed) >= most)
				return NULL;
			*ret_new = entry_take(entry);
			if (*ret_new)
				return entry;
		}
		if (!entry_settled(entry))
			return NULL;
		if (entry->dev == dev && entry->ino == ino) {
			*ret_new = false;
			return entry;
		}
	}
	return NULL;
}

/* The path that the kernel knows for a descriptor, links resolved. Returns its length, 0: none. */
static size_t path_of(int fd, char *ret_path, size_t size)
{
	char link[32];
	struct text text = text_in(link, sizeof(link));
	long length;

	text_add(&text, "/proc/self/fd/");
	text_number(&text, (uint64_t)fd);
	length = sys_readlink(link, ret_path, size - 1);
	if (length < 0)
		length = 0;
	ret_path[length] = '\0';
	return (size_t)length;
}

/* Makes the program's path absolute: the recorder is elsewhere, and the program may change its directory. */
static void path_absolute(int dirfd, const char *path, char *ret_path, size_t size)
{
	struct text text = text_in(ret_path, size);

	if (path[0] != '/') {
		if (dirfd == AT_FDCWD ? sys_getcwd(ret_path, size) <= 0 : path_of(dirfd, ret_path, size) == 0)
			ret_path[0] = '\0';
		text.at += strlen(ret_path);
		text_byte(&text, '/');
	}
	text_add(&text, path);
}

/*
 * The first bytes by pread on the program's own descriptor, which moves nothing that it could see; never through a
 * mapping. A whole page, aligned, since O_DIRECT wants that; not on the stack, which may be a small one.
 */
static size_t read_magic(int fd, unsigned char *ret_bytes)
{
	unsigned char *page = sys_mmap_anonymous(PAGE);
	long count;

	if (sys_failed(page))
		return 0;
	count = sys_pread(fd, page, PAGE, 0);
	if (count >= FILE_MAGIC_BYTES)
		memcpy(ret_bytes, page, FILE_MAGIC_BYTES);
	sys_munmap(page, PAGE);
	return count >= FILE_MAGIC_BYTES ? FILE_MAGIC_BYTES : 0;
}

static enum st_file_format format_of(int fd, const char *path, uint64_t size)
{
	unsigned char bytes[FILE_MAGIC_BYTES];

	if (!file_may_hold_weights(path))
		return ST_FILE_OTHER;
	return file_format(path, size, bytes, read_magic(fd, bytes));
}

static uint64_t description_hash(const char *path, uint64_t size, uint32_t format)
{
	uint64_t hash = size * 31 + format;

	while (*path)
		hash = (hash ^ (unsigned char)*path++) * UINT64_C(0x100000001B3);
	return hash | 1;
}

/*
 * Writes the record, if it says something new: the first one; a name that makes weights of what was met under another
 * one; another file under a number that was free again. The identifier stays, and its latest definition holds.
 */
static void entry_define(struct entry *entry, uint64_t size, const char *path)
{
	uint64_t said = description_hash(path, size, entry->format);

	if (atomic_load(&entry->said) == said)
		return;
	if (EVENT_TAIL(file, path, strlen(path), .id = (uint64_t)(entry - entries) + 1, .dev = entry->dev,
	               .ino = entry->ino, .size = size, .format = entry->format))
		atomic_store(&entry->said, said);
}

/*
 * Weights stay weights, whatever other name they are met under. What is none is not worth a record at its open: it gets
 * one when it is mapped.
 */
static void entry_named(struct entry *entry, bool new, int fd, const struct stat *status, const char *path)
{
	enum st_file_format format = format_of(fd, path, (uint64_t)status->st_size);

	if (new) {
		entry->dev = status->st_dev;
		entry->ino = status->st_ino;
	}
	if (format != ST_FILE_OTHER)
		atomic_store(&entry->format, format);
	if (atomic_load(&entry->format) != ST_FILE_OTHER)
		entry_define(entry, (uint64_t)status->st_size, path);
	if (new)
		atomic_store_explicit(&entry->state, ENTRY_KNOWN, memory_order_release);
}

/* A file met by its descriptor alone, for the first time. Its path is not put on the stack, as in read_magic. */
static void entry_unnamed(struct entry *entry, bool new, int fd, const struct stat *status)
{
	char *page = sys_mmap_anonymous(PATH_MAX), *path = sys_failed(page) ? "" : page;

	if (path == page)
		path_of(fd, path, PATH_MAX);
	entry_named(entry, new, fd, status, path);
	entry_define(entry, (uint64_t)status->st_size, path);
	if (path == page)
		sys_munmap(page, PATH_MAX);
}

/* `path`: that of the program, or NULL: ask the kernel, but only if it is needed. `most` as for entry_find. */
static bool file_look(int fd, const char *path, unsigned most, struct file *ret_file)
{
	struct entry *entry;
	struct stat status;
	bool new = false;

	if (sys_fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return false;
	entry = entry_find(status.st_dev, status.st_ino, most, &new);
	if (entry && path)
		entry_named(entry, new, fd, &status, path);
	else if (entry && (new || !atomic_load(&entry->said)))
		entry_unnamed(entry, new, fd, &status);
	*ret_file = (struct file){.size = (uint64_t)status.st_size};
	if (entry) {
		ret_file->id = (uint32_t)(entry - entries) + 1;
		ret_file->format = atomic_load(&entry->format);
	}
	file_mark(fd, file_weights(ret_file));
	return true;
}

bool file_of(int fd, struct file *ret_file)
{
	if (file_look(fd, NULL, UNNAMED, ret_file))
		return true;
	file_mark(fd, false);
	return false;
}

bool file_read(int fd, struct file *ret_file)
{
	return file_marked(fd) ? file_of(fd, ret_file) : file_look(fd, NULL, 0, ret_file);
}

bool file_opened(int fd, int dirfd, const char *path, struct file *ret_file)
{
	char *absolute = sys_mmap_anonymous(PATH_MAX);
	bool known;

	if (sys_failed(absolute))
		return false;
	path_absolute(dirfd, path, absolute, PATH_MAX);
	known = file_look(fd, absolute, FILES, ret_file);
	sys_munmap(absolute, PATH_MAX);
	return known;
}

/* Most processes never met a file: their pages stay untouched. */
void file_reset(void)
{
	if (atomic_exchange(&taken, 0))
		memset(entries, 0, sizeof(entries));
}
