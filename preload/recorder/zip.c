/* SPDX-License-Identifier: Apache-2.0 */
#include "zip.h"

#include <errno.h>
#include <string.h>

#define END_BYTES     22u
#define LOCATOR_BYTES 20u
#define END64_BYTES   56u
#define ENTRY_BYTES   46u
#define LOCAL_BYTES   30u
#define COMMENT_MAX   4096u /* torch writes none */
#define ALIGNMENT     64u   /* of data, by torch's writer */
#define PADDING_MAX   192u
#define FLAG_BEHIND   8u /* sizes stand behind the data */
#define FULL32        UINT32_MAX

enum {
	SIGN_ENTRY = 0x02014b50,
	SIGN_LOCAL = 0x04034b50,
	SIGN_END = 0x06054b50,
	SIGN_END64 = 0x06064b50,
	SIGN_LOCATOR = 0x07064b50
};

static int zip_error(struct zip *zip, const char *error)
{
	source_fail(&zip->source, error);
	return zip->source.read_error ? -zip->source.read_error : -EINVAL;
}

/* --- the end of the archive ------------------------------------------------------------------ */

/* The end of the directory, searched backwards over a comment. */
static int find_end(struct source *source, uint64_t file_size, unsigned char end[END_BYTES])
{
	unsigned char tail[COMMENT_MAX + END_BYTES];
	size_t size = file_size < sizeof(tail) ? (size_t)file_size : sizeof(tail), i;
	/* First without a comment: that brings in one page. */
	size_t first = size < END_BYTES ? size : END_BYTES;

	source_move(source, file_size - first, file_size);
	if (source_take(source, tail, first))
		return -EINVAL;
	if (first == END_BYTES && source_number_at(tail, 4) == SIGN_END) {
		memcpy(end, tail, END_BYTES);
		source_move(source, file_size - END_BYTES, file_size);
		return 0;
	}
	source_move(source, file_size - size, file_size);
	if (source_take(source, tail, size))
		return -EINVAL;
	for (i = size < END_BYTES ? 0 : size - END_BYTES + 1; i-- > 0;)
		if (source_number_at(tail + i, 4) == SIGN_END &&
		    source_number_at(tail + i + 20, 2) == size - i - END_BYTES) {
			memcpy(end, tail + i, END_BYTES);
			source_move(source, file_size - size + i, file_size);
			return 0;
		}
	return source_fail(source, "no end of a zip archive");
}

/* Large archives, and all of torch's, say it once more in 64 bits, in front of the end at `at`. */
static int read_end64(struct zip *zip, uint64_t at, uint64_t *ret_size)
{
	struct source *source = &zip->source;
	unsigned char locator[LOCATOR_BYTES], end[END64_BYTES];

	if (at < LOCATOR_BYTES)
		return 0;
	source_move(source, at - LOCATOR_BYTES, zip->file_size);
	if (source_take(source, locator, sizeof(locator)))
		return -EINVAL;
	if (source_number_at(locator, 4) != SIGN_LOCATOR)
		return 0;
	source_move(source, source_number_at(locator + 8, 8), zip->file_size);
	if (source_take(source, end, sizeof(end)) || source_number_at(end, 4) != SIGN_END64)
		return source_fail(source, "no 64-bit end of the archive");
	zip->entries = source_number_at(end + 32, 8);
	*ret_size = source_number_at(end + 40, 8);
	zip->directory = source_number_at(end + 48, 8);
	return 0;
}

int zip_open(struct zip *zip, int fd, uint64_t file_size, const struct source_cache *cache)
{
	unsigned char end[END_BYTES];
	uint64_t size;

	memset(zip, 0, sizeof(*zip));
	source_begin(&zip->source, fd, 0, file_size, cache);
	zip->file_size = file_size;
	if (find_end(&zip->source, file_size, end))
		return zip_error(zip, "no end of a zip archive");
	zip->entries = source_number_at(end + 10, 2);
	size = source_number_at(end + 12, 4);
	zip->directory = source_number_at(end + 16, 4);
	if (read_end64(zip, zip->source.at, &size))
		return zip_error(zip, "no 64-bit end of the archive");
	if (zip->directory > file_size || size > file_size - zip->directory ||
	    zip->entries > size / ENTRY_BYTES)
		return zip_error(zip, "the directory lies outside the file");
	source_move(&zip->source, zip->directory, zip->directory + size);
	return 0;
}

/* --- the directory --------------------------------------------------------------------------- */

/* What did not fit into 32 bits stands in an extra field, in this order: size, stored size, place. */
static void read_extra64(const unsigned char *extra, size_t left, struct zip_entry *entry, uint64_t *stored)
{
	uint64_t *wanted[] = {&entry->size, stored, &entry->local};
	size_t length, used = 0, i;

	while (left >= 4 && (length = source_number_at(extra + 2, 2)) <= left - 4) {
		if (source_number_at(extra, 2) == 1) {
			for (i = 0; i < 3; i++)
				if (*wanted[i] == FULL32 && used + 8 <= length) {
					*wanted[i] = source_number_at(extra + 4 + used, 8);
					used += 8;
				}
			return;
		}
		extra += 4 + length;
		left -= 4 + length;
	}
}

static int read_names(struct zip *zip, const unsigned char *head, char *name, size_t size,
                      unsigned char *extra, size_t *extra_length)
{
	uint64_t name_length = source_number_at(head + 28, 2), length = source_number_at(head + 30, 2);

	*extra_length = length < *extra_length ? (size_t)length : *extra_length;
	if (source_text(&zip->source, name_length, name, size) ||
	    source_take(&zip->source, extra, *extra_length) ||
	    source_skip(&zip->source, length - *extra_length + source_number_at(head + 32, 2)))
		return -EINVAL;
	return 0;
}

static int read_entry(struct zip *zip, struct zip_entry *entry)
{
	unsigned char head[ENTRY_BYTES], extra[512];
	size_t extra_length = sizeof(extra);
	uint64_t stored;

	if (source_take(&zip->source, head, sizeof(head)) || source_number_at(head, 4) != SIGN_ENTRY)
		return zip_error(zip, "no entry of a directory");
	if (read_names(zip, head, entry->name, sizeof(entry->name), extra, &extra_length))
		return zip_error(zip, "the directory ends too early");
	entry->local = source_number_at(head + 42, 4);
	entry->size = source_number_at(head + 24, 4);
	entry->name_length = (uint32_t)source_number_at(head + 28, 2);
	entry->behind = source_number_at(head + 8, 2) & FLAG_BEHIND;
	stored = source_number_at(head + 20, 4);
	read_extra64(extra, extra_length, entry, &stored);
	entry->stored = !source_number_at(head + 10, 2) && stored == entry->size;
	if (entry->local > zip->file_size || entry->size > zip->file_size)
		return zip_error(zip, "an entry lies outside the file");
	zip->entries--;
	return 0;
}

/* Always one ahead: where the next entry begins belongs to an entry. */
int zip_next(struct zip *zip, struct zip_entry *ret_entry)
{
	int err;

	if (!zip->begun && zip->entries) {
		err = read_entry(zip, &zip->ahead);
		if (err)
			return err;
		zip->has_ahead = true;
	}
	zip->begun = true;
	if (!zip->has_ahead)
		return 0;
	*ret_entry = zip->ahead;
	ret_entry->next = zip->directory;
	zip->has_ahead = zip->entries != 0;
	if (!zip->has_ahead)
		return 1;
	err = read_entry(zip, &zip->ahead);
	if (err)
		return err;
	ret_entry->next = zip->ahead.local;
	return 1;
}

/*
 * Where the data of an entry begin stands in front of them, which is one page of every tensor. torch's writer aligns
 * them and leaves no gap, so where the next entry begins tells the same; only where that does not fit is the page read.
 */
int zip_find_data(struct zip *zip, const struct zip_entry *entry, uint64_t *ret_offset)
{
	uint64_t behind = !entry->behind ? 0 : entry->size >= FULL32 || entry->local >= FULL32 ? 24 : 16;
	uint64_t least = entry->local + LOCAL_BYTES + entry->name_length, at = zip->source.at;
	uint64_t guess = entry->next - behind - entry->size, end = zip->source.end;
	unsigned char local[LOCAL_BYTES];

	if (entry->next > least + behind && entry->size <= entry->next - behind - least &&
	    !(guess % ALIGNMENT) && guess - least <= PADDING_MAX) {
		*ret_offset = guess;
		return 0;
	}
	source_move(&zip->source, entry->local, zip->file_size);
	if (source_take(&zip->source, local, sizeof(local)) || source_number_at(local, 4) != SIGN_LOCAL)
		return zip_error(zip, "an entry does not begin where the directory says");
	guess = zip->source.at + source_number_at(local + 26, 2) + source_number_at(local + 28, 2);
	if (guess > zip->file_size || entry->size > zip->file_size - guess)
		return zip_error(zip, "an entry lies outside the file");
	source_move(&zip->source, at, end);
	*ret_offset = guess;
	return 0;
}
